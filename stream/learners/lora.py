"""LoRA: a low-rank change of attention's query and value maps, isolated per task.

Hu et al. 2022 (arXiv 2106.09685), equation 3: W x + (alpha / r) B A x, A drawn, B = 0 at first, on
W_q and W_v (section 4.2). Deviation: no dropout before A.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.errors import require
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.low_rank import LowRank, query_value_maps


@dataclass
class Lora(Learner):
    """Train changes of rank ``rank`` of every query and value map, and a head."""

    lr: float = 4e-3
    rank: int = 8
    alpha: float = 16.0

    tags: ClassVar[Tags] = Tags(parameter_isolation=True)

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless rank >= 1 and alpha > 0."""
        super().__post_init__()
        require(self.rank >= 1, f"learner.rank must be at least 1, got {self.rank}")
        require(self.alpha > 0, f"learner.alpha must be positive, got {self.alpha}")

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Hook a low-rank map to every query and value map."""
        for module in query_value_maps(encoder, self.name):
            change = LowRank(module, self.rank, self.alpha)
            module.add_module("lora", change)
            module.register_forward_hook(change.change)
