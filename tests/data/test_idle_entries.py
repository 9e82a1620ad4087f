"""Entries of ``values:`` and ``exclude:`` that no row has: slips are refused, all others said."""

from dataclasses import replace
from pathlib import Path

import pytest

from stream.config.data import FilesData
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.data.loading import load_task
from stream.data.prepare.shortages import shortages
from stream.data.table import Account
from stream.data.task import LoadedTask
from stream.errors import UserError
from tests.builders import made_task

TRAIN = ("good", "bad", "unsure", "good", "Good", "3", "class 18")
REST = ("good", "bad", "held out only")
LEFT_OUT = ["unsure", "held out only", "3", "Good", "class 18"]


def read(
    folder: Path, *, values: dict | None = None, exclude: list[str] = LEFT_OUT, **more
) -> LoadedTask:
    for split, labels in {"train": TRAIN, "validation": REST, "test": REST}.items():
        rows = [f"text {split} {place},{label}" for place, label in enumerate(labels)]
        (folder / f"{split}.csv").write_text("\n".join(["text,label", *rows]))
    files = FilesSource(text=["text"], folder=str(folder), values=values or {}, exclude=exclude)
    files.splits = {split: f"{split}.csv" for split in ("train", "validation", "test")}
    spec = TaskSpec(
        title="Mine",
        kind="single",
        labels=["bad", "good"],
        metric="accuracy",
        source="made",
        files=replace(files, **more),
    )
    return load_task(FilesData(), "mine", spec, folder)


def said(loaded: LoadedTask) -> list[str]:
    return loaded.accounts["train"].idle_entries


def test_an_entry_of_one_split_alone_is_none_to_speak_of(tmp_path: Path) -> None:
    assert said(read(tmp_path)) == []


@pytest.mark.parametrize(
    ("values", "exclude", "expected"),
    [
        ({}, ["n/a"], ["'n/a' (exclude:)"]),
        ({"excellent": "good"}, [], ["'excellent' (values:)"]),
        ({"very*": "good"}, [], ["'very*' (values:)"]),
        ({"goood": "good"}, [], ["'goood' (values:)"]),  # a spelling more of what is there
        ({}, ["4", "07", "30"], ["'4' (exclude:)", "'07' (exclude:)", "'30' (exclude:)"]),
    ],
)
def test_an_entry_that_no_row_has_is_said(
    tmp_path: Path, values: dict, exclude: list[str], expected: list[str]
) -> None:
    assert said(read(tmp_path, values=values, exclude=[*LEFT_OUT, *exclude])) == expected


def test_another_number_is_another_label(tmp_path: Path) -> None:
    exclude = ["class 17", *LEFT_OUT[:-1]]
    assert said(read(tmp_path, exclude=exclude, drop=["unknown_label"])) == [
        "'class 17' (exclude:)"
    ]


@pytest.mark.parametrize(
    ("values", "slip", "meant"),
    [
        ({}, "Unsure ", "unsure"),
        ({}, "unsrue", "unsure"),
        ({}, "unsur", "unsure"),
        ({}, "un-sure", "unsure"),
        ({}, "unsire", "unsure"),
        ({}, "held-out only", "held out only"),
        ({"unsuree": "bad"}, "n/a", "unsure"),
        ({}, "03", "3"),
    ],
)
def test_a_slip_is_refused_although_the_rows_may_go(
    tmp_path: Path, values: dict, slip: str, meant: str
) -> None:
    others = [label for label in LEFT_OUT if label != meant]
    with pytest.raises(UserError, match=f"no row of .*train.csv.* has; rows have '{meant}'"):
        read(tmp_path, values=values, exclude=[*others, slip], drop=["unknown_label"])


def test_a_run_names_them_beside_what_else_its_rows_lack() -> None:
    task = made_task("made")
    accounts = {"train": Account("made", idle_entries=["'n/a' (exclude:)"])}
    (line,) = shortages(replace(task, accounts=accounts), "train")
    assert "no row of the source has: 'n/a' (exclude:)" in line


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"files": FilesSource(values={"pos": "godo"})}, "'godo', which is not one of"),
        ({"files": FilesSource(values={"x": "good"}, exclude=["x"])}, "both name 'x'"),
        (
            {
                "labels": None,
                "score_range": [0.0, 5.0],
                "metric": "pearson",
                "files": FilesSource(values={"five": "6"}),
            },
            "'6', which is not one of",
        ),
        (
            {
                "kind": "span",
                "labels": None,
                "metric": "exact_match",
                "files": FilesSource(text=["q", "c"], start="at", exclude=["x"]),
            },
            "no effect on the answers",
        ),
    ],
)
def test_values_that_cannot_be_meant_are_refused_before_rows_are_read(
    changed: dict, told: str
) -> None:
    right = {"title": "t", "kind": "single", "labels": ["bad", "good"], "metric": "accuracy"}
    with pytest.raises(UserError, match=told):
        TaskSpec(**{**right, "source": "made", **changed})
