"""Numbers of one run, as tables and figures read them from its record; None where unknown."""

from collections.abc import Callable
from statistics import mean
from typing import Any

from stream.config.run import TrainingConfig
from stream.learners.workload import planned_work
from stream.record.run_record import RunRecord

Value = Callable[[RunRecord], float | None]
PLAN = ("epochs", "min_steps", "batch_size")  # the settings that decide the steps of a task


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


def relative_steps(record: RunRecord) -> float | None:
    """Training steps as a multiple of the plain schedule's: of one pass after another over a task.

    The plain schedule is what `training` of the run's settings gives tasks of these rows. Learners
    in two stages have 2, for one; those without steps 0. None where the run is not complete, or
    its record, of an earlier version, lacks a part of this.
    """
    rows = [record.data.rows.get(name, {}).get("train") for name in record.order]
    told = record.timing.by_task.steps
    plan = {name: setting(record, f"training.{name}") for name in PLAN}
    if record.status != "complete" or not told or None in rows or None in plan.values():
        return None
    training = TrainingConfig(**plan)
    plain = sum(planned_work(number, training).steps for number in rows if number is not None)
    return sum(told) / plain if plain else None


def train_flops(record: RunRecord) -> float | None:
    """Floating-point operations of learning, where they were counted."""
    return None if record.flops is None else sum(record.flops.train)


def setting(record: RunRecord, name: str) -> Any:
    """The value of a dotted setting such as ``learner.size``; None where there is none."""
    value: Any = record.config
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
