"""What methods share that keep examples of earlier tasks while they train shared weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from stream.data.task import Task
from stream.errors import require
from stream.learners._shared.replay_buffer import ReplayBuffer
from stream.learners._shared.sequential import Sequential
from stream.models.heads import TaskModel


@dataclass
class Remembering(Sequential):
    """Train shared weights with ``replayed`` remembered rows a step.

    ``budget`` is the rows kept of each task, or ``all``.
    """

    budget: int | str = 50
    replayed: int = 16

    def __post_init__(self) -> None:
        """Refuse budgets that are neither a positive number nor ``all``."""
        super().__post_init__()
        valid = self.budget == "all" or (isinstance(self.budget, int) and self.budget >= 1)
        require(valid, f"learner.budget must be at least 1, or all; got {self.budget!r}")
        require(self.replayed >= 1, f"learner.replayed must be at least 1, got {self.replayed}")

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Start with an empty memory."""
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)
        limit = None if self.budget == "all" else int(self.budget)
        self._memory = ReplayBuffer(limit, seed)

    def end_task(self, task: Task) -> None:
        """Remember rows of the task."""
        super().end_task(task)
        self._memory.add(task)

    def restore(self, task: Task, owned: Mapping[str, torch.Tensor]) -> None:
        """Adopt a task and remember its rows again: the sample depends on names alone."""
        super().restore(task, owned)
        self._memory.add(task)

    def buffer(self) -> ReplayBuffer:
        """Return the memory."""
        return self._memory


@dataclass
class Rehearsing(Remembering):
    """Remembered rows are learned again, so earlier heads go on learning too."""

    def trains_head(self, name: str, task: Task) -> bool:
        """The heads of all tasks met so far."""
        return name == task.name or any(name == earlier.name for earlier in self.learned)
