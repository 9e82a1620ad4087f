"""The closing words of a run: what was promised, and what was asked for at a price."""

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

from stream.metrics.within_task import ProbePoint
from stream.record.derived import Derivation
from stream.record.run_record import FlopRecord, MemoryRecord, ProbeRecord, RunRecord
from stream.report.summary import as_text, closing_table, memory_line
from tests.record.made_record import made_record


def made(num_tasks: int, *, unseen: bool = False, **changes: Any) -> RunRecord:
    config = {"seed": 0, "learner": {"lr": 1e-3}, "evaluation": {"unseen": unseen}}
    return made_record(num_tasks, num_tasks, config=config, **changes)


def test_one_task_alone_is_no_proof_of_memory() -> None:
    memory = MemoryRecord(promised=True)
    assert "0 of 0" not in memory_line(made(1, memory=memory))
    memory = MemoryRecord(promised=True, tasks_checked=2, tasks_identical=1)
    assert memory_line(made(3, memory=memory)).startswith("perfect memory: 1 of 2 earlier tasks")


def told(record: RunRecord) -> str:
    """The closing table as text, each row on one line."""
    Derivation().update(record)
    screen = io.StringIO()
    Console(file=screen, width=200).print(closing_table(record))
    return screen.getvalue()


def test_what_cost_time_is_shown_at_the_end_and_nothing_else() -> None:
    rows = ("forward transfer", "lowest score since learned", "operations of learning")
    assert not any(row in told(made(2)) for row in rows)
    probe = ProbeRecord(every=1, rows=4)
    for point in (ProbePoint(0, 1, [0.9]), ProbePoint(1, 1, [0.25, 0.3])):
        probe.add(point, 0.1)
    flops = FlopRecord(train=[30 * 10**9, 60 * 10**9], one_pass=[10**10] * 2, epochs=[3, 3])
    text = told(made(2, unseen=True, probe=probe, flops=flops))
    assert "needs two tasks, evaluation.baseline" in text  # it was not measured here
    assert "25.0 (min-ACC, 2 measurements by the probe)" in text
    assert "90.0 GFLOP, efficiency (CE) 0.75" in text


def test_the_closing_block_fits_80_columns() -> None:
    probe = ProbeRecord(every=1, rows=4)
    for point in (ProbePoint(0, 1, [0.9]), ProbePoint(1, 1, [0.25, 0.3])):
        probe.add(point, 0.1)
    flops = FlopRecord(train=[3 * 10**15, 6 * 10**15], one_pass=[10**15] * 2, epochs=[3, 3])
    record = made(2, unseen=True, probe=probe, flops=flops)
    large = {"trained_parameters": 124_654_321, "trained_fraction_of_layers": 1.004}
    large |= {"buffer_examples": 12_345_678, "buffer_bytes": 2**40}
    record.ledger.tasks = [replace(row, **large) for row in record.ledger.tasks]
    Derivation().update(record)
    narrow = io.StringIO()
    Console(file=narrow, width=80).print(closing_table(record))
    lines = narrow.getvalue().splitlines()
    assert len(lines) == len(as_text(closing_table(record)).splitlines())
    assert max(map(len, lines)) <= 80
