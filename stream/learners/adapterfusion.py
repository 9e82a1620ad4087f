"""AdapterFusion: attention over the frozen adapters of earlier tasks (Pfeiffer et al. 2021).

arXiv 2005.00247, section 3.2: a task first trains an adapter of its own (as `pfeiffer`), then,
all adapters frozen, a query, key and value map a layer that mix what the adapters of all tasks so
far add: softmax(q(f) . k(z_t)) over t, times v(z_t), v held to the identity by 0.01 |V - I|^2.
Nothing of an earlier task changes, so this may gain from the stream without forgetting. Deviations:
tasks come one after another, so a task fuses earlier adapters and its own, not later ones; each of
the two stages has as many epochs as another method has in all, under one learning-rate schedule.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.data.batches import Batch
from stream.data.task import Task
from stream.learners._shared.grown import GrownAdapters
from stream.learners._shared.inserted import drawn_values
from stream.learners.workload import Epoch, Workload
from stream.models.modules.composition import Attention, Composed, Fused
from stream.seeding import torch_generator

VALUE_DECAY = 0.01


@dataclass
class AdapterFusion(GrownAdapters):
    """Train an adapter of D / ``reduction`` units, then its fusion with others, and a head."""

    COMPOSED: ClassVar[type[Composed]] = Fused

    def owns(self, name: str) -> bool:
        """The fusion: one working copy, a task's values in it."""
        return ".fusion." in name and not self._is_any(name)  # a task may be called fusion

    def first_values(self, task: Task) -> dict[str, torch.Tensor]:
        """Return a fusion drawn for the task's name."""
        generator = torch_generator(self.seed, "fusion", task.name)
        drawn = drawn_values(self.model.encoder, generator, ".fusion.")
        return {**self.bank.first, **{n: t for n, t in drawn.items() if self.owns(n)}}

    def combines(self, task: str) -> bool:
        """Whether the task's fusion was learned, or is being learned."""
        return any(task == learned.name for learned in self.learned) or (
            self.bank.active == task and self._fusing
        )

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of both stages."""
        return super().workload(task, training).twice()

    def begin_task(self, task: Task) -> None:
        """Begin with the adapter."""
        super().begin_task(task)
        self._fusing = False

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch, of the adapter's or the fusion's stage."""
        self._fusing = self.use.combined = epoch.is_late
        for name, parameter in self._read.items():
            if self._is_of(name, task.name) or self.owns(name):
                parameter.requires_grad_(self.owns(name) == self._fusing)
        self.model.sync_bf16_copy()
        yield from super().training_batches(task, epoch)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss, and in the fusion's stage what holds the value maps to the identity."""
        loss = super().loss(batch)
        if not self._fusing:
            return loss
        for module in self.model.encoder.modules():
            if isinstance(module, Attention):
                identity = torch.eye(len(module.value.weight), device=loss.device)
                loss = loss + VALUE_DECAY * ((module.value.weight - identity) ** 2).sum()
        return loss
