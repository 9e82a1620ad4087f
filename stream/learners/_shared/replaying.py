"""What methods share that keep examples of earlier tasks while they train shared weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream.config.setting import at_least, setting
from stream.data.task import Task
from stream.errors import require
from stream.learners._shared.features import collected, text_vectors
from stream.learners._shared.replay_buffer import BALANCES, SELECTIONS, ReplayBuffer
from stream.learners._shared.sequential import Sequential
from stream.models.encoder import Encoder


@dataclass
class Replaying(Sequential):
    """Train shared weights with stored examples in every step.

    Stored examples are learned again, so earlier heads go on learning too.

    Attributes:
        budget: examples stored of each task; with ``selection=reservoir`` those of all tasks
            together.
        replayed: stored examples read in each step.
        balance: a task's examples are chosen from all its rows (``task``), or as many from each of
            its classes as rows reach (``class``).
        selection: how they are chosen: drawn (``uniform``); those whose running mean in the
            encoder's space follows the mean of all, or of each class (``herding``, as iCaRL); or
            as a sample of all rows of the stream so far (``reservoir``).
    """

    budget: int | str = setting(50, at_least(1, others=("all",)))
    replayed: int = setting(32, at_least(1))
    balance: str = setting("task", BALANCES)
    selection: str = setting("uniform", SELECTIONS)

    def __post_init__(self) -> None:
        """Check every field, and that rows have to be chosen at all.

        Raises:
            UserError: a choice without effect.
        """
        super().__post_init__()
        for name in ("balance", "selection"):
            given = getattr(self, name)
            chooses = self.budget != "all" or given in ("task", "uniform")
            require(chooses, f"learner.{name}={given} has no effect with learner.budget=all")
        require(
            self.balance == "task" or self.selection != "reservoir",
            "learner.balance=class has no effect with learner.selection=reservoir, which samples "
            "the rows of all tasks alike; use uniform or herding",
        )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Start with an empty buffer."""
        super().setup(encoder, task_names)
        budget = None if self.budget == "all" else int(self.budget)
        self.buffer = ReplayBuffer(budget, self.seed, self.balance, self.selection, self._vectors)

    def _vectors(self, task: Task) -> np.ndarray:
        """Return the encoder's vector of each training row of a task, float64 [N, D]."""
        return collected(text_vectors(self.model, task, self.pad_id))

    def trains_head(self, name: str, task: Task) -> bool:
        """Return true for the heads of all tasks met so far."""
        return any(name == met.head_name for met in (task, *self.learned))

    @property
    def stored(self) -> ReplayBuffer:
        """The buffer."""
        assert self.buffer is not None
        return self.buffer
