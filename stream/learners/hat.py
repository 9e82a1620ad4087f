"""HAT: hard attention to the task (Serra et al. 2018, arXiv 1801.01423, sections 2.2 to 2.6).

All tasks share one set of adapters in the frozen encoder. Each task t learns numbers e_t for the
units of every layer; its gates are a_t = sigmoid(s e_t). In each epoch of B batches
s = 1 / s_max + (s_max - 1 / s_max) (b - 1) / (B - 1) (section 2.4). With a_<t the largest gate of
the tasks before, the gradient of a weight between unit j of one layer and unit i of the next is
multiplied by 1 - min(a_<t,i, a_<t,j) (equation 2). The loss adds ``c`` R, R = sum a_t (1 - a_<t) /
sum (1 - a_<t) over all units of all layers (equation 5): units that no task uses cost, others do
not. The gradient of e is multiplied by s_max (cosh(s e) + 1) / (s (cosh(e) + 1)), with |s e| at
most 50, and e is held within 6 of 0 (section 2.5 and the released code).

On adapters as in PyContinual (Ke et al. 2021, arXiv 2112.02706, its "Adapter-BERT HAT"): the gated
layers are the bottleneck and the adapter's output; what an adapter reads belongs to no task.
Deviations: a learned task's gates are 1 where e > 0 and 0 elsewhere, the limit of a large s, so
that what it uses is protected by exactly 0 and its logits stay bit-identical; weight decay, too,
leaves it alone. AdamW instead of SGD, whose steps do not grow with the gradient, so e has a rate of
its own, ``gate_lr``; all gradients are clipped together, e's compensated (the released code clips
at 10,000, hardly ever). No activation behind the up-projection, LayerNorms stay frozen (PyContinual
has a ReLU, and trains them).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.setting import NOT_NEGATIVE, POSITIVE, WIDEST, Range, at_least, setting
from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners.base import Learner, Tags
from stream.learners.workload import Epoch
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture
from stream.models.modules.hard_attention import Protection, Scale, compensation, insert_attended

MOST_E = 6.0


@dataclass
class Hat(Learner):
    """Train one adapter set, gated by task.

    What an earlier task's gates let through is protected; the head is the task's own.

    Attributes:
        size: units of an adapter, which all tasks share.
        s_max: how steep the gates get within each epoch.
        c: the factor of the penalty on units that no earlier task uses.
        gate_lr: the learning rate of the gates.
    """

    lr: float = 1e-3
    size: int = setting(256, at_least(1, WIDEST))
    s_max: float = setting(400.0, Range(1, 1e4, above=True))
    c: float = setting(0.75, NOT_NEGATIVE)
    gate_lr: float = setting(0.05, POSITIVE)

    tags: ClassVar[Tags] = Tags(
        paper="Serra et al. 2018, arXiv 1801.01423",
        stores="gates, head",
        keeps_logits=True,
        cuda_graph_safe=True,
        class_incremental=False,  # a text passes through the gates of its task
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert one set of adapters, and gates for every task."""
        self._scale = Scale(self.s_max, self.model.device)
        architecture = Architecture(encoder.width, self.size)
        self._adapters = insert_attended(
            encoder, architecture, list(task_names), self.active, self._scale
        )

    def learning_rate(self, name: str) -> float:
        """Return that of the gates, which belong to tasks inside the encoder, or the usual one."""
        of_gate = name.removeprefix("encoder.") in self.ownership.task_of
        return self.gate_lr if of_gate else super().learning_rate(name)

    def begin_task(self, task: Task) -> None:
        """Note what earlier tasks use, and where the shared weights start."""
        earlier = [learned.name for learned in self.learned]
        self._protection = Protection(self._adapters, earlier)
        shared = self.shared_parameters()
        self._before = {name: p.detach().clone() for name, p in shared.items()}

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch; the gates get steeper from one to the next."""
        last = -(-len(task.split("train")) // epoch.batch_size) - 1
        for number, batch in enumerate(super().training_batches(task, epoch)):
            low = 1 / self.s_max
            self._scale.set(low + (self.s_max - low) * (number / last if last else 1.0))
            yield batch
        self._scale.set(self.s_max)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of one batch, and what new units cost."""
        return super().loss(batch) + self.c * self.occupied(batch.parts[0].task.name)

    def occupied(self, task: str) -> torch.Tensor:
        """Return R of equation 5: the share of the unused units that the task's gates take."""
        return self._protection.occupied(task, self._scale.s)

    def after_backward(self, batch: Batch) -> None:
        """Protect what earlier tasks use, and undo what a steep or flat s does to gradients."""
        for name, parameter in self.shared_parameters().items():
            if parameter.grad is not None:
                parameter.grad.mul_(self._protection.free[name])
        for e in self.task_modules(batch.parts[0].task.name).values():
            if e.grad is not None:
                e.grad.mul_(compensation(e.detach(), self._scale.s, self.s_max))

    def after_step(self, batch: Batch) -> None:
        """Take back what weight decay did to protected weights, and hold e near 0."""
        with torch.no_grad():
            for name, parameter in self.shared_parameters().items():
                free = self._protection.free[name] > 0
                parameter.copy_(torch.where(free, parameter, self._before[name]))
            for e in self.task_modules(batch.parts[0].task.name).values():
                e.clamp_(-MOST_E, MOST_E)
