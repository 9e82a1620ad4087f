"""One adapter per layer, behind the feed-forward sub-layer, isolated per task (Pfeiffer 2020).

Pfeiffer et al., MAD-X (arXiv 2005.00052), section 4.2, and AdapterFusion (arXiv 2005.00247),
section 3: with f what
the feed-forward sub-layer adds to its input x, y = LN(U relu(D LN(f + x)) + f + x) with the
sub-layer's own LayerNorm, which stays frozen; half of Houlsby's parameters. ``reduction`` is D / M.
No deviation is known; the first weights have the deviation of BERT's, as in AdapterHub.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import POSITIVE, WIDEST, at_least, setting
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import insert_adapters, reduced


@dataclass
class Pfeiffer(Learner):
    """Train an adapter per feed-forward layer.

    An adapter is a bottleneck behind a sub-layer; a head is trained with them.

    Attributes:
        reduction: how many times narrower a bottleneck is than the encoder.
        init_std: the standard deviation of the first weights.
    """

    lr: float = 4e-3
    reduction: int = setting(16, at_least(1, WIDEST))
    init_std: float = setting(0.02, POSITIVE)

    tags: ClassVar[Tags] = Tags(
        paper="Pfeiffer et al. 2020, arXiv 2005.00052",
        stores="adapters, head",
        parameter_isolation=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Put an adapter into every feed-forward sub-layer."""
        architecture = reduced(encoder.width, self.reduction, self.init_std)
        insert_adapters(encoder, architecture, "pfeiffer", ("feedforward",))
