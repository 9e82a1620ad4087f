"""Scaled parallel adapters, isolated per task (He et al. 2022, arXiv 2110.04366).

Table 1, section 4:
y = LN(F(x) + s U relu(D x) + x) at the feed-forward sub-layer, with s = 4 and U = 0 at first, which
the paper found the best single design ("Scaled PA"). The encoder is frozen, LayerNorms too. No
deviation is known; its bottleneck of 512 units on models 1,024 wide is ``size``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.errors import require
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture, insert_adapters


@dataclass
class Parallel(Learner):
    """Adapters of ``size`` units beside every feed-forward sub-layer, and a head."""

    lr: float = 2e-3
    size: int = 64
    scale: float = 4.0
    init_std: float = 0.02

    tags: ClassVar[Tags] = Tags(parameter_isolation=True)

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless size >= 1 and scale > 0."""
        super().__post_init__()
        require(self.size >= 1, f"learner.size must be at least 1, got {self.size}")
        require(self.scale > 0, f"learner.scale must be positive, got {self.scale}")

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Put an adapter beside every feed-forward sub-layer."""
        architecture = Architecture(
            encoder.width,
            self.size,
            "relu",
            init_std=self.init_std,
            zero_up=True,
            scale=self.scale,
        )
        insert_adapters(encoder, architecture, "parallel", ("feedforward",))
