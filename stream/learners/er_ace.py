"""Experience replay with asymmetric cross-entropy, ER-ACE (Caccia et al. 2022, arXiv 2104.05025).

L = L_ce(X_bf, C_old + C_curr) + L_ce(X_in, C_curr): the softmax over a new row's logits has the
classes of the incoming batch alone, so that new rows push no other class away; that over a stored
row's logits has all classes seen so far of its head. Each is a mean over its rows.

Where all tasks share a head, this is the published method. Where each has its own, no new row ever
pushes an old task's classes away, and what is left is that a batch does not push those classes of
its own task that it lacks. Deviations: rows are stored at a task's end, ``budget`` of each task by
default (``selection=reservoir`` is nearest to the paper), so none of the new task is among them;
scores and spans, which are no classes, have their usual losses.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners._shared.replaying import Replaying
from stream.learners.base import Tags
from stream.learners.workload import Epoch
from stream.models.heads import Head
from stream.models.losses import batch_loss


@dataclass
class ErAce(Replaying):
    """Train one encoder, replay asymmetrically.

    New rows compete with the classes of their batch alone, stored rows with all classes seen.
    """

    tags: ClassVar[Tags] = replace(
        Replaying.tags,
        paper="Caccia et al. 2022, arXiv 2104.05025",
        stores="examples, head",
        cuda_graph_safe=True,
    )

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the new task's batches, each with stored examples behind it."""
        yield from self.rehearsals(task, epoch)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the mean loss of new rows among their classes, and that of stored rows."""
        new = batch.new
        (logits,) = self.model(new)
        if not (new.parts[0].task.is_regression or new.parts[0].task.is_span):
            logits = among_present(logits, new.all_labels[0])
        loss = batch_loss(new, [logits])
        return loss if len(batch.blocks) == 1 else loss + self.stored_loss(batch)


def among_present(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return logits [B, K] with `Head.NEVER` for classes that no label [B] names."""
    classes = torch.arange(logits.shape[1], device=logits.device)
    present = (labels[:, None] == classes).any(0)
    return logits.masked_fill(~present, Head.NEVER)
