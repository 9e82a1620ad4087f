"""The record: the same on disk, read by plain JSON, and never NaN."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream.errors import UserError
from stream.metrics import Evidence, Flops, ProbePoint, Storage, decode_correct, summarize
from stream.record import derived
from stream.record.derived import Derivation
from stream.record.parts import FlopRecord, ProbeRecord
from stream.record.run_record import RunRecord, read_values
from tests.record.made_record import EXAMPLES, learn, made_record


def derived_record(**changes: Any) -> RunRecord:
    record = made_record(3, 2, **changes)
    record.derive()
    return record


def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    probe = ProbeRecord(every=2, rows=4, points=[ProbePoint(0, 2, [0.5])])
    flops = FlopRecord(train=[10], one_pass=[5], epochs=[2])
    record = derived_record(probe=probe, flops=flops, overrides=["learner=adapter"])
    record.write(tmp_path)
    assert RunRecord.read(tmp_path) == RunRecord.read(tmp_path / "results.json") == record
    assert RunRecord.from_values(read_values(tmp_path), "here") == record
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_the_file_is_plain_json_with_null_for_what_is_not_there(tmp_path: Path) -> None:
    record = derived_record()
    record.write(tmp_path)
    content = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert list(content) == list(RunRecord.__struct_fields__)
    assert content["schema"] == 2
    assert content["cells"][1] == [asdict(record.cells[1][0]), asdict(record.cells[1][1]), None]
    assert content["matrix"][2] == content["cells"][2] == [None] * 3
    assert content["metrics"]["fwt"] is None
    assert (content["baseline"], content["probe"], content["overrides"]) == (None, None, None)
    assert content["ledger"]["tasks"][1] == vars(record.ledger.tasks[1])
    assert content["timing"]["train_s"] == sum(content["timing"]["by_task"]["train_s"]) == 4.0


def test_what_is_derived_is_that_of_the_cells() -> None:
    """Row by row, against the metrics of what the cells say themselves."""
    record, derivation = made_record(4), Derivation()
    for after in range(4):
        learn(record, after)
        derivation.update(record)
        cells = [[None if c is None else asdict(c) for c in row] for row in record.cells]
        scores = [[None if c is None else c["score"] for c in row] for row in cells]
        assert record.matrix == scores
        correct = [
            [None if c is None else decode_correct(c["correct"], EXAMPLES) for c in row]
            for row in cells
        ]
        rows = record.ledger.tasks
        storage = Storage([r.stored_bytes for r in rows], [0] * (after + 1), 10_000)
        matrix = np.array(scores, dtype=np.float64)
        assert record.metrics == summarize(matrix, Evidence(correct=correct, storage=storage))
        assert record.memory.tasks_checked == after


def test_metrics_are_of_what_the_record_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes where bytes are meant, and every argument that a record can give."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        derived, "summarize", lambda matrix, found: given.update(found._asdict()) or {}
    )
    points = [ProbePoint(0, 2, [0.5])]
    record = made_record(
        2,
        baseline=[0.25, 0.5],
        probe=ProbeRecord(every=2, rows=4, points=points),
        flops=FlopRecord(train=[60, 90], one_pass=[10, 20], epochs=[6, 3]),
        train_bytes=999,
    )
    for after in range(2):
        learn(record, after)
    record.ledger.tasks = [
        replace(row, buffer_examples=3 * number, buffer_bytes=77 * number)
        for number, row in enumerate(record.ledger.tasks, start=1)
    ]
    record.derive()
    assert given["baseline"] == [0.25, 0.5]
    assert given["probe"] == points
    assert given["flops"] == Flops([60, 90], [10, 20], [6, 3])
    assert given["storage"] == Storage(model=[4000, 4400], buffer=[77, 154], data=999)
    assert [len(row) for row in given["correct"]] == [2, 2]


def test_a_longer_run_takes_over_what_was_measured() -> None:
    earlier, whole = made_record(2, 2, overrides=["seed=0"]), made_record(3, 3)
    record = made_record(3, overrides=["resume=x"])
    record.take_over(earlier)
    assert record.score_matrix.rows_done() == 2
    assert record.overrides == ["seed=0", "resume=x"]
    learn(record, 2)
    for name in ("cells", "ledger", "timing", "losses", "fingerprints", "order"):
        assert getattr(record, name) == getattr(whole, name), name


def test_a_probe_goes_on_only_where_it_is_still_wanted() -> None:
    point = ProbePoint(0, 2, [0.5])
    earlier = made_record(probe=ProbeRecord(every=2, rows=4, seconds=1.0, points=[point]))
    without, other = made_record(), made_record(probe=ProbeRecord(every=3, rows=4))
    for record in (without, other):
        record.take_over(earlier)
    assert without.probe is None
    assert other.probe == ProbeRecord(every=3, rows=4, seconds=1.0, points=[point])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_told_where_it_arises(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = ProbeRecord(every=2, rows=4)
    with pytest.raises(ValueError, match="scores of the probe must be finite"):
        probe.add(ProbePoint(0, 1, [value]), 0.1)
    assert probe == ProbeRecord(every=2, rows=4)
    monkeypatch.setattr(derived, "summarize", lambda *arguments: {"bwt": value})
    with pytest.raises(ValueError, match="metric bwt must be finite"):
        derived_record()


def test_a_record_without_overrides_is_an_older_one(tmp_path: Path) -> None:
    derived_record().write(tmp_path)
    values = read_values(tmp_path)
    values.pop("overrides")
    values["later"] = "a key that a later version added"
    (tmp_path / "results.json").write_text(json.dumps(values, indent=1))
    assert RunRecord.read(tmp_path) == derived_record()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"schema":2', '"schema":3', "has schema 3, written by another version"),
        ('"schema":2,', "", "no record of a run"),
        ('"score":', '"score":NaN,"was":', "no record of a run"),
        ('"score":', '"score":"high","was":', "no record of a run"),
        ('"titles":["Task_0",', '"titles":[', "titles has 2 entries for 3 tasks"),
        ('"cells":[[', '"cells":[[null,', "cells is not 3 x 3"),
        ('"status":"partial"', '"status":"done"', "no record of a run"),
        ("generated", "gener\udcffted", "no record of a run"),
        ('"base_parameters":1000', '"base_parameters":0', "at least one task and one parameter"),
    ],
)
def test_what_is_no_record_is_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = derived_record().encode().decode()
    assert old in text
    changed = text.replace(old, new, 1).encode(errors="surrogateescape")
    (tmp_path / "results.json").write_bytes(changed)
    with pytest.raises(UserError, match=message) as caught:
        RunRecord.read(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"null", b"[" * 10_000])
def test_other_files_are_no_record(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UserError, match=r"no run at .*: no such file or directory"):
        RunRecord.read(tmp_path / "results.json")
    with pytest.raises(UserError, match=r"no run at .*: it has no results\.json"):
        RunRecord.read(tmp_path)
    (tmp_path / "results.json").write_bytes(content)
    for read in (RunRecord.read, read_values):
        with pytest.raises(UserError, match="no record of a run"):
            read(tmp_path)
