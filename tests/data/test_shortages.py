"""What too few rows are said to leave out."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stream.api import run_stream
from stream.data.prepare.account_lines import account_lines
from stream.data.prepare.shortages import shortages
from stream.data.table import Account
from stream.data.task import Task
from stream.record.run_record import RunRecord
from tests.builders import made_task

ALL = "is undefined on its {} test rows, all of one label"


def task_of(labels: list[float], metric: str, classes: int | None) -> Task:
    """A task whose splits have these labels."""
    task = made_task("made", classes, rows=len(labels))
    kind = np.float32 if classes is None else np.int64
    splits = {n: replace(s, labels=np.array(labels, kind)) for n, s in task.splits.items()}
    spec = replace(task.spec, metric=metric)
    return replace(task, splits=splits, spec=spec)


@pytest.mark.parametrize(
    ("task", "train", "test"),
    [
        (task_of([0, 1] * 5, "accuracy", 2), [], []),
        (task_of([1] * 9 + [3], "accuracy", 20), ["18 of 20 classes have"], ["18 of 20 classes"]),
        (task_of([0, 1], "accuracy", 2), [], ["on 2 test rows: one row is 50 points"]),
        (
            task_of([1] * 12, "matthews_correlation", 2),
            ["1 of 2 classes have none of its 12 train rows: 'label 0'"],
            ["1 of 2 classes", ALL.format(12)],
        ),
        (task_of([1] * 12, "f1", 2), ["1 of 2"], ["1 of 2"]),
        (task_of([2.5] * 12, "spearman", None), [], [ALL.format(12)]),
        (task_of([2.5, 3] * 6, "spearman", None), [], []),
    ],
)
def test_what_is_missing_is_said(task: Task, train: list[str], test: list[str]) -> None:
    for name, expected in (("train", train), ("test", test)):
        found = list(shortages(task, name))
        assert len(found) == len(expected)
        assert all(part in line for part, line in zip(expected, found, strict=True))


def test_the_account_says_it_too() -> None:
    task = task_of([1] * 12, "matthews_correlation", 2)
    accounts = {"test": Account("made", read=12, kept=12)}
    lines = list(account_lines(replace(task, accounts=accounts)))
    assert [line.strip() for line in lines][-2:] == list(shortages(task, "test"))


def test_a_run_says_what_is_missing_and_which_scores_are_undefined(tmp_path: Path) -> None:
    small = ["data.train=8", "data.validation=4", "data.test=4", "limits.eval=1"]
    given = {"learner": "majority", "task": ["cola"], "backbone": "tiny", "tracking": "none"}
    run_stream(folder=tmp_path / "run", overrides=small, quiet=True, **given)
    said = (tmp_path / "run" / "run.log").read_text()
    assert said.count("note: cola: 1 of 2 classes have none of its 1 test row") == 1
    assert said.count("undefined, so recorded as 0 (all predictions or all labels are equal): CoLA")


def test_a_run_says_that_training_has_failed(tmp_path: Path) -> None:
    """A rate of 1 breaks adapters down."""
    small = ["data.train=64", "data.validation=8", "data.test=32", "learner.lr=1"]
    given = {"learner": "adapter", "task": ["sst2"], "backbone": "tiny", "tracking": "none"}
    run_stream(folder=tmp_path / "run", overrides=small, quiet=True, **given)
    assert RunRecord.read(tmp_path / "run").unlearned == [0]
    said = (tmp_path / "run" / "run.log").read_text()
    assert said.count("warning: SST-2: all texts get one answer") == 1
    assert re.search("one answer for all texts +1 task: SST-2", said)
