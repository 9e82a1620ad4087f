"""The parts of a record, as a run fills them: memory, times, probes, operations, routing, data.

Lists go by task, in the order in which tasks were learned; seconds are wall time.
"""

import math
from typing import Any

import msgspec

from stream.metrics.within_task import ProbePoint


class MemoryRecord(msgspec.Struct, kw_only=True):
    """How much of the memory is perfect: digests of the last row against the diagonal."""

    promised: bool
    """Whether the method keeps what earlier tasks use as it is, so that no logit may change."""
    tasks_checked: int = 0
    tasks_identical: int = 0


class TaskTimes(msgspec.Struct, kw_only=True):
    """Seconds, examples and steps of each learned task, in order."""

    train_s: list[float] = []
    evaluate_s: list[float] = []
    train_examples: list[int] = []
    evaluate_examples: list[int] = []
    steps: list[int] = []


class TimeTotals(msgspec.Struct, kw_only=True):
    """Wall time in seconds of a run so far, and the work done in it.

    With ``select``, learning a task is that of all its candidates; what scoring these on validation
    rows took is ``select_s`` and ``select_examples``.
    """

    prepare_s: float = 0.0
    baseline_s: float = 0.0
    train_s: float = 0.0
    evaluate_s: float = 0.0
    select_s: float = 0.0
    train_examples: int = 0
    evaluate_examples: int = 0
    select_examples: int = 0
    steps: int = 0


TOTALS = TimeTotals.__struct_fields__


class TimingRecord(TimeTotals, kw_only=True):
    """The totals, and the times ``by_task``."""

    by_task: TaskTimes = msgspec.field(default_factory=TaskTimes)

    def learned(self, seconds: float, examples: int, steps: int) -> None:
        """Note what learning a task took."""
        self.by_task.train_s.append(seconds)
        self.by_task.train_examples.append(examples)
        self.by_task.steps.append(steps)
        self.train_s += seconds
        self.train_examples += examples
        self.steps += steps

    def evaluated(self, seconds: float, examples: int) -> None:
        """Note what scoring the tasks after a task took."""
        self.by_task.evaluate_s.append(seconds)
        self.by_task.evaluate_examples.append(examples)
        self.evaluate_s += seconds
        self.evaluate_examples += examples

    @property
    def totals(self) -> TimeTotals:
        """The totals alone."""
        return TimeTotals(**{name: getattr(self, name) for name in TOTALS})

    def now(self, totals: TimeTotals) -> None:
        """Replace the totals."""
        for name in TOTALS:
            setattr(self, name, getattr(totals, name))


class ProbeRecord(msgspec.Struct, kw_only=True):
    """Scores within tasks: every ``every`` steps, on ``rows`` examples of each task met."""

    every: int
    rows: int
    seconds: float = 0.0
    points: list[ProbePoint] = []

    def add(self, point: ProbePoint, seconds: float) -> None:
        """Append what was seen, and the time that it took.

        Raises:
            ValueError: a score is not finite; in JSON it would silently become null.
        """
        if not all(map(math.isfinite, point.scores)):
            raise ValueError(f"scores of the probe must be finite, got {point.scores}")
        self.points.append(point)
        self.seconds += seconds


class LinearProbeRecord(msgspec.Struct, kw_only=True):
    """Scores of heads trained anew on the encoder as it was; None of a task that has none.

    Attributes:
        learned: right after each task was learned.
        final: of every task at the end; empty before.
        seconds: what the probes took.
    """

    learned: list[float | None] = []
    final: list[float | None] = []
    seconds: float = 0.0


class FlopRecord(msgspec.Struct, kw_only=True):
    """Floating-point operations of each learned task.

    Attributes:
        train: operations spent learning the task.
        one_pass: operations of one forward and backward pass over its training rows alone.
        epochs: passes over its rows.
    """

    train: list[int] = []
    one_pass: list[int] = []
    epochs: list[int] = []

    def add(self, spent: int, one_pass: int, epochs: int) -> None:
        """Append the entry of a task that was just learned."""
        self.train.append(spent)
        self.one_pass.append(one_pass)
        self.epochs.append(epochs)


class RoutingRecord(msgspec.Struct, kw_only=True):
    """How tasks were inferred; what came of it is in the cells.

    Attributes:
        kind: the kind of router.
        learn_s: seconds in which the router learned each task.
    """

    kind: str
    learn_s: list[float] = []


class DataRecord(msgspec.Struct, kw_only=True):
    """Where the rows came from. By task and split: how many, how many cut, hashes, accounts."""

    source: str
    hash: str
    rows: dict[str, dict[str, int]] = {}
    truncated: dict[str, dict[str, int]] = {}
    hashes: dict[str, dict[str, str]] = {}
    accounts: dict[str, dict[str, dict[str, Any]]] = {}
    leaks: list[dict[str, Any]] = []
