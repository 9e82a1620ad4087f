"""Dark experience replay++ (Buzzega et al. 2020, arXiv 2004.07211, equation 6).

L = L_new + alpha mean |h(x') - z'|^2 + beta L(x'', y''): two separate draws from the buffer, the
first held to the logits z' that were stored with it, the second to its labels. Deviations: squares
are a mean over rows and classes, as in the released code, where the paper's norm sums them over
classes, so that ``alpha`` counts alike for 2 classes and for 150; rows are stored at a task's end,
with the logits that the learner gives then, without dropout, where the paper stores those of the
step in which a row came by; by default ``budget`` of each task, instead of a reservoir of the whole
stream (``selection=reservoir``), which would hold the largest tasks. Heads are a task's own, so
logits are compared over the task's own classes (with ``scenario=shared_head`` over those that were
met when they were stored). Earlier heads go on learning from the buffer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from stream.config.setting import NOT_NEGATIVE, setting
from stream.data.batch import Batch
from stream.data.batching import collate, training_rows
from stream.data.mixture import Rehearsal
from stream.data.task import Task
from stream.learners._shared.held_rows import HeldRows, held
from stream.learners._shared.replaying import Replaying
from stream.learners.base import Tags
from stream.learners.workload import Epoch
from stream.models.heads import joined
from stream.models.losses import batch_loss
from stream.seeding import numpy_generator


@dataclass
class Derpp(Replaying):
    """Train one encoder, replay examples, logits.

    Stored examples are held to their labels, and to the logits that were stored with them.

    Attributes:
        alpha: the factor of the squared change of stored logits.
        beta: the factor of the loss of stored labels.
        replayed: stored examples read in each step, twice: once for logits, once for labels.
    """

    replayed: int = 16
    alpha: float = setting(0.3, NOT_NEGATIVE)
    beta: float = setting(0.5, NOT_NEGATIVE)

    tags: ClassVar[Tags] = replace(
        Replaying.tags,
        paper="Buzzega et al. 2020, arXiv 2004.07211",
        stores="examples, logits, head",
        cuda_graph_safe=True,
    )

    def begin_task(self, task: Task) -> None:
        """Note what stored rows are held to."""
        super().begin_task(task)
        self._rows = HeldRows(self.learned, self.shared_tensors, self._heads, self._owners)

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the new task's batches, each with two draws from the buffer behind it."""
        generator = numpy_generator(self.seed, "derpp", task.name, epoch.index)
        even = self.stored.even()
        for rows in training_rows(task, epoch.batch_size, self.seed, epoch.index):
            draws = [self.stored.draw(self.replayed, even, generator) for _ in range(2)]
            chosen = [(task, task.split("train"), rows), *draws[0], *draws[1]]
            batch = Rehearsal.of(collate(chosen, self.pad_id), self.learned)
            dark = held(draws[0], self.alpha, dark=True)
            yield self._rows.marked(batch, dark + held(draws[1], self.beta, dark=False))

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of new rows, of logits that moved, and of stored labels."""
        new = batch.new
        loss = batch_loss(new, self.model(new))
        return sum(self._rows.losses(self.model, batch), loss)

    def end_task(self, task: Task) -> None:
        """Store the logits of the task's stored examples; drop those of rows that left."""
        for name, left in self.stored.kept.items():
            self.shared_tensors[name] = self.shared_tensors[name][left]
        split, model = self.stored.rows_of(task), self.model
        model.eval()
        parts = []
        for rows in np.array_split(np.arange(len(split)), max(-(-len(split) // 32), 1)):
            if not len(rows):  # a reservoir that the task left no row in
                continue
            with torch.no_grad(), model.computing():
                parts += model(collate([(task, split, rows)], self.pad_id).to(model.device))
        model.train()
        none = torch.zeros(0, model.head(task.head_name).outputs, device=model.device)
        self.shared_tensors[task.name] = joined(parts or [none])
