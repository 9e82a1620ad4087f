"""Multi-task replay: each step mixes stored examples of earlier tasks into the new batch.

Experience replay (Rolnick et al. 2019, arXiv 1811.11682) with one head per task, or one for all
(then stored rows choose between all classes met); the loss is the mean over all examples of the
step. Earlier tasks are drawn with probability proportional to N_i ** alpha, N_i the training rows
of task i: alpha 0 ``uniform``, 1 ``proportional``, 1/2 ``sqrt``; ``annealed`` falls with the epoch
e of E, alpha = 1 - 0.8 (e - 1) / (E - 1) (Stickland & Murray 2019, arXiv 1902.02671, section 3.2),
here within each task of the stream. With ``selection=reservoir``, whose rows of a task are few or
many as its training rows are, ``proportional`` draws all stored rows alike, as published.

A step rehearses 32 rows by default, as many as one of `agem` or `derpp` (twice 16); it was 16 rows
before, which ``replayed=16`` gives back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from stream.config.setting import setting
from stream.data.batch import Batch
from stream.data.mixture import Rehearsal
from stream.data.task import Task
from stream.learners._shared.replaying import Replaying
from stream.learners.base import Tags
from stream.learners.workload import Epoch
from stream.models.losses import summed_loss

SAMPLING = ("uniform", "proportional", "sqrt", "annealed")


@dataclass
class Replay(Replaying):
    """Train one encoder, replay stored examples.

    Attributes:
        sampling: how stored tasks are drawn: alike (``uniform``), by their training rows
            (``proportional``), by the root of these (``sqrt``), or from proportional towards
            uniform within a task (``annealed``).
    """

    sampling: str = setting("uniform", SAMPLING)

    tags: ClassVar[Tags] = replace(
        Replaying.tags,
        paper="Rolnick et al. 2019, arXiv 1811.11682",
        stores="examples, head",
        cuda_graph_safe=True,
    )

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the new task's batches, each with examples of earlier tasks behind it."""
        weights = self._weights(epoch)
        for batch in self.stored.mixed(task, epoch, self.pad_id, self.replayed, weights):
            yield Rehearsal.of(batch, self.learned)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the mean loss over new and stored examples."""
        loss = summed_loss(batch, self.model(batch))
        return sum(self.stored_losses(batch), loss) / batch.size

    def _weights(self, epoch: Epoch) -> np.ndarray:
        """Return the probability of each earlier task, in the order learned."""
        progress = epoch.index / max(epoch.count - 1, 1)
        alpha = {"uniform": 0.0, "proportional": 1.0, "sqrt": 0.5, "annealed": 1 - 0.8 * progress}
        sizes = np.array([len(task.split("train")) for task in self.learned], np.float64)
        weights = sizes ** alpha[self.sampling]
        return weights / weights.sum() if len(weights) else weights
