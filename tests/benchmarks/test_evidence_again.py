"""A run that is made again: tasks whose logits are the same are counted, by both their cells."""

from dataclasses import replace
from pathlib import Path

from benchmarks.evidence.again import compared
from benchmarks.evidence.records import AGAIN, Records
from benchmarks.evidence.task_tables import again
from benchmarks.lines import append_line
from tests.record.made_record import made_record


def test_a_digest_that_differs_at_either_time_counts(tmp_path: Path) -> None:
    first, second = made_record(3, 3), made_record(3, 3)
    first.derive()
    second.derive()
    assert compared("g/m-s1", first, second).identical == 3
    for after, on, less in ((0, 0, 0.0), (2, 1, 0.25)):
        cell = second.cells[after][on]
        assert cell is not None
        second.cells[after][on] = replace(cell, digest="other", score=cell.score - less)
    second.derive()
    found = compared("g/m-s1", first, second)
    assert (found.tasks, found.identical, found.largest) == (3, 1, 0.25)
    assert again(Records(tmp_path)) == "No run was made a second time yet."
    append_line(tmp_path / AGAIN, found)
    assert again(Records(tmp_path)).splitlines()[-1] == "| `g/m-s1` | 1 of 3 | 25.0 | cpu | cpu |"
