"""Gradient episodic memory, GEM (Lopez-Paz & Ranzato 2017, arXiv 1706.08840, equations 11 and 12).

With g the gradient of the new batch and g_k that of the stored examples of each earlier task k, the
step is along the vector z nearest to g with z.g_k >= 0 for all k. It is found in the dual: with G
the rows g_k, v minimizes |G'v + g|^2 / 2 over v >= ``margin``, and z = G'v + g. As in the reference
code, ``margin`` is a bound of v (the paper adds it to the solution), and g stays where it opposes
no g_k. That code adds 1e-3 to the diagonal of GG' for its solver; scipy's non-negative least
squares need only the inner products, and nothing is added.

What one step costs: a forward and backward pass over ``replayed`` rows of every earlier task, and
one gradient of each in memory. With 50 rows and 25 earlier tasks it reads 1,250 rows beside the 32
new ones; they are counted among a task's examples. What holds is said of the gradient that the
optimizer gets; AdamW rescales it and remembers earlier ones, as `stream.learners.agem` says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from stream.config.setting import NOT_NEGATIVE, setting
from stream.data.batch import Batch
from stream.data.batching import collate, training_rows
from stream.data.task import Task
from stream.learners._shared.cone import turn_aside
from stream.learners._shared.replaying import Replaying
from stream.learners.base import Tags
from stream.learners.workload import Epoch
from stream.models.losses import batch_loss
from stream.seeding import numpy_generator


@dataclass
class Gem(Replaying):
    """Train one encoder, never against a task.

    A step that would raise the loss of any task's stored examples is turned aside.

    Attributes:
        replayed: stored examples of each earlier task whose gradient a step may not oppose; with
            no more in ``budget``, all of them, as published.
        margin: the least weight of each earlier task's gradient in a step that is turned aside
            (memory strength).
    """

    replayed: int = 50
    margin: float = setting(0.5, NOT_NEGATIVE)

    tags: ClassVar[Tags] = replace(
        Replaying.tags,
        paper="Lopez-Paz & Ranzato 2017, arXiv 1706.08840",
        stores="examples, head",
        cuda_graph_safe=False,  # the program for z is solved on the CPU, in the middle of a step
    )

    def trains_head(self, name: str, task: Task) -> bool:
        """Return true for the task's own head."""
        return name == task.head_name

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the new task's batches, each with stored examples of every earlier one."""
        generator = numpy_generator(self.seed, "gem", task.name, epoch.index)
        for rows in training_rows(task, epoch.batch_size, self.seed, epoch.index):
            drawn = self.stored.of_each(self.replayed, generator)
            yield collate([(task, task.split("train"), rows), *drawn], self.pad_id)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of the new examples; the stored ones wait."""
        new = batch.new
        return batch_loss(new, self.model(new))

    def after_backward(self, batch: Batch) -> None:
        """Turn the gradient aside where it opposes that of an earlier task."""
        if len(batch.parts) == 1:
            return
        trained = list(self.trained_parameters().values())
        mine = [parameter.grad for parameter in trained]
        memories = [
            self._gradient(batch.only(slice(place, place + 1)), trained)
            for place in range(1, len(batch.parts))
        ]
        for parameter, gradient in zip(trained, mine, strict=True):
            parameter.grad = gradient
        # The head of the new task alone, which no stored example reads, adds 0 to every product.
        turn_aside(mine, memories, self.margin)

    def _gradient(
        self, stored: Batch, trained: Sequence[torch.nn.Parameter]
    ) -> list[torch.Tensor | None]:
        """Return the gradient of the loss of one task's stored examples."""
        self.model.zero_grad(set_to_none=True)
        with self.model.computing():
            batch_loss(stored, self.model(stored)).backward()
        return [parameter.grad for parameter in trained]
