"""AdapterFusion: attention over the frozen adapters of earlier tasks (Pfeiffer et al. 2021).

arXiv 2005.00247, section 3.2: a task first trains an adapter of its own (as `pfeiffer`), then,
all adapters frozen, a query, key and value map per layer that mix what the adapters of all tasks so
far add: softmax(q(f) . k(z_t)) over t, times v(z_t), v held to the identity by 0.01 |V - I|^2.
Nothing of an earlier task changes, so this may gain from the stream without forgetting. Deviations:
tasks come one after another, so a task fuses earlier adapters and its own, not later ones; each of
the two stages has as many epochs as another method has in all, under one learning-rate schedule;
the query reads f, what the feed-forward sub-layer gives, as the paper says, where AdapterHub's code
reads LN(f + x) and drops some of the scores.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners._shared.composed import ComposedAdapters
from stream.learners.base import Tags
from stream.learners.workload import Epoch, Workload
from stream.models.encoder import Encoder
from stream.models.modules.active_tasks import Sources
from stream.models.modules.composition import Attention, Composed, Fused

VALUE_DECAY = 0.01


@dataclass
class AdapterFusion(ComposedAdapters):
    """Train an adapter, then attention over all.

    The attention mixes what the adapters of all tasks so far add. A head is trained with both.
    """

    tags: ClassVar[Tags] = replace(
        ComposedAdapters.tags,
        paper="Pfeiffer et al. 2021, arXiv 2005.00247",
        stores="adapter, fusion, head",
    )
    COMPOSED: ClassVar[type[Composed]] = Fused

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert the adapters and their fusion; no fusion is being learned."""
        super().setup(encoder, task_names)
        self._fusing = False

    def sources(self, task: str) -> Sources:
        """Return the earlier tasks and this one; alone until its fusion is being learned."""
        learned = any(task == earlier.name for earlier in self.learned)
        fused = learned or (self.task_parameters.active == task and self._fusing)
        return Sources(super().sources(task).names, combined=fused)

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of both stages."""
        return super().workload(task, training).twice()

    def begin_task(self, task: Task) -> None:
        """Begin with the adapter."""
        self._fusing = False
        self.active.show(self.sources(task.name))

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch, of the adapter's or the fusion's stage."""
        self._fusing = epoch.is_late
        self.active.show(self.sources(task.name))
        for parameter in self.task_parameters.working.values():  # the fusion
            parameter.requires_grad_(self._fusing)
        for parameter in self.task_modules(task.name).values():  # the adapters
            parameter.requires_grad_(not self._fusing)
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
