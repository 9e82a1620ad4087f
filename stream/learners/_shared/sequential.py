"""What methods share that train one set of weights through the whole stream.

``part=encoder`` trains the whole encoder, ``part=adapter`` Houlsby adapters of ``size`` and the
LayerNorms inside the frozen encoder: one set for all tasks. Each task has a head of its own, and
earlier heads stay as they are. The task is known when it is served (task-incremental learning).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import NOT_NEGATIVE, WIDEST, at_least, setting
from stream.learners._shared.quadratic import QuadraticPenalty
from stream.learners.base import Learner
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture, insert_adapters


@dataclass
class Sequential(Learner):
    """Train shared weights on each task in turn.

    Attributes:
        part: what is trained: the whole ``encoder``, or one set of Houlsby adapters and the
            LayerNorms (``adapter``).
        size: units of an adapter.
    """

    lr: float = 5e-5
    head_lr: float | None = 2e-3
    part: str = setting("encoder", ("encoder", "adapter"))
    size: int = setting(64, at_least(1, WIDEST), needs={"part": "adapter"})

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert one set of adapters where adapters are what is trained."""
        self._layernorms = encoder.layernorm_names()
        if self.part == "adapter":
            insert_adapters(encoder, Architecture(encoder.width, self.size))

    def trains(self, name: str) -> bool:
        """Return true for everything, or for adapters and LayerNorms."""
        return self.part == "encoder" or name in self._layernorms or super().trains(name)


@dataclass
class Penalized(Sequential):
    """Pay a quadratic penalty for moving away from earlier tasks.

    Attributes:
        strength: the factor of the penalty (lambda or c in the papers); 0 is plain fine-tuning.
    """

    strength: float = setting(1.0, NOT_NEGATIVE)

    ANCHOR: ClassVar[str] = "anchor"

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Start without a penalty."""
        super().setup(encoder, task_names)
        self.penalty = QuadraticPenalty(self.shared_tensors, self.fit_tensors, self.ANCHOR)
