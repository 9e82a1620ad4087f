"""DoRA: low-rank changes of the direction of a map's rows, and their lengths, isolated per task.

Liu et al. 2024 (arXiv 2402.09353), equation 5: W' = m (W + c B A) / |W + c B A| with
c = ``alpha`` / ``rank``, A drawn, B = 0 and m = |W| at first, so that nothing is changed (|W| of
W as it came: stored in 4 bits, its rows get back the lengths that they had before); the norm is
that of each output's row, as in the released code, and no gradient goes through it (section 4.3,
equation 11). Changed are the query and value maps, as by `lora`, so that both differ in m
alone. Deviations: the paper changes more maps of its decoders; no dropout before A. The norm is
computed in float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from stream.learners.base import Tags
from stream.learners.lora import Lora
from stream.models.encoder import Encoder
from stream.models.modules.low_rank import Decomposed, change_query_value


@dataclass
class Dora(Lora):
    """Train low-rank directions and lengths of attention.

    The changes are those of query and value maps; a head is trained with them.
    """

    tags: ClassVar[Tags] = replace(
        Lora.tags, paper="Liu et al. 2024, arXiv 2402.09353", stores="low-rank pairs, lengths, head"
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Hook a change to every query and value map."""
        change_query_value(encoder, "dora", lambda m: Decomposed(m, self.rank, self.alpha))
