"""Numbers of one run, as tables and figures read them from its record; None where unknown."""

from collections.abc import Callable
from statistics import mean
from typing import Any

from stream.record.run_record import RunRecord

Value = Callable[[RunRecord], float | None]


def metric(name: str) -> Value:
    """Return how to read one of the recorded metrics."""
    return lambda record: record.metrics.get(name)


def num_learned(record: RunRecord) -> int:
    """How many tasks have been learned and scored."""
    return sum(any(score is not None for score in row) for row in record.matrix)


def trained_fraction(record: RunRecord) -> float | None:
    """Mean over the tasks of the trained parameters as a fraction of the base."""
    rows = record.ledger.tasks
    return mean(row.trained_fraction for row in rows) if rows else None


def trained_parameters(record: RunRecord) -> float | None:
    """Parameters trained for a task, mean over the tasks."""
    rows = record.ledger.tasks
    return float(mean(row.trained_parameters for row in rows)) if rows else None


def total_multiple(record: RunRecord) -> float | None:
    """All stored parameters as a multiple of the base model's."""
    return record.ledger.total_multiple


def train_s(record: RunRecord) -> float:
    """Seconds of learning, all tasks."""
    return record.timing.train_s


def elapsed_s(record: RunRecord) -> float:
    """Seconds of learning and evaluation together."""
    return record.timing.train_s + record.timing.evaluate_s


def train_flops(record: RunRecord) -> float | None:
    """Floating-point operations of learning, where they were counted."""
    return None if record.flops is None else sum(record.flops.train)


def setting(record: RunRecord, name: str) -> Any:
    """The value of a dotted setting such as ``learner.size``; None where there is none."""
    value: Any = record.config
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
