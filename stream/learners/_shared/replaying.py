"""What methods share that keep examples of earlier tasks while they train shared weights.

Stored examples come in blocks whose shapes do not depend on their tasks (`stream.data.mixture`),
so that one captured step serves every draw. Their losses read the heads of all earlier tasks, so a
head whose task is not among a step's examples has a gradient of 0 there, and goes on by AdamW's
momentum and weight decay.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from stream.config.setting import at_least, setting
from stream.data.batch import Batch
from stream.data.mixture import Rehearsal, heads_of, owners
from stream.data.task import Task
from stream.errors import require
from stream.learners._shared.features import collected, text_vectors
from stream.learners._shared.replay_buffer import BALANCES, SELECTIONS, ReplayBuffer
from stream.learners._shared.sequential import Sequential
from stream.learners.workload import Epoch
from stream.models.encoder import Encoder
from stream.models.losses import mixture_logits, mixture_loss, summed_loss


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

    def begin_task(self, task: Task) -> None:
        """Note whose outputs stand where among those of all earlier heads, once on the device."""
        self._heads = [self.model.head(name) for name in heads_of(self.learned)]
        columns = owners([head.outputs for head in self._heads])
        self._owners = torch.from_numpy(columns).to(self.model.device)

    def rehearsals(self, task: Task, epoch: Epoch) -> Iterator[Rehearsal]:
        """Yield the batches of one epoch: new rows, and ``replayed`` stored ones in blocks."""
        for batch in self.stored.mixed(task, epoch, self.pad_id, self.replayed):
            yield Rehearsal.of(batch, self.learned)

    def stored_losses(self, batch: Batch) -> list[torch.Tensor]:
        """Return the summed losses of the blocks of stored rows of a batch, empty without any."""
        losses = []
        if isinstance(batch, Rehearsal) and batch.remembered is not None:
            logits = mixture_logits(self._heads, self.model.states(batch.remembered))
            losses.append(mixture_loss(logits, self._owners, batch.remembered))
        if isinstance(batch, Rehearsal) and batch.spans is not None:
            losses.append(summed_loss(batch.spans, self.model(batch.spans)))
        return losses

    def stored_loss(self, batch: Batch) -> torch.Tensor:
        """Return the mean loss of the stored rows of a batch that has some."""
        assert isinstance(batch, Rehearsal), "stored rows are in blocks"
        return torch.stack(self.stored_losses(batch)).sum() / batch.stored_size

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
