"""A whole run with one head for all tasks: its record, verify, serving, and one task more."""

from pathlib import Path

import numpy as np
import pytest

from stream.cli.predict import as_text
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.run.export import export_task
from stream.run.predict import Service
from stream.run.verify import verify
from tests.run.program import run

pytestmark = pytest.mark.slow

SETTINGS = ("scenario=shared_head", "shared_head.mask=labels_trick", "learner=replay")
TWO = "task=[crowdflower_airline,cola]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared") / "run"
    code, out, err = run(folder.parent, *SETTINGS, TWO, f"hydra.run.dir={folder}")
    assert (code, err) == (0, "")
    assert "accuracy over all classes seen" in out
    return folder


def test_its_files_prove_it_and_its_metrics_are_pooled(folder: Path) -> None:
    record = RunRecord.read(folder)
    assert all(check.ok for check in verify(folder, "cpu"))
    assert record.memory.promised is False
    rows = [record.data.rows[name]["test"] for name in record.order]
    right = record.scores[1, 0] * rows[0]  # the other one's metric is no accuracy
    found = record.metrics["seen_class_accuracy"] * sum(rows)
    assert right - 1e-9 <= found <= right + rows[1]
    assert record.metrics["average_seen_class_accuracy"] == pytest.approx(
        (record.scores[0, 0] + record.metrics["seen_class_accuracy"]) / 2
    )


def test_texts_are_answered_without_their_task(folder: Path) -> None:
    service = Service(folder, "cpu")
    texts = ["some words", "other words"]
    answers = service.predict(None, texts)
    assert (
        answers == service.predict("cola", texts) == service.predict("crowdflower_airline", texts)
    )
    logits = service.logits("cola", texts).astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    for answer, row in zip(answers, expected, strict=True):
        np.testing.assert_allclose(list(answer.probabilities.values()), row, rtol=1e-9)
        best = max(answer.probabilities, key=answer.probabilities.__getitem__)
        assert (answer.tasks[0], answer.label) == tuple(best.split("/"))
        assert as_text(answer) == f"{answer.label}\t{answer.tasks[0]}"
    assert next(iter(answers[0].probabilities)) == "crowdflower_airline/negative"


def test_none_of_its_tasks_can_be_handed_over_alone(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="one head for all tasks") as caught:
        export_task(folder, "cola", tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_finished_run_learns_one_task_more(folder: Path) -> None:
    """Its first rows stay as they are: nothing of them depends on the classes to come."""
    before = RunRecord.read(folder)
    code, _, err = run(folder.parent, f"resume={folder}", "task=[crowdflower_airline,cola,rte]")
    assert (code, err) == (0, "")
    after = RunRecord.read(folder)
    assert [row[:2] for row in after.cells[:2]] == before.cells
    assert all(check.ok for check in verify(folder, "cpu"))
    service = Service(folder, "cpu")
    with pytest.raises(UserError, match="some tasks have one text a row and some two"):
        service.predict(None, ["some words"])
    assert len(service.predict("rte", [("some", "words")])[0].probabilities) == 7
