"""BitFit, isolated per task: biases and a head (Ben Zaken et al. 2022, arXiv 2106.10199)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.errors import require
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder


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
        """Return true for biases, those of LayerNorms included; some are called ``q_bias``."""
        return name.endswith("bias")

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Look for biases.

        Raises:
            UserError: the encoder has none.
        """
        require(
            any(map(self.trains, encoder.read_parameters())),
            f"learner={self.name}: {type(encoder.body).__name__} has no biases",
        )
