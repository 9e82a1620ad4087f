"""Averaged gradient episodic memory, A-GEM (Chaudhry et al. 2019, arXiv 1812.00420, equation 11).

With g the gradient of the new batch and r that of a batch drawn from the stored examples of all
earlier tasks, g <- g - (g.r / r.r) r where g.r < 0: a step that would raise the loss of stored
examples is turned aside. ``budget`` examples per task are stored. Both gradients are those of what
all tasks share; each head learns from its own task alone. A head that all tasks share
(``scenario=shared_head``) is part of both gradients, as in the paper.

What holds is g.r >= 0 for the gradient that the optimizer gets. The paper steps with plain SGD,
along -g. Here AdamW rescales g entry by entry, adds weight decay, and its momentum remembers the
gradients of earlier steps, projected against the references of those steps: so a step may still
raise the loss of stored examples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners._shared.replaying import Replaying
from stream.learners.base import Tags
from stream.learners.workload import Epoch
from stream.models.losses import batch_loss


@dataclass
class Agem(Replaying):
    """Train one encoder, never against examples.

    A step that would raise the loss of stored examples is turned aside.

    Attributes:
        replayed: stored examples whose gradient a step may not oppose.
    """

    replayed: int = 32

    tags: ClassVar[Tags] = replace(
        Replaying.tags,
        paper="Chaudhry et al. 2019, arXiv 1812.00420",
        stores="examples, head",
        cuda_graph_safe=True,
    )

    def trains_head(self, name: str, task: Task) -> bool:
        """Return true for the head of the task alone."""
        return name == task.head_name

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the new task's batches, each with stored examples behind it."""
        yield from self.rehearsals(task, epoch)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of the new examples; the stored ones wait."""
        new = batch.new
        return batch_loss(new, self.model(new))

    def after_backward(self, batch: Batch) -> None:
        """Turn the gradient aside where it opposes that of the stored examples."""
        if len(batch.blocks) == 1:  # no stored examples
            return
        mine = {p: p.grad for p in self.trained_parameters().values()}
        self.model.zero_grad(set_to_none=True)
        with self.model.computing():
            self.stored_loss(batch).backward()
        pairs = [
            (gradient, parameter.grad)
            for parameter in self.shared_parameters().values()
            if (gradient := mine[parameter]) is not None and parameter.grad is not None
        ]
        turn_aside([g for g, _ in pairs], [r for _, r in pairs])
        for parameter, gradient in mine.items():
            parameter.grad = gradient


def turn_aside(gradient: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]) -> None:
    """Project ``gradient`` in place on the half space that does not oppose ``reference``.

    All tensors together are one vector; no number leaves the device. In few kernels: an encoder has
    hundreds of tensors, and six short kernels for each of them are a fifth of a step's.
    """
    with torch.no_grad():
        dot, square = (_product(vector, reference) for vector in (gradient, reference))
        factor = (-dot / square.clamp(min=torch.finfo(square.dtype).tiny)).clamp(min=0)
        torch._foreach_add_(list(gradient), torch._foreach_mul(list(reference), factor))  # pyright: ignore[reportPrivateImportUsage]


def _product(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the inner product of two vectors, a scalar."""
    products = torch._foreach_mul(list(first), list(second))  # pyright: ignore[reportPrivateImportUsage]
    return torch.cat([product.flatten() for product in products]).sum()
