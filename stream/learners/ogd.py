"""Orthogonal gradient descent (Farajtabar et al. 2020, arXiv 1910.07104, algorithm 1), OGD-GTL.

After a task, the gradients of the logit of the true class (GTL, "ground truth logit") at
``directions`` of its rows are made orthonormal to each other and to those of earlier tasks, by
Gram and Schmidt. While later tasks are learned, g <- g - sum_v (g.v) v over all of them, so that a
step does not move those outputs, to first order. Scores have one output; of a span the outputs are
the mean of its true ends' logits.

The paper steps with plain SGD, along what was projected. AdamW rescales it entry by entry and adds
weight decay, which brings stored directions back. With ``hold_steps`` they are taken out of what
each step did to the weights too, so that the weights have moved along none of them when the task
ends, whatever the optimizer; without, only the gradient is projected, as A-GEM's is.

Stored are ``directions`` vectors a task, each as long as all that tasks share: 20 of 26 tasks for
adapters of size 64 in MiniLM are 0.3 billion numbers, for the whole encoder 12 billion. So adapters
are the default. They are made orthonormal in float64, and kept and applied in float32. Heads of
their own are outside. One head for all tasks is inside, with the rows of the classes met when a
direction was stored: it is 0 in those of later classes, and has no entries for them.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from stream.config.setting import at_least, setting
from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.learners._shared.directions import flattened, project_out, true_outputs, widened
from stream.learners._shared.sequential import Sequential
from stream.learners.base import Tags
from stream.models.bf16 import copy_all
from stream.seeding import numpy_generator


@dataclass
class Ogd(Sequential):
    """Train one adapter, orthogonal to earlier outputs.

    A step moves no output of stored gradients of earlier tasks, to first order.

    Attributes:
        directions: rows of a task whose output's gradient is stored.
        hold_steps: also take stored directions out of what AdamW did with the projected gradient.
    """

    lr: float = 2e-3
    part: str = "adapter"
    directions: int = setting(20, at_least(1))
    hold_steps: bool = True

    tags: ClassVar[Tags] = replace(
        Sequential.tags,
        paper="Farajtabar et al. 2020, arXiv 1910.07104",
        stores="head, gradients",
        cuda_graph_safe=True,
    )

    def begin_task(self, task: Task) -> None:
        """Note what is projected, in an order that stays; make room for where a step starts."""
        self._held = list(self.shared_parameters().values())
        holds = self.hold_steps and bool(self.shared_tensors)
        self._before = [torch.zeros_like(p) for p in self._held] if holds else []

    def after_backward(self, batch: Batch) -> None:
        """Project the gradient, and note where the weights stand."""
        if not self.shared_tensors:
            return
        for parameter in self._held:
            if parameter.grad is None:  # a projected gradient has entries everywhere
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in self._held if p.grad is not None]
        project_out(self._bases(), gradients, headed=self.shares_head)
        if self.hold_steps:
            copy_all(self._before, self._held)

    def after_step(self, batch: Batch) -> None:
        """Take back what the step did along stored directions; in few kernels, as no graph has."""
        if not (self.shared_tensors and self.hold_steps):
            return
        with torch.no_grad():
            moves = torch._foreach_sub([*self._held], self._before)  # pyright: ignore[reportPrivateImportUsage]
            project_out(self._bases(), moves, headed=self.shares_head)
            copy_all(self._held, torch._foreach_add(self._before, moves))  # pyright: ignore[reportPrivateImportUsage]

    def end_task(self, task: Task) -> None:
        """Store the directions that keep the task's outputs."""
        self.shared_tensors[task.name] = widened(self._bases(), self._gradients(task))

    def _bases(self) -> list[torch.Tensor]:
        """Return the orthonormal rows of each task, in the order learned, float32 [n, P]."""
        names = [task.name for task in self.learned]
        return [self.shared_tensors[name] for name in names if name in self.shared_tensors]

    def _gradients(self, task: Task) -> torch.Tensor:
        """Return the gradients of the true outputs of some rows, float32 [directions, P]."""
        split, model = task.split("train"), self.model
        order = numpy_generator(self.seed, "ogd", task.name).permutation(len(split))
        model.eval()
        model.sync_bf16_copy()
        found = []
        for row in order[: self.directions]:
            model.zero_grad(set_to_none=True)
            batch = collate([(task, split, np.array([row]))], self.pad_id).to(model.device)
            with model.computing():
                true_outputs(batch.parts[0], model(batch)[0], batch.labels[0]).sum().backward()
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._held]
            found.append(flattened(gradients, headed=self.shares_head))
        model.zero_grad(set_to_none=True)
        model.train()
        return torch.stack(found)
