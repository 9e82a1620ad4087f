"""Rows: what one task added, on a line of its own; all lines together are the record."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from stream.errors import UserError
from stream.metrics import ProbePoint, summarize
from stream.record.derived import WHOLE_UP_TO, Derivation
from stream.record.matrix import Cell
from stream.record.parts import (
    FlopRecord,
    LinearProbeRecord,
    ProbeRecord,
    RoutingRecord,
)
from stream.record.rows import RowRecord, add_rows, decoded, row_of, rows_of
from stream.record.run_record import RunRecord, read_values
from stream.record.selection import CandidateRecord, SelectionRecord
from tests.record.made_record import learn, made_cell, made_record


def reuse(record: RunRecord, after: int) -> None:
    """Learn a task; all earlier ones are reused."""
    learn(record, after)
    for on in range(after):
        above = record.cells[after - 1][on]
        assert above is not None
        record.cells[after][on] = replace(above, state="reused", seconds=0.0)


def full_parts() -> dict[str, Any]:
    return {
        "probe": ProbeRecord(every=2, rows=4),
        "linear_probe": LinearProbeRecord(),
        "flops": FlopRecord(),
        "routing": RoutingRecord(kind="mahalanobis"),
    }


def fill(record: RunRecord, after: int) -> None:
    """Learn a task as `reuse`, with all that a run may be asked for."""
    reuse(record, after)
    name = record.order[after]
    assert record.probe is not None
    assert record.linear_probe is not None
    assert record.flops is not None
    assert record.routing is not None
    for step in range(after + 1):
        record.probe.add(ProbePoint(after, step, [0.1 * after] * (after + 1)), 0.5)
    record.linear_probe.learned.append(None if after == 1 else 0.25 * after)
    record.linear_probe.seconds += 2.0
    if after == len(record.order) - 1:
        record.linear_probe.final = [0.5] * len(record.order)
    record.flops.add(100 + after, 10 + after, 3)
    record.routing.learn_s.append(0.125 * after)
    tried = [CandidateRecord(settings={"lr": 0.1}, restart=n, seed=n, score=0.5) for n in (0, 1)]
    record.selection[name] = SelectionRecord(candidates=tried, chosen=1)
    record.fingerprints[record.order[0]] = f"changed {after}"


def lines_of(num_tasks: int, fill: Any, **parts: Any) -> tuple[RunRecord, list[bytes]]:
    """Return a record, and its rows as they were appended while it grew."""
    record, lines, known = made_record(num_tasks, **parts), [], {}
    for after in range(num_tasks):
        fill(record, after)
        row = row_of(record, after, known)
        known |= row.fingerprints
        lines.append(msgspec.json.encode(row))
    return record, lines


@pytest.mark.parametrize("cut", [0, 2, 4])
def test_rows_are_all_that_a_record_gained(cut: int) -> None:
    """Also where some of them stand in another record already."""
    record, lines = lines_of(4, fill, **full_parts())
    again = made_record(4, **full_parts())
    add_rows(again, decoded(lines[:cut], "here"))
    add_rows(again, decoded(lines[cut:], "here"))
    for found in (again, record):
        found.derive()
    assert again == record
    assert len(again.metrics) > 20


def test_a_row_is_plain_json_and_names_what_it_reuses() -> None:
    record, lines = lines_of(4, reuse)
    record.cells[3][1] = made_cell(3, 1)  # was measured again
    row = json.loads(msgspec.json.encode(row_of(record, 3, record.fingerprints)))
    assert row["reused"] == [[0, 1], [2, 3]]
    assert list(row["measured"]) == ["task_1", "task_3"]
    assert row["measured"]["task_1"]["digest"] == "3-1"
    assert row["times"]["train_s"] == 1.5 + 3
    assert "fingerprints" not in row
    assert json.loads(lines[0])["measured"].keys() == {"task_0"}


def test_a_line_is_as_long_late_as_early() -> None:
    _, lines = lines_of(40, reuse)
    assert max(map(len, lines[10:])) - min(map(len, lines[10:])) < 50  # digits of numbers


def test_a_reused_cell_is_one_object_and_in_the_file_the_number_of_its_row(tmp_path: Path) -> None:
    record, lines = lines_of(5, reuse)
    record.cells[2][0] = made_cell(2, 0)  # was measured again, and reused from there on
    for after in (3, 4):
        record.cells[after][0] = replace(made_cell(2, 0), state="reused", seconds=0.0)
    record.derive()
    record.write(tmp_path)
    column = [row[0] for row in json.loads((tmp_path / "results.json").read_text())["cells"]]
    assert [cell if isinstance(cell, int) else cell["digest"] for cell in column] == [
        "0-0",
        0,
        "2-0",
        2,
        2,
    ]
    found = RunRecord.read(tmp_path)
    assert found == record
    assert found.cells[4][0] is found.cells[3][0]
    assert found.cells[4][1] is found.cells[2][1]
    again = made_record(5)
    add_rows(again, decoded(lines, "here"))
    assert again.cells[4][1] is again.cells[2][1]
    assert again.cells[2][1] == replace(made_cell(1, 1), state="reused", seconds=0.0)


def test_a_cell_that_says_it_is_reused_and_is_another_stands_whole(tmp_path: Path) -> None:
    record, _ = lines_of(3, reuse)
    other = replace(made_cell(0, 0), digest="other", state="reused", seconds=0.0)
    record.cells[2][0] = other
    record.write(tmp_path)
    assert read_values(tmp_path)["cells"][1][0] == 0
    assert read_values(tmp_path)["cells"][2][0]["digest"] == "other"
    assert RunRecord.read(tmp_path) == record
    assert row_of(record, 2, {}).measured["task_0"] == other


@pytest.mark.parametrize(
    ("number", "place"), [(2, (2, 0)), (-1, (2, 0)), (0, (2, 1)), (7, (2, 0)), (True, (2, 0))]
)
def test_a_number_of_no_row_is_no_record(
    tmp_path: Path, number: int, place: tuple[int, int]
) -> None:
    made_record(3, 3).write(tmp_path)
    values = read_values(tmp_path)
    values["cells"][place[0]][place[1]] = number
    (tmp_path / "results.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match="no record of a run"):
        RunRecord.read(tmp_path)


@pytest.mark.parametrize("written", [0, 2])
def test_a_run_that_was_killed_is_read_with_the_rows_after_its_file(
    tmp_path: Path, written: int
) -> None:
    """A last line without its end is none; the file stays as it was until it is summed up."""
    whole, lines = lines_of(5, fill, **full_parts())
    early = made_record(5, **full_parts())
    add_rows(early, decoded(lines[:written], "here"))
    early.derive()
    early.write(tmp_path)
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(lines) + b"\n" + lines[0][:40])
    whole.derive()
    before = (tmp_path / "results.json").read_bytes()
    assert RunRecord.read(tmp_path) == RunRecord.read(tmp_path / "results.json") == whole
    assert (tmp_path / "results.json").read_bytes() == before
    RunRecord.sum_up(tmp_path)
    (tmp_path / "rows.jsonl").unlink()
    assert RunRecord.read(tmp_path) == whole


@pytest.mark.parametrize("names", ["complete", "another", "no row"])
def test_rows_that_are_not_the_file_s(tmp_path: Path, names: str) -> None:
    """A complete file is whole; those of another run, or what is no row, are told."""
    _, lines = lines_of(3, reuse)
    record = made_record(3, 1, status="complete" if names == "complete" else "partial")
    record.write(tmp_path)
    wrong = {"another": lines[0], "no row": b'{"task":"task_1"}', "complete": lines[1]}[names]
    (tmp_path / "rows.jsonl").write_bytes(lines[0] + b"\n" + wrong + b"\n")
    if names == "complete":
        assert RunRecord.read(tmp_path) == record
        return
    with pytest.raises(UserError, match=r"no (record|rows) of a run") as caught:
        RunRecord.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_row_that_reuses_what_was_never_measured_is_refused() -> None:
    _, lines = lines_of(3, reuse)
    rows = decoded(lines, "here")
    rows[1] = msgspec.structs.replace(rows[1], reused=[(0, 1), (2, 3)])
    with pytest.raises(ValueError, match="row 2 reuses a score of task 3, which has none"):
        add_rows(made_record(3), rows)


def test_rows_made_from_a_record_are_those_that_were_appended() -> None:
    """But for what changed and changed again, and totals of an earlier time."""
    record, lines = lines_of(4, reuse)
    made = [
        msgspec.structs.replace(row, totals=old.totals)
        for row, old in zip(rows_of(record), decoded(lines, "here"), strict=True)
    ]
    assert made == decoded(lines, "here")
    assert isinstance(made[0], RowRecord)


def test_metrics_of_a_long_stream_are_the_core_ones_until_its_last_row() -> None:
    """Row by row against the metrics of the whole matrix; scores rise and fall."""
    tasks, draws = WHOLE_UP_TO + 6, np.random.default_rng(0)
    record, derivation = made_record(tasks), Derivation()
    for after in range(tasks):
        learn(record, after)
        for on in range(after + 1):
            record.cells[after][on] = Cell(float(draws.random()), "", "measured", 0.0)
        derivation.update(record, whole=False)
        if after % 5 == 4 or after >= WHOLE_UP_TO:
            matrix = np.array([[c.score if c else np.nan for c in row] for row in record.cells])
            wanted = summarize(matrix)
            core = {name: record.metrics[name] for name in record.metrics if name in wanted}
            for name in ("average_score", "learning_score", "bwt", "forgetting"):
                assert core[name] == pytest.approx(wanted[name], abs=1e-15), (after, name)
            assert (len(record.metrics) == 4) == (WHOLE_UP_TO <= after < tasks - 1)
    last, whole = (
        dict(record.metrics),
        RunRecord.from_values(msgspec.to_builtins(record.values()), "here"),
    )
    whole.derive()
    assert last == whole.metrics
    assert record.matrix == whole.matrix
