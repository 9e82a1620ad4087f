"""Bottleneck adapters, isolated a task (Houlsby et al. 2019, arXiv 1902.00751, section 2).

Two adapters a layer, after the attention output projection and after the second feed-forward
projection, each after dropout and before the residual addition. A task trains and owns its
adapters, every LayerNorm (the embedding's too) and its head; the rest of the encoder is frozen.
Deviations: the head reads the [CLS] vector as the paper says (its released code reads the frozen
pooler: ``backbone.pooling=pooler``); AdamW corrects its bias, the released optimizer does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch

from stream.errors import require
from stream.learners.base import Learner
from stream.models.bottleneck import AdaptedDropout, Bottleneck
from stream.models.heads import TaskModel
from stream.seeding import torch_generator
from stream.tasks.task import Task


@dataclass
class Adapter(Learner):
    """Adapters of ``size`` units whose weights start with deviation ``init_std``."""

    lr: float = 2e-3
    size: int = 64
    init_std: float = 1e-2

    promises_memory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse adapters that are none."""
        super().__post_init__()
        require(self.size >= 1, f"learner.size must be at least 1, got {self.size}")
        require(self.init_std >= 0, f"learner.init_std must not be negative, got {self.init_std}")

    def trains(self, name: str) -> bool:
        """Adapters and LayerNorms."""
        return name not in self._frozen

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Put an adapter behind every sub-layer's dropout."""
        encoder = model.encoder
        self._frozen = encoder.pretrained - encoder.layernorm_names()
        for place in encoder.sublayers():
            adapter = Bottleneck(encoder.width, self.size).to(model.device)
            place.insert(partial(AdaptedDropout, adapter=adapter))
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)

    def first_values(self, task: Task) -> dict[str, torch.Tensor]:
        """Pretrained LayerNorms, and adapters drawn for the task's name."""
        generator = torch_generator(self.seed, "adapter", task.name)
        values = dict(self.bank.first)
        for module_name, module in self.model.encoder.named_modules():
            if isinstance(module, Bottleneck):
                fresh = Bottleneck(self.model.encoder.width, self.size)
                fresh.initialize(self.init_std, generator)
                drawn = {f"{module_name}.{n}": p.detach() for n, p in fresh.named_parameters()}
                values.update({n: p.to(self.model.device) for n, p in drawn.items()})
        return values
