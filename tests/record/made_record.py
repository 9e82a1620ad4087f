"""A record of a run with made-up evidence, for tests."""

import base64
from typing import Any

import numpy as np

from stream.record.ledger import LedgerRecord
from stream.record.matrix import Cell
from stream.record.parts import DataRecord, MemoryRecord, TimingRecord
from stream.record.run_record import CORE_METRICS, RunRecord

EXAMPLES = 20


def made_cell(after: int, on: int) -> Cell:
    """Evidence that depends on its place."""
    right = np.random.default_rng([after, on]).random(EXAMPLES) < 0.6
    correct = base64.b64encode(np.packbits(right).tobytes()).decode()
    return Cell(float(right.mean()), f"{after}-{on}", "measured", 0.1 * on, correct=correct)


def made_record(num_tasks: int = 3, num_done: int = 0, **changes: Any) -> RunRecord:
    """A record of ``num_tasks`` tasks, ``num_done`` of which were learned; nothing is derived."""
    names = [f"task_{number}" for number in range(num_tasks)]
    record = RunRecord(
        learner="adapter",
        stream="custom",
        backbone="tiny",
        source="generated",
        order=names,
        titles=[name.title() for name in names],
        metric_names=["accuracy"] * num_tasks,
        labels={name: ["no", "yes"] for name in names},
        seed=0,
        split="test",
        device="cpu",
        matrix=[[None] * num_tasks for _ in names],
        cells=[[None] * num_tasks for _ in names],
        metrics=dict.fromkeys(CORE_METRICS),
        memory=MemoryRecord(promised=False),
        ledger=LedgerRecord(base_parameters=1000, encoder_layer_parameters=500),
        timing=TimingRecord(),
        losses={},
        probe=None,
        flops=None,
        fingerprints={},
        data=DataRecord(
            source="generated", hash="a" * 64, rows={name: {"test": EXAMPLES} for name in names}
        ),
        versions={"python": "3.11"},
        config={"seed": 0, "learner": {"lr": 1e-3}},
        train_bytes=10_000,
    )
    for after in range(num_done):
        learn(record, after)
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def learn(record: RunRecord, after: int) -> None:
    """Fill the record as learning task ``after`` would."""
    name = record.order[after]
    for on in range(after + 1):
        record.score_matrix.record(after, on, made_cell(after, on))
    record.ledger.add(name, 100, (1000 + 100 * after, 4000 + 400 * after), (0, 0))
    record.timing.learned(1.5 + after, 64, 6)
    record.timing.evaluated(0.25, EXAMPLES * (after + 1))
    record.losses[name] = [0.7, 0.6 - 0.1 * after]
    record.fingerprints[name] = f"{after:064}"
    if after == 1:
        record.eager[name] = "out of memory"
