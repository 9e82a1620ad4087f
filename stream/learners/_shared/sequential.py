"""What methods share that train one set of weights through the whole stream.

``part=encoder`` trains the whole encoder, ``part=adapter`` Houlsby adapters of ``size`` and the
LayerNorms inside the frozen encoder: one set for all tasks. Heads are a task's own, and earlier
ones stay as they are. Each task's id is known when it is served (task-incremental learning).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from stream.data.task import Task
from stream.errors import choose, require, require_effect
from stream.learners._shared.inserted import draw_into, insert_adapters
from stream.learners._shared.quadratic import Quadratic
from stream.learners.base import Learner
from stream.models.encoder import Encoder
from stream.models.heads import TaskModel
from stream.models.modules.bottleneck import Architecture
from stream.seeding import torch_generator

Named = dict[str, torch.Tensor]
ANCHOR = "anchor."


@dataclass
class Sequential(Learner):
    """Train shared weights on each task in turn."""

    lr: float = 5e-5
    head_lr: float | None = 2e-3
    part: str = "encoder"
    size: int = 64

    def __post_init__(self) -> None:
        """Refuse to train what there is not."""
        super().__post_init__()
        choose("learner.part", self.part, ("encoder", "adapter"))
        require(self.size >= 1, f"learner.size must be at least 1, got {self.size}")
        adapters = self.part == "adapter"
        require_effect(self, "learner.size", used=adapters, otherwise="with learner.part=encoder")

    def trains(self, name: str) -> bool:
        """Everything, or adapters and LayerNorms."""
        return name not in self._frozen

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Put the adapters in where they are what is trained."""
        self._frozen: set[str] = set()
        if self.part == "adapter":
            self._frozen = insert_shared_adapters(model.encoder, self.size, seed)
            model.encoder.to(model.device)
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)

    def shared_parameters(self) -> dict[str, torch.nn.Parameter]:
        """Return what all tasks share and learning changes, by its name in the encoder."""
        named = self.model.encoder.named_parameters()
        return {name: p for name, p in named if self._is_shared(name)}


@dataclass
class Penalized(Sequential):
    """Pay ``strength`` times a quadratic penalty for moving away from earlier tasks."""

    strength: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a penalty that rewards."""
        super().__post_init__()
        require(self.strength >= 0, f"learner.strength must not be negative, got {self.strength}")

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Start without a penalty."""
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)
        self._penalty = Quadratic()

    def kept_state(self) -> Named:
        """Return the penalty."""
        return self._penalty.state()

    def restore_kept(self, kept: Mapping[str, torch.Tensor]) -> None:
        """Take the penalty; its anchor is where the weights stand."""
        self._penalty.load(kept, self.shared_parameters())

    def running_state(self) -> Named:
        """Return the anchor, which the weights have left."""
        return {f"{ANCHOR}{name}": tensor for name, tensor in self._penalty.anchor.items()}

    def restore_running(self, running: Mapping[str, torch.Tensor]) -> None:
        """Take the anchor.

        Raises:
            UserError: it is not there.
        """
        found = {n.removeprefix(ANCHOR): t for n, t in running.items() if n.startswith(ANCHOR)}
        same = found.keys() == self._penalty.anchor.keys()
        require(same, "the checkpoint lacks the penalty's anchor: another version wrote it")
        self._penalty.move_anchor(found)


def insert_shared_adapters(encoder: Encoder, size: int, seed: int) -> set[str]:
    """Put Houlsby adapters into every sub-layer, drawn once; return the names that stay frozen."""
    frozen = set(encoder.pretrained) - encoder.layernorm_names()
    insert_adapters(encoder, Architecture(encoder.width, size))
    draw_into(encoder, torch_generator(seed, "adapter"))
    return frozen
