"""Proves a finished run again: from its files to the same digests, scores, counts and metrics."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.errors import first_line, understood
from stream.evaluation.evaluate import evaluate
from stream.evaluation.probe import Probe
from stream.fingerprint import Fingerprinter
from stream.record.ledger import count_stored
from stream.record.matrix import Cell, ScoreMatrix
from stream.run.checkpoint import BrokenCheckpointError, Checkpoint, CheckpointStore
from stream.run.live_record import Record
from stream.run.load import is_halfway, reopen
from stream.run.resume import first_difference, read_record, recorded_config
from stream.run.setup import Parts, assemble
from stream.run_folder import FILE_NAME
from stream.training.flops import FlopRecord

# What goes on while a task is learned, and so is newer in a checkpoint within a task.
MOVING = ("timing", "probe", "baseline", "metrics")
ABSENT = "absent"  # a key that is not there, which is not the same as null


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
    results = read_record(folder / FILE_NAME)
    checkpoint = _newest(folder)
    if isinstance(checkpoint, str):
        yield Check("checkpoint", "whole", checkpoint)
        return
    yield Check("checkpoint", "whole", "whole")
    with understood(folder / FILE_NAME):
        yield from _checks(folder, results, checkpoint, device)


def _checks(
    folder: Path, results: Mapping[str, Any], checkpoint: Checkpoint, device: str
) -> Iterator[Check]:
    """Compare the record with a checkpoint, with itself, and with what is measured now."""
    kept = {**checkpoint.state["results"], "status": results["status"]}
    free = MOVING if checkpoint.state["training"] is not None else ()
    difference = first_difference(kept, results, free=free, absent=ABSENT)
    yield Check("results.json is what the checkpoint holds", "equal", difference or "equal")
    done = ScoreMatrix.from_json(results["order"], results["cells"]).rows_done()
    # A run whose last row was just written is still partial, until its figures are there.
    status = {"partial", "complete"} if done == len(results["order"]) else {"partial"}
    right = results["status"] in status
    yield Check("status", "known", "known" if right else str(results["status"]))
    promised = results["memory"]["promised"]
    if not done or is_halfway(checkpoint, parameter_isolation=promised):
        config = replace(recorded_config(results), device=device)
        yield from _record_checks(results, assemble(config), config)
        yield Check("weights of a finished row", "none kept yet", "none kept yet")
        return
    run = reopen(folder, results["order"][:done], device, same_data=False)
    yield from _record_checks(results, run.parts, run.config)
    yield from _state_checks(results, run.parts, run.tasks, run.config.evaluation.split)
    for task in run.tasks:
        tokens, split = run.config.evaluation.batch_tokens, run.config.evaluation.split
        cell = evaluate(run.parts.learner, task, split, tokens, run.parts.device)
        yield from _cell_checks(results, task, cell, done)


def _newest(folder: Path) -> Checkpoint | str:
    """Return the newest checkpoint, or what is wrong with any that is kept."""
    store = CheckpointStore(folder)
    found = None
    try:
        for generation in store.generations():
            found = store.read(generation)
    except BrokenCheckpointError as error:
        return first_line(error)
    return "missing" if found is None else found


def _record_checks(results: Mapping[str, Any], parts: Parts, config: RunConfig) -> Iterator[Check]:
    """Compute again what results.json derives from its own cells."""
    matrix = ScoreMatrix(results["order"])
    record = Record(config, parts.tasks, parts.leaks, results["device"], matrix, parts.ledger)
    if results["probe"] is not None:
        record.probe = Probe(config.probe, config.evaluation, samples=[])
    if results["flops"] is not None:
        record.flops = FlopRecord()
    record.restore(results)
    again = json.loads(json.dumps(record.as_json()))
    for name in ("matrix", "metrics", "memory", "data"):
        difference = first_difference(results[name], again[name], name, absent=ABSENT)
        yield Check(f"{name}, computed again", "equal", difference or "equal")


def _state_checks(
    results: Mapping[str, Any], parts: Parts, tasks: list[Task], split: str
) -> Iterator[Check]:
    """Count and fingerprint what was loaded from disk."""
    learner, row = parts.learner, results["ledger"]["tasks"][-1]
    parameters, size = count_stored(learner.stored_states(tasks))
    yield Check("stored parameters", f"{row['stored_parameters']:,}", f"{parameters:,}")
    yield Check("stored bytes", f"{row['stored_bytes']:,}", f"{size:,}")
    buffer = learner.buffer
    examples = buffer.examples if buffer is not None else 0
    yield Check("remembered examples", f"{row['buffer_examples']:,}", f"{examples:,}")
    fingerprinter = Fingerprinter()
    for task in tasks:
        state = learner.served_state(task.name)
        found = fingerprinter.of(state, task.hashes[split], task.spec.metric)
        yield _short(f"{task.name}: fingerprint", results["fingerprints"].get(task.name), found)


def _cell_checks(results: Mapping[str, Any], task: Task, cell: Cell, done: int) -> Iterator[Check]:
    """Compare a task's evaluation now with its last cell, and with its first where promised."""
    column = results["order"].index(task.name)
    rows = [done - 1]
    if results["memory"]["promised"]:
        rows.append(column)
    for row in dict.fromkeys(rows):
        recorded = results["cells"][row][column]
        place = "last row" if row == done - 1 else "diagonal"
        yield _short(f"{task.name}: digest, {place}", recorded["digest"], cell.digest)
        yield Check(f"{task.name}: score, {place}", repr(recorded["score"]), repr(cell.score))
        same = recorded["correct"] == cell.correct
        found = "as recorded" if same else "changed"
        yield Check(f"{task.name}: which examples are right, {place}", "as recorded", found)


def _short(what: str, expected: str | None, found: str) -> Check:
    """Return a check of two digests, shortened unless they differ late."""
    if expected == found:
        return Check(what, found[:12], found[:12])
    return Check(what, str(expected), found)
