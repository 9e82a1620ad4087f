"""Runs that are made again: equal logits are counted by both cells of a task, scores compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evidence.again import compared, note_replaced
from benchmarks.evidence.again_tables import again, replaced
from benchmarks.evidence.records import AGAIN, REPLACED, RUNS, Again, Records
from benchmarks.lines import append_line, read_lines
from tests.record.made_record import made_record


def made_again(**changes: Any) -> Again:
    """Return a line about a run that was made again."""
    return Again(**{"run": "g/m-s1", "largest": 0.25, "devices": ("cpu", "cpu"), **changes})


def test_a_digest_that_differs_at_either_time_counts(tmp_path: Path) -> None:
    first, second = made_record(3, 3), made_record(3, 3)
    first.derive()
    second.derive()
    equal = compared("g/m-s1", first, second)
    assert (equal.identical, equal.differing) == (3, [])
    for after, on, less in ((0, 0, 0.0), (2, 1, 0.25)):
        cell = second.cells[after][on]
        assert cell is not None
        second.cells[after][on] = replace(cell, digest="other", score=cell.score - less)
    second.derive()
    found = compared("g/m-s1", first, second)
    assert (found.tasks, found.identical, found.largest) == (3, 1, 0.25)
    assert found.differing == ["task_0"]  # the other one differs at the end alone


def test_the_table_names_the_first_task_that_differs(tmp_path: Path) -> None:
    assert again(Records(tmp_path)) == "No run was made a second time yet."
    kinds = [(3, []), (1, ["b", "c"]), (1, []), (1, None)]
    for identical, differing in kinds:
        line = made_again(tasks=3, identical=identical, differing=differing)
        append_line(tmp_path / AGAIN, line)
    assert again(Records(tmp_path)).splitlines()[2:] == [
        "| `g/m-s1` | 3 of 3 | none | 25.0 | cpu | cpu |",
        "| `g/m-s1` | 1 of 3 | b | 25.0 | cpu | cpu |",
        "| `g/m-s1` | 1 of 3 | none when learned | 25.0 | cpu | cpu |",
        "| `g/m-s1` | 1 of 3 | not noted | 25.0 | cpu | cpu |",
    ]


def test_runs_that_replaced_others_are_compared(tmp_path: Path) -> None:
    here, there = ["learner.lr=1", "data.root=/a"], ["learner.lr=1", "data.root=/b"]
    records = {
        "g/kept-s1": (here, here, 0.0),
        "g/moved-s1": (here, there, 0.25),
        "g/other-s1": (here, ["learner.lr=2"], 0.25),  # of another setting: not the same run
        "g/gone-s1": (here, None, 0.0),
    }
    for name, (first, second, less) in records.items():
        for folder, settings, lost in (("once", first, 0.0), ("now", second, less)):
            if settings is not None:
                record = made_record(3, 3, overrides=settings)
                cell = record.cells[2][0]
                assert cell is not None
                record.cells[2][0] = replace(cell, score=cell.score - lost)
                record.derive()
                place = tmp_path / folder / RUNS / name
                place.mkdir(parents=True)
                record.write(place)
    for _ in range(2):  # the second time the same
        assert note_replaced(tmp_path / "now", tmp_path / "once") == 1
    (line,) = read_lines(tmp_path / "now" / REPLACED, Again)
    assert (line.run, line.identical, line.differing) == ("g/moved-s1", 3, [])
    assert line.moved == pytest.approx(-0.25 / 3)


def test_the_table_sums_up_what_replaced_others_by_learner(tmp_path: Path) -> None:
    assert replaced(Records(tmp_path)) == "No run was replaced."
    ones = [
        ("minilm/topk-s1", 26, [], 0.0, 0.0),
        ("minilm-reversed/replay-s1", 0, ["b", "c"], 0.02, 0.03),
        ("minilm/replay-s2", 0, ["b"], 0.04, -0.01),
        ("minilm-ablations/topk_1_chosen-s1", 3, ["a"], 0.002, 0.001),
    ]
    for run, identical, differing, largest, moved in ones:
        tasks = 4 if "ablations" in run else 26
        changes = {"differing": differing, "largest": largest, "moved": moved}
        line = made_again(run=run, tasks=tasks, identical=identical, **changes)
        append_line(tmp_path / REPLACED, line)
    assert replaced(Records(tmp_path)).splitlines()[2:] == [
        "| `replay` | 26 tasks | 2 | 0 | b 2 | 1.00 | 3.00 | 4.00 |",
        "| `topk` | 26 tasks | 1 | 1 | none | 0.00 | 0.00 | 0.00 |",
        "| `topk` | four tasks | 1 | 0 | a 1 | 0.10 | 0.10 | 0.20 |",
    ]
