"""Serving: the matrix's own logits for a task's own texts, and answers that people can use."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from stream.cli.main import main
from stream.config.paths import cache_folder
from stream.data.loading import load_task
from stream.errors import UserError
from stream.evaluation.evaluate import digest
from stream.record.run_record import RunRecord
from stream.run.load import config_on
from stream.run.predict import Service
from tests.run.program import run

pytestmark = pytest.mark.slow

AIRLINE = "crowdflower_airline"


@pytest.fixture(scope="module", params=["adapter", "replay", "tfidf"])
def served(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "run"
    code, _, err = run(folder.parent, f"learner={request.param}", f"hydra.run.dir={folder}")
    assert (code, err) == (0, "")
    return folder


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


def test_mistakes_are_one_line(
    served: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(served, "cpu")
    with pytest.raises(UserError, match="unknown learned task 'stbs'"):
        service.logits("stbs", ["x"])
    with pytest.raises(UserError, match="text 2: task 'stsb' takes 2 text"):
        service.logits("stsb", [("a", "b"), "c"])
    with pytest.raises(UserError, match="no text"):
        service.logits(AIRLINE, [])
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ttwo\n"))
    assert main(["predict", str(served), "--task", AIRLINE, "--device", "cpu"]) == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("x"))
    assert main(["predict", str(served / "nowhere"), "--task", AIRLINE]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_the_command_prints_an_answer_a_line(
    served: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("first text\nsecond text\n"))
    assert main(["predict", str(served), "--task", AIRLINE, "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(answers) == 2
    assert all(sum(a["probabilities"].values()) == pytest.approx(1) for a in answers)
