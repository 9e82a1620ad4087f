"""LoRA: a low-rank change of attention's query and value maps, isolated per task.

Hu et al. 2022 (arXiv 2106.09685), equation 3: W x + (alpha / r) B A x, A drawn, B = 0 at first, on
W_q and W_v (section 4.2). Deviation: no dropout before A.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import POSITIVE, WIDEST, at_least, setting
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.low_rank import LowRank, change_query_value


@dataclass
class Lora(Learner):
    """Train low-rank changes of attention.

    The changes are those of query and value maps; a head is trained with them.

    Attributes:
        rank: the rank of the change of a query or value map (r in the paper).
        alpha: the change is scaled by ``alpha`` / ``rank``.
    """

    lr: float = 4e-3
    rank: int = setting(8, at_least(1, WIDEST))
    alpha: float = setting(16.0, POSITIVE)

    tags: ClassVar[Tags] = Tags(
        paper="Hu et al. 2022, arXiv 2106.09685",
        stores="low-rank pairs, head",
        parameter_isolation=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Hook a low-rank map to every query and value map."""
        change_query_value(encoder, "lora", lambda m: LowRank(m, self.rank, self.alpha))
