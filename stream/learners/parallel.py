"""Scaled parallel adapters, isolated a task (He et al. 2022, arXiv 2110.04366, table 1, section 4).

y = LN(F(x) + s U relu(D x) + x) at the feed-forward sub-layer, with s = 4 and U = 0 at first, which
the paper found the best single design ("Scaled PA"). The encoder is frozen, LayerNorms too. No
deviation is known; its bottleneck of 512 units on models 1,024 wide is ``size``.
"""

from dataclasses import dataclass

from stream.errors import require
from stream.learners._shared.inserted import Inserted, insert_adapters
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture


@dataclass
class Parallel(Inserted):
    """Adapters of ``size`` units beside every feed-forward sub-layer, and a head."""

    lr: float = 2e-3
    size: int = 64
    scale: float = 4.0
    init_std: float = 0.02

    def __post_init__(self) -> None:
        """Refuse adapters that are none."""
        super().__post_init__()
        require(self.size >= 1, f"learner.size must be at least 1, got {self.size}")
        require(self.scale > 0, f"learner.scale must be positive, got {self.scale}")

    def insert(self, encoder: Encoder) -> None:
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
