"""Records of made-up runs, by default of three tasks with round numbers.

They are built through `RunRecord`, so that they cannot have another form than real ones.
"""

import copy
import json
from pathlib import Path
from typing import Any

import msgspec

from analysis.runs.collect import RecordedRun
from stream.metrics.within_task import ProbePoint
from stream.record.ledger import LedgerRow
from stream.record.run_record import (
    DataRecord,
    FlopRecord,
    LedgerRecord,
    MemoryRecord,
    ProbeRecord,
    RunRecord,
    TimingRecord,
)

ORDER = ["sst2", "crowdflower_us_economic_performance", "cola"]
TITLES = {ORDER[0]: "SST-2", ORDER[1]: "CF US economic performance", ORDER[2]: "CoLA"}
METRIC_NAMES = {"cola": "matthews_correlation"}  # of others: accuracy
MATRIX = [[0.9, None, None], [0.8, 0.7, None], [0.6, 0.75, -0.1]]
# By hand: average (0.6 + 0.75 - 0.1) / 3; learning (0.9 + 0.7 - 0.1) / 3;
# BWT ((0.6 - 0.9) + (0.75 - 0.7)) / 2; forgetting ((0.9 - 0.6) + (0.7 - 0.75)) / 2.
METRICS: dict[str, float | None] = {
    "average_score": 1.25 / 3,
    "learning_score": 0.5,
    "bwt": -0.125,
    "forgetting": 0.125,
}
BASE = 1_000_000


def ledger_row(number: int, **changes: Any) -> LedgerRow:
    """The account after the task of that number, from 1."""
    values: dict[str, Any] = {
        "task": ORDER[(number - 1) % 3],
        "trained_parameters": 10_000 * number,
        "trained_fraction": 0.01 * number,
        "trained_fraction_of_layers": 0.02 * number,
        "stored_parameters": BASE + 100_000 * number,
        "stored_bytes": 4 * BASE,
        "buffer_examples": 0,
        "buffer_bytes": 0,
    }
    return LedgerRow(**values | changes)


def ledger_of(*rows: LedgerRow, base: int = BASE) -> LedgerRecord:
    """A ledger of these rows."""
    total = rows[-1].stored_parameters / base if rows else None
    return LedgerRecord(
        base_parameters=base,
        encoder_layer_parameters=base // 2,
        total_multiple=total,
        tasks=list(rows),
    )


def memory_of(*, promised: bool = False, checked: int = 2, identical: int = 1) -> MemoryRecord:
    return MemoryRecord(promised=promised, tasks_checked=checked, tasks_identical=identical)


def probe_of(*points: tuple[int, int, list[float]]) -> ProbeRecord:
    """A probe of (task, step, scores)."""
    return ProbeRecord(every=2, rows=8, seconds=0.1, points=[ProbePoint(*p) for p in points])


def flops_of(*train: int) -> FlopRecord:
    return FlopRecord(train=list(train), one_pass=[10**9] * len(train), epochs=[1] * len(train))


def data_of(hash_: str = "a" * 64, **changes: Any) -> DataRecord:
    return DataRecord(source="generated", hash=hash_, **changes)


def record_of(learner: str = "finetune", seed: int = 0, **changes: Any) -> RunRecord:
    """The record of a complete run; ``order`` decides how many tasks the rest has by default."""
    order = changes.get("order", ORDER)
    values: dict[str, Any] = {
        "status": "complete",
        "learner": learner,
        "stream": "custom",
        "backbone": "minilm",
        "source": "generated",
        "order": order,
        "titles": [TITLES.get(name, name) for name in order],
        "metric_names": [METRIC_NAMES.get(name, "accuracy") for name in order],
        "labels": {},
        "seed": seed,
        "split": "test",
        "device": "cpu",
        "matrix": MATRIX if len(order) == 3 else _half(len(order)),
        "cells": [[None] * len(order) for _ in order],
        "baseline": None,
        "metrics": METRICS,
        "memory": memory_of(),
        "ledger": ledger_of(*(ledger_row(1 + k % 3) for k in range(len(order)))),
        "timing": TimingRecord(train_s=60.0, evaluate_s=12.0),
        "losses": {},
        "probe": None,
        "flops": None,
        "fingerprints": {},
        "data": data_of(),
        "versions": {},
        "config": {"learner": {"lr": 5e-5}, "training": {"epochs": 3}, "seed": seed},
    }
    return RunRecord(**copy.deepcopy(values | changes))


def _half(num_tasks: int) -> list[list[float | None]]:
    """A matrix in which each task is always scored 0.5."""
    return [[0.5 if j <= i else None for j in range(num_tasks)] for i in range(num_tasks)]


def runs_of(*records: RunRecord) -> list[RecordedRun]:
    """Runs in folders 0, 1, ..."""
    return [RecordedRun(Path(str(number)), record) for number, record in enumerate(records)]


def write(folder: Path, record: RunRecord) -> Path:
    """Write a run folder."""
    folder.mkdir(parents=True, exist_ok=True)
    record.write(folder)
    return folder


def write_broken(folder: Path, content: Any) -> Path:
    """Write a run folder with any text, or any values as JSON, in place of a record."""
    folder.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "results.json").write_text(text, encoding="utf-8")
    return folder


def values_of(record: RunRecord, **changes: Any) -> dict[str, Any]:
    """A record as JSON values, some of them replaced; a value of None is taken out."""
    values = msgspec.to_builtins(record) | changes
    return {key: value for key, value in values.items() if key not in changes or value is not None}
