"""Scaled parallel adapters, isolated per task (He et al. 2022, arXiv 2110.04366).

Table 1, section 4:
y = LN(F(x) + s U relu(D x) + x) at the feed-forward sub-layer, with s = 4 and U = 0 at first, which
the paper found the best single design ("Scaled PA"). The encoder is frozen, LayerNorms too. Its
bottleneck of 512 units on models 1,024 wide is ``size``. Deviations: D starts as a normal
distribution of deviation ``init_std`` cut at two deviations, where the paper and its released code
start it as LoRA does (``init_option="lora"``: uniform within 1 / sqrt(width), which is a deviation
of 0.021 at a width of 768, and 0.029 at 384; U and the biases are 0 in both); no dropout behind the
ReLU, which the released code has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import POSITIVE, WIDEST, at_least, setting
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture, insert_adapters


@dataclass
class Parallel(Learner):
    """Train an adapter beside every feed-forward.

    An adapter is a bottleneck; a head is trained with them.

    Attributes:
        size: units of a bottleneck.
        scale: the factor of what a bottleneck adds (s in the paper).
        init_std: the standard deviation of the first weights of the first map; the second starts at
            0.
    """

    lr: float = 2e-3
    size: int = setting(64, at_least(1, WIDEST))
    scale: float = setting(4.0, POSITIVE)
    init_std: float = setting(0.02, POSITIVE)

    tags: ClassVar[Tags] = Tags(
        paper="He et al. 2022, arXiv 2110.04366",
        stores="adapters, head",
        parameter_isolation=True,
    )

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
