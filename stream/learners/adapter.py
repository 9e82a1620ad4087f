"""Bottleneck adapters, isolated a task (Houlsby et al. 2019, arXiv 1902.00751, section 2).

Two adapters a layer, after the attention output projection and after the second feed-forward
projection, each after dropout and before the residual addition. A task trains and owns its
adapters, every LayerNorm (the embedding's too) and its head; the rest of the encoder is frozen.
Deviations: the head reads the [CLS] vector as the paper says (its released code reads the frozen
pooler: ``backbone.pooling=pooler``); AdamW corrects its bias, the released optimizer does not.

The options are the variants of section 3.6, which the paper found no better. Batch norm is not
among them: its running means are no parameters, so no task would own them, and padded positions
would enter them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.errors import choose, require
from stream.learners.base import Learner
from stream.models.bottleneck import ACTIVATIONS, FORMS, AdaptedDropout, Architecture, Bottleneck
from stream.models.encoder import POSITIONS
from stream.models.heads import TaskModel
from stream.seeding import torch_generator
from stream.tasks.task import Task


@dataclass
class Adapter(Learner):
    """Adapters of ``size`` units whose weights start with deviation ``init_std``.

    ``places`` is where: ``both`` sub-layers, or one of them; the others are options of
    `stream.models.bottleneck`.
    """

    lr: float = 2e-3
    size: int = 64
    init_std: float = 1e-2
    activation: str = "gelu"
    depth: int = 1
    norm: str = "none"
    places: str = "both"
    form: str = "sequential"

    promises_memory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse adapters that are none."""
        super().__post_init__()
        require(self.size >= 1, f"learner.size must be at least 1, got {self.size}")
        require(self.depth >= 1, f"learner.depth must be at least 1, got {self.depth}")
        require(self.init_std >= 0, f"learner.init_std must not be negative, got {self.init_std}")
        choose("learner.activation", self.activation, ACTIVATIONS)
        choose("learner.norm", self.norm, ("none", "layer"))
        choose("learner.places", self.places, ("both", *POSITIONS))
        choose("learner.form", self.form, FORMS)

    def trains(self, name: str) -> bool:
        """Adapters and LayerNorms."""
        return name not in self._frozen

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Put an adapter behind the dropout of every sub-layer that gets one."""
        encoder = model.encoder
        self._frozen = encoder.pretrained - encoder.layernorm_names()
        self._architecture = Architecture(
            encoder.width, self.size, self.activation, self.depth, self.norm
        )
        self._adapted: list[tuple[int, AdaptedDropout]] = []
        for place in encoder.sublayers():
            if self.places not in ("both", place.position):
                continue
            adapter = Bottleneck(self._architecture).to(model.device)
            adapted = place.insert(lambda dropout, a=adapter: AdaptedDropout(dropout, a, self.form))
            if self.form != "sequential":
                place.reader.register_forward_pre_hook(adapted.note_input)
            self._adapted.append((place.layer, adapted))
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)

    def first_values(self, task: Task) -> dict[str, torch.Tensor]:
        """Pretrained LayerNorms, and adapters drawn for the task's name."""
        generator = torch_generator(self.seed, "adapter", task.name)
        values = dict(self.bank.first)
        for module_name, module in self.model.encoder.named_modules():
            if isinstance(module, Bottleneck):
                fresh = Bottleneck(self._architecture)
                fresh.initialize(self.init_std, generator)
                drawn = {f"{module_name}.{n}": p.detach() for n, p in fresh.named_parameters()}
                values.update({n: p.to(self.model.device) for n, p in drawn.items()})
        return values

    @contextmanager
    def without_layers(self, first: int, last: int) -> Iterator[None]:
        """Leave out the adapters of layers ``first`` to ``last`` (from 0) inside the block.

        The paper's ablation (section 3.6, figure 6): LayerNorms and head stay the trained ones.
        ``last = first - 1`` leaves out none.

        Raises:
            UserError: layers that the encoder does not have.
        """
        count = len(self.model.encoder.layers())
        require(
            0 <= first <= last + 1 <= count,
            f"cannot leave out layers {first} to {last}: the encoder has layers 0 to {count - 1}",
        )
        chosen = [adapted for layer, adapted in self._adapted if first <= layer <= last]
        for adapted in chosen:
            adapted.enabled = False
        try:
            yield
        finally:
            for adapted in chosen:
                adapted.enabled = True
