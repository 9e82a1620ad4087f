"""The work of learning a task, known before it starts: passes, steps and examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stream.config.run import TrainingConfig


@dataclass(frozen=True)
class Epoch:
    """One pass over a task: its index from 0, how many there are, and the run's schedule."""

    index: int
    count: int
    training: TrainingConfig

    @property
    def batch_size(self) -> int:
        """Rows of the new task in each batch."""
        return self.training.batch_size

    @property
    def is_late(self) -> bool:
        """Whether it is in the second half: the second of two stages."""
        return 2 * self.index >= self.count


class Workload(NamedTuple):
    """The work of learning one task, known before it starts.

    Attributes:
        epochs: passes that the loop makes.
        steps: of all epochs.
        examples: of all epochs.
        passes: how often the task's own training rows are read, where it is not ``epochs``.
    """

    epochs: int
    steps: int
    examples: int
    passes: int | None = None

    def twice(self) -> "Workload":
        """Return the work of two stages that are alike."""
        return Workload(2 * self.epochs, 2 * self.steps, 2 * self.examples)

    @property
    def own_passes(self) -> int:
        """How often the task's own training rows are read."""
        return self.epochs if self.passes is None else self.passes


def all_of(works: Sequence[Workload]) -> Workload:
    """Return the work of several learners, one after another."""
    return Workload(
        epochs=sum(work.epochs for work in works),
        steps=sum(work.steps for work in works),
        examples=sum(work.examples for work in works),
        passes=sum(work.own_passes for work in works),
    )


def planned_work(rows: int, training: TrainingConfig) -> Workload:
    """Return the epochs, steps and examples that ``rows`` training rows get."""
    steps = -(-rows // training.batch_size)  # of one epoch
    epochs = max(training.epochs, -(-training.min_steps // steps))
    return Workload(epochs, epochs * steps, epochs * rows)
