"""Proves a finished run again: from its files to the same digests, scores, counts and metrics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stream.config.run import CheckpointConfig
from stream.data.task import Task
from stream.errors import first_line, understood
from stream.files.run_folder import FILE_NAME, run_folder_of
from stream.record.matrix import Cell
from stream.record.run_record import RunRecord, read_values
from stream.run.accounting import ServedFingerprints, count_stored, router_storage
from stream.run.checkpoint import BrokenCheckpointError, CheckpointStore
from stream.run.checkpoint_manager import CheckpointManager, SavedRun
from stream.run.load import config_on, load_weights
from stream.run.run import Run
from stream.run.settings import first_difference
from stream.run.setup import build_run

WITH_ROWS = (
    "matrix",
    "cells",
    "metrics",
    "memory",
    "ledger",
    "timing",
    "losses",
    "probe",
    "linear_probe",
    "flops",
    "routing",
    "fingerprints",
    "selection",
)
"""What rows add to: a results.json that was written before the last row lacks it."""
CHANGING_WITHIN_TASK = ("timing", "probe", "baseline", "metrics", "losses", "selection")
MISSING_KEY = "absent"  # which is not the same as null


@dataclass(frozen=True)
class Check:
    """One comparison of what a run recorded with what its files say now."""

    what: str
    expected: str
    found: str

    @property
    def ok(self) -> bool:
        """Whether both are the same."""
        return self.expected == self.found


def verify(folder: Path, device: str = "auto") -> Iterator[Check]:
    """Yield the checks of one run as they are made, cheap ones first.

    Args:
        folder: a run folder with its checkpoint.
        device: where tasks are evaluated again; digests are promised for the run's own kind only.

    Raises:
        UserError: no run, or a configuration or data that cannot be read.
    """
    folder = run_folder_of(folder)
    record = RunRecord.read(folder)
    saved = _newest(folder)
    if isinstance(saved, str):
        yield Check("checkpoint", "whole", saved)
        return
    yield Check("checkpoint", "whole", "whole")
    with understood(folder / FILE_NAME):
        yield from _file_checks(folder, record, saved)
        if len(record.ledger.tasks) > len(saved.record.ledger.tasks):
            record = saved.record  # a row without its checkpoint is computed again
        run = build_run(config_on(device, record), folder)
        yield from _record_checks(record, run)
        yield from _served_checks(saved, record, run)


def _newest(folder: Path) -> SavedRun | str:
    """Return the newest checkpoint, or what is wrong with any that is kept."""
    store, checked, found = CheckpointStore(folder), set[str](), None
    try:
        for generation in store.generations():
            found = store.read(generation, checked)
    except BrokenCheckpointError as error:
        return first_line(error)
    if found is None:
        return "missing"
    return CheckpointManager(folder, CheckpointConfig()).saved_run(found)


def _file_checks(folder: Path, record: RunRecord, saved: SavedRun) -> Iterator[Check]:
    """Compare results.json, value by value, with what the checkpoint holds."""
    written = read_values(folder)
    difference = first_difference(
        _saved_values(saved, record), written, "", _free(saved, written), MISSING_KEY
    )
    yield Check("results.json is what the checkpoint holds", "equal", difference or "equal")
    # A run whose last row was just written is still partial, until its figures are there.
    done = record.score_matrix.rows_done()
    known = {"partial", "complete"} if done == len(record.order) else {"partial"}
    yield Check("status", "known", "known" if record.status in known else record.status)


def _saved_values(saved: SavedRun, record: RunRecord) -> dict[str, Any]:
    """Return what results.json has to hold, by the checkpoint."""
    state = saved.checkpoint.state
    values = state["results"] if saved.rows is None else _values(saved.record.values())
    return {**values, "status": record.status}


def _free(saved: SavedRun, written: Mapping[str, Any]) -> Sequence[str]:
    """Return the keys of results.json that may differ from the checkpoint's.

    A run that was killed has its last rows in rows.jsonl alone, which the checkpoint covers.
    """
    free = CHANGING_WITHIN_TASK if saved.training is not None else ()
    partial = saved.rows is not None and written["status"] == "partial"
    same = len(written["ledger"]["tasks"]) == len(saved.record.ledger.tasks)
    return (*free, *WITH_ROWS) if partial and not same else free


def _record_checks(record: RunRecord, run: Run) -> Iterator[Check]:
    """Compute again what results.json derives from its own cells, and from the data."""
    run.record.take_over(record)
    run.update_record()
    for name in ("matrix", "metrics", "memory", "data"):
        then, now = (_values(getattr(found, name)) for found in (record, run.record))
        # A metric that came later is null in a run that cannot have it.
        missing = None if name == "metrics" else MISSING_KEY
        difference = first_difference(then, now, name, (), missing)
        yield Check(f"{name}, computed again", "equal", difference or "equal")


def _values(found: Any) -> Any:
    """Return a part of a record as JSON values."""
    return msgspec.json.decode(msgspec.json.encode(found))


def _served_checks(saved: SavedRun, record: RunRecord, run: Run) -> Iterator[Check]:
    """Load what was learned, count it, and evaluate every learned task again."""
    done = run.num_done
    if not done or not saved.serves:
        yield Check("weights of a finished row", "none kept yet", "none kept yet")
        return
    tasks = run.tasks[:done]
    load_weights(run, saved, record.order[:done])
    fingerprints = ServedFingerprints(run)
    yield from _state_checks(record, run, tasks, fingerprints)
    for task in tasks:
        cell = run.measure_routed(task, tasks, fingerprints.of)
        yield from _cell_checks(record, task, cell, done)
        yield from _routed_checks(record, task, cell, done)


def _state_checks(
    record: RunRecord, run: Run, tasks: Sequence[Task], fingerprints: ServedFingerprints
) -> Iterator[Check]:
    """Count and fingerprint what was loaded from disk."""
    learner, row = run.learner, record.ledger.tasks[-1]
    parameters, size = count_stored(learner.stored_states(tasks))
    yield Check("stored parameters", f"{row.stored_parameters:,}", f"{parameters:,}")
    yield Check("stored bytes", f"{row.stored_bytes:,}", f"{size:,}")
    buffer = learner.buffer
    examples = buffer.examples if buffer is not None else 0
    yield Check("remembered examples", f"{row.buffer_examples:,}", f"{examples:,}")
    if run.routing is not None:
        numbers, size = router_storage(run, tasks)
        yield Check("numbers stored by the router", f"{row.router_parameters:,}", f"{numbers:,}")
        yield Check("bytes stored by the router", f"{row.router_bytes:,}", f"{size:,}")
    for task in tasks:
        found = fingerprints.of(task)
        yield _short(f"{task.name}: fingerprint", record.fingerprints.get(task.name), found)


def _cell_checks(record: RunRecord, task: Task, cell: Cell, done: int) -> Iterator[Check]:
    """Compare a task's evaluation now with its last cell, and with its first where promised."""
    column = record.order.index(task.name)
    rows = [done - 1]
    if record.memory.promised:
        rows.append(column)
    for row in dict.fromkeys(rows):
        recorded = record.cells[row][column]
        place = "last row" if row == done - 1 else "diagonal"
        if recorded is None:
            yield Check(f"{task.name}: cell, {place}", "evaluated", "missing")
            continue
        yield _short(f"{task.name}: digest, {place}", recorded.digest, cell.digest)
        yield Check(f"{task.name}: score, {place}", repr(recorded.score), repr(cell.score))
        found = "as recorded" if recorded.correct == cell.correct else "changed"
        yield Check(f"{task.name}: which examples are right, {place}", "as recorded", found)


def _routed_checks(record: RunRecord, task: Task, cell: Cell, done: int) -> Iterator[Check]:
    """Compare which tasks are inferred now, and the score of their answers, with the last row."""
    recorded, found = record.cells[done - 1][record.order.index(task.name)], cell.routed
    if found is None:
        return
    then = None if recorded is None else recorded.routed
    if then is None:
        yield Check(f"{task.name}: inferred tasks", "recorded", "missing")
        return
    yield _short(f"{task.name}: inferred tasks", then.digest, found.digest)
    for name in ("score", "accuracy", "counts"):
        old, new = (repr(getattr(routed, name)) for routed in (then, found))
        yield Check(f"{task.name}: {name} with inferred tasks", old, new)


def _short(what: str, expected: str | None, found: str) -> Check:
    """Return a check of two digests, shortened unless they differ late."""
    if expected == found:
        return Check(what, found[:12], found[:12])
    return Check(what, str(expected), found)
