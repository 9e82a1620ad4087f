"""BitFit, isolated a task: biases and a head (Ben Zaken et al. 2022, arXiv 2106.10199)."""

from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner


@dataclass
class BitFit(Learner):
    """Train every bias of the encoder; each task owns its copy."""

    lr: float = 8e-3

    parameter_isolation: ClassVar[bool] = True

    def trains(self, name: str) -> bool:
        """Biases, those of LayerNorms included."""
        return name.endswith(".bias")
