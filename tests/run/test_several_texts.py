"""Tasks of several text fields in a run: verified, served and handed over like any other."""

import io
import json
from pathlib import Path

import pytest

from stream.cli.main import main
from stream.config.paths import cache_folder
from stream.data.loading import load_task
from stream.errors import UserError
from stream.evaluation.evaluate import digest
from stream.record.run_record import RunRecord
from stream.run.export import export_task
from stream.run.load import config_on
from stream.run.predict import Service
from stream.run.verify import verify
from tests.run.learned import learned

ROW = ("It rained.", "Streets got wet.", "Streets dried.", "effect")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four fields with words between them, three fields as they are, and one segment of two."""
    folder = tmp_path_factory.mktemp("several") / "run"
    changes = ["task.wic.segments=[]", "task.cb.segments=['{hypothesis} if {premise}']"]
    tasks = [
        "task=[copa,wic,cb]",
        "backbone.max_length=16",
        "learner=adapter",
        "training.min_steps=1",
        "training.epochs=1",
    ]
    return learned(folder, *tasks, *changes)


def test_the_run_is_verified_and_its_segments_recorded(finished: Path) -> None:
    assert [check for check in verify(finished, "cpu") if not check.ok] == []
    record = RunRecord.read(finished)
    assert record.config["task"]["copa"]["segments"][0] == "{premise} What was the {question}?"
    assert record.config["task"]["wic"]["segments"] == []


def test_served_fields_give_the_digest_of_the_matrix(finished: Path) -> None:
    record = RunRecord.read(finished)
    config, service = config_on("cpu", record), Service(finished, "cpu")
    for name in record.order:
        rows = load_task(config.data, name, config.task[name], cache_folder(None)).rows["test"]
        logits = service.logits(name, rows.texts)
        assert digest(logits) == record.score_matrix.last(name).digest


def test_a_task_of_four_fields_is_handed_over(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    facts = export_task(finished, "copa", tmp_path / "copa")
    assert facts["fields"] == ["premise", "choice1", "choice2", "question"]
    assert facts["segments"][1] == "choice1: {choice1} choice2: {choice2}"
    wanted = Service(finished, "cpu").predict("copa", [ROW, ("", "", "", "")])
    raw = ("\t".join(ROW) + "\n\n").encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert main(["predict", str(tmp_path / "copa"), "--task", "copa", "--json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["probabilities"] for line in printed] == [a.probabilities for a in wanted]


def test_another_number_of_texts_is_one_line(finished: Path) -> None:
    said = r"text 2: a row of task 'wic' is 3 texts, .*: word, sentence1, sentence2; got"
    with pytest.raises(UserError, match=said):
        Service(finished, "cpu").predict("wic", [("a", "b", "c"), ("a", "b")])
