"""The work of learning a task, known before it starts: passes, steps and examples."""

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
    """The work of learning one task, known before it starts; ``steps`` are those of all epochs."""

    epochs: int
    steps: int
    examples: int

    def twice(self) -> "Workload":
        """Return the work of two stages that are alike."""
        return Workload(2 * self.epochs, 2 * self.steps, 2 * self.examples)


def planned_work(rows: int, training: TrainingConfig) -> Workload:
    """Return the epochs, steps and examples that ``rows`` training rows get."""
    steps = -(-rows // training.batch_size)  # of one epoch
    epochs = max(training.epochs, -(-training.min_steps // steps))
    return Workload(epochs, epochs * steps, epochs * rows)
