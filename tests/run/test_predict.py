"""Serving: the matrix's own logits for a task's own texts, and answers that people can use."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from stream.cli.main import main
from stream.config.paths import cache_folder
from stream.data.loading import load_task
from stream.errors import UserError
from stream.evaluation.evaluate import digest
from stream.record.run_record import RunRecord
from stream.run.load import config_on
from stream.run.predict import Service
from tests.run.learned import learned

pytestmark = pytest.mark.slow

AIRLINE = "crowdflower_airline"


@pytest.fixture(scope="module", params=["adapter", "replay", "tfidf"])
def served(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("served") / "run", f"learner={request.param}")


def test_a_tasks_own_texts_give_the_digest_of_the_matrix(served: Path) -> None:
    record = RunRecord.read(served)
    config = config_on("cpu", record)
    service = Service(served, "cpu")
    assert list(service.tasks) == record.order
    for name in record.order:
        loaded = load_task(config.data, name, config.task[name], cache_folder(None))
        texts = [row if len(row) > 1 else row[0] for row in loaded.rows["test"].texts]
        logits = service.logits(name, texts)
        assert digest(logits) == record.score_matrix.last(name).digest


def test_answers_are_labels_with_probabilities_or_scores(served: Path) -> None:
    service = Service(served, "cpu")
    (answer,) = service.predict(AIRLINE, ["some words"])
    logits = service.logits(AIRLINE, ["some words"])[0].astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum()
    assert list(answer.probabilities) == ["negative", "neutral", "positive"]
    assert list(answer.probabilities.values()) == pytest.approx(expected.tolist())
    assert answer.label == ["negative", "neutral", "positive"][int(logits.argmax())]
    (regression,) = service.predict("stsb", [("one text", "another")])
    assert regression.label is None
    assert regression.score == pytest.approx(
        float(service.logits("stsb", [("one text", "another")])[0, 0])
    )


def typed(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    """Let bytes be the standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))


def test_mistakes_are_one_line(
    served: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(served, "cpu")
    with pytest.raises(UserError, match="unknown learned task 'stbs'"):
        service.logits("stbs", ["x"])
    with pytest.raises(UserError, match="text 2: a row of task 'stsb' is 2 texts"):
        service.logits("stsb", [("a", "b"), "c"])
    with pytest.raises(UserError, match="no text"):
        service.logits(AIRLINE, [])
    with pytest.raises(UserError, match="a list of texts, got one text"):
        service.logits(AIRLINE, "text")
    for kind, odd in {"DataFrame": pd.DataFrame({"a": ["x", "y"]}), "dict": {"a": "x"}}.items():
        with pytest.raises(UserError, match=f"a list of texts, got a {kind}"):
            service.predict(AIRLINE, odd)  # pyright: ignore[reportArgumentType]
    assert len(service.predict(AIRLINE, pd.Series(["x", "y"]))) == 2  # pyright: ignore[reportArgumentType]
    for odd in (None, 1.5, ("a", "b"), "\ud800"):
        with pytest.raises(UserError, match="text 2: "):
            service.logits(AIRLINE, ["x", odd])  # pyright: ignore[reportArgumentType]
    for raw, folder in ((b"one\ttwo\n", served), (b"ok\nb\xe9d\n", served), (b"x", served / "no")):
        typed(monkeypatch, raw)
        assert main(["predict", str(folder), "--task", AIRLINE, "--device", "cpu"]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 3
    assert "line 2: byte 0xe9 is not utf-8" in errors


def test_the_command_prints_an_answer_a_line(
    served: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "first\ftext\x1c\u2028\r\n\n \nlast \0text".encode())
    assert main(["predict", str(served), "--task", AIRLINE, "--json"]) == 0
    printed = capsys.readouterr()
    answers = [json.loads(line) for line in printed.out.splitlines()]
    assert len(answers) == 4
    assert all(sum(a["probabilities"].values()) == pytest.approx(1) for a in answers)
    assert printed.err == "2 lines (2, 3): blank, answered as an empty text\n"
    expected = Service(served, "cpu").predict(
        AIRLINE, ["first\ftext\x1c\u2028", "", "", "last \0text"]
    )
    assert answers == [{"label": a.label, "probabilities": a.probabilities} for a in expected]
    typed(monkeypatch, b"a\tb\n\nc\td\n")
    assert main(["predict", str(served), "--task", "stsb"]) == 0
    assert len([float(line) for line in capsys.readouterr().out.splitlines()]) == 3
