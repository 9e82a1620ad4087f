"""BitFit, isolated per task: biases and a head (Ben Zaken et al. 2022, arXiv 2106.10199)."""

from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner, Tags


@dataclass
class BitFit(Learner):
    """Train every bias.

    A head is trained with them; each task owns its copy.
    """

    lr: float = 8e-3

    tags: ClassVar[Tags] = Tags(
        paper="Ben Zaken et al. 2022, arXiv 2106.10199",
        stores="biases, head",
        parameter_isolation=True,
    )

    def trains(self, name: str) -> bool:
        """Return true for biases, those of LayerNorms included."""
        return name.endswith(".bias")
