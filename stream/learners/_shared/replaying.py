"""What methods share that keep examples of earlier tasks while they train shared weights."""

from collections.abc import Sequence
from dataclasses import dataclass

from stream.config.setting import at_least, setting
from stream.data.task import Task
from stream.learners._shared.replay_buffer import ReplayBuffer
from stream.learners._shared.sequential import Sequential
from stream.models.encoder import Encoder


@dataclass
class Replaying(Sequential):
    """Train shared weights with stored examples in every step.

    Stored examples are learned again, so earlier heads go on learning too.

    Attributes:
        budget: examples stored of each task.
        replayed: stored examples read in each step.
    """

    budget: int | str = setting(50, at_least(1, others=("all",)))
    replayed: int = setting(16, at_least(1))

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Start with an empty buffer."""
        super().setup(encoder, task_names)
        self.buffer = ReplayBuffer(None if self.budget == "all" else int(self.budget), self.seed)

    def trains_head(self, name: str, task: Task) -> bool:
        """Return true for the heads of all tasks met so far."""
        return any(name == met.head_name for met in (task, *self.learned))

    @property
    def stored(self) -> ReplayBuffer:
        """The buffer."""
        assert self.buffer is not None
        return self.buffer
