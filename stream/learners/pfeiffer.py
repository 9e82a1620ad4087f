"""One adapter a layer, after the feed-forward sub-layer, isolated a task (Pfeiffer et al. 2020).

MAD-X (arXiv 2005.00052), section 4.2, and AdapterFusion (arXiv 2005.00247), section 3: with f what
the feed-forward sub-layer adds to its input x, y = LN(U relu(D LN(f + x)) + f + x) with the
sub-layer's own LayerNorm, which stays frozen; half of Houlsby's parameters. ``reduction`` is D / M.
No deviation is known; the first weights have the deviation of BERT's, as in AdapterHub.
"""

from dataclasses import dataclass

from stream.errors import require
from stream.learners._shared.inserted import Inserted, insert_adapters
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import reduced


@dataclass
class Pfeiffer(Inserted):
    """Adapters of D / ``reduction`` units after every feed-forward sub-layer, and a head."""

    lr: float = 4e-3
    reduction: int = 16
    init_std: float = 0.02

    def __post_init__(self) -> None:
        """Refuse a reduction that is none."""
        super().__post_init__()
        require(self.reduction >= 1, f"learner.reduction must be at least 1, got {self.reduction}")

    def insert(self, encoder: Encoder) -> None:
        """Put an adapter into every feed-forward sub-layer."""
        architecture = reduced(encoder.width, self.reduction, self.init_std)
        insert_adapters(encoder, architecture, "pfeiffer", ("feedforward",))
