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
leaves it alone. AdamW instead of SGD, so e has a learning rate of its own, ``gate_lr``: steps of
AdamW do not grow with the gradient. No activation behind the up-projection, LayerNorms stay
frozen (PyContinual has a ReLU, and trains them).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.setting import NOT_NEGATIVE, POSITIVE, WIDEST, Range, at_least, setting
from stream.data.batches import Batch
from stream.data.task import Task
from stream.learners.base import Learner, Tags
from stream.learners.workload import Epoch
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture
from stream.models.modules.hard_attention import Attention, Scale, insert_attended

MOST_EXPONENT = 50.0
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
        paper="Serra et al. 2018, arXiv 1801.01423", stores="gates, head", keeps_logits=True
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert one set of adapters, and gates for every task."""
        self._scale = Scale(self.s_max)
        architecture = Architecture(encoder.width, self.size)
        self._adapters = insert_attended(
            encoder, architecture, list(task_names), self.active, self._scale
        )

    def learning_rate(self, name: str) -> float:
        """Return that of the gates, which belong to tasks inside the encoder, or the usual one."""
        of_gate = self._task_of.get(name.removeprefix("encoder.")) is not None
        return self.gate_lr if of_gate else super().learning_rate(name)

    def begin_task(self, task: Task) -> None:
        """Note what earlier tasks use, and what is free to learn."""
        names = [learned.name for learned in self.learned]
        self._used: dict[str, Attention] = {}
        self._free: dict[str, torch.Tensor] = {}
        for place, module in self._adapters.items():
            with torch.no_grad():
                used = module.of(task.name).hard()
                used = Attention(*(torch.zeros_like(gate) for gate in used))
                for name in names:
                    used = Attention(*map(torch.maximum, used, module.of(name).hard()))
            self._used[place] = used
            weight = torch.minimum(used.outputs[:, None], used.units[None, :])
            down, up = f"{place}.adapter.down", f"{place}.adapter.up"
            self._free[f"{down}.weight"] = 1 - used.units[:, None]
            self._free[f"{down}.bias"] = 1 - used.units
            self._free[f"{up}.weight"] = 1 - weight
            self._free[f"{up}.bias"] = 1 - used.outputs
        shared = self.shared_parameters()
        assert shared.keys() == self._free.keys(), "every shared parameter is protected"
        self._before = {name: p.detach().clone() for name, p in shared.items()}

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch; the gates get steeper from one to the next."""
        last = -(-len(task.split("train")) // epoch.batch_size) - 1
        for number, batch in enumerate(super().training_batches(task, epoch)):
            low = 1 / self.s_max
            self._scale.s = low + (self.s_max - low) * (number / last if last else 1.0)
            yield batch
        self._scale.s = self.s_max

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of one batch, and what new units cost."""
        return super().loss(batch) + self.c * self.occupied(batch.parts[0].task.name)

    def occupied(self, task: str) -> torch.Tensor:
        """Return R of equation 5: the share of the unused units that the task's gates take."""
        device = self.model.device
        taken, there = torch.zeros((), device=device), torch.zeros((), device=device)
        for place, module in self._adapters.items():
            gates = module.of(task).soft(self._scale.s)
            for gate, used in zip(gates, self._used[place], strict=True):
                taken = taken + (gate * (1 - used)).sum()
                there = there + (1 - used).sum()
        return taken / there.clamp(min=1)

    def after_backward(self, batch: Batch) -> None:
        """Protect what earlier tasks use, and undo what a steep or flat s does to gradients."""
        shared, s = self.shared_parameters(), self._scale.s
        for name, free in self._free.items():
            gradient = shared[name].grad
            if gradient is not None:
                gradient.mul_(free)
        for e in self.task_modules(batch.parts[0].task.name).values():
            if e.grad is not None:
                steep = torch.cosh((s * e.detach()).clamp(-MOST_EXPONENT, MOST_EXPONENT)) + 1
                e.grad.mul_(self.s_max / s * steep / (torch.cosh(e.detach()) + 1))

    def after_step(self, batch: Batch) -> None:
        """Take back what weight decay did to protected weights, and hold e near 0."""
        shared = self.shared_parameters()
        with torch.no_grad():
            for name, free in self._free.items():
                before = self._before[name]
                shared[name].copy_(torch.where(free > 0, shared[name], before))
            for e in self.task_modules(batch.parts[0].task.name).values():
                e.clamp_(-MOST_E, MOST_E)
