"""LayerNorms only, isolated per task: the paper's smallest baseline ("40k" parameters).

Houlsby et al. 2019 (arXiv 1902.00751), section 3.4 and figure 4. A task trains and owns the scale
and shift of every LayerNorm, the embedding's too, and its head. No deviation is known; the paper
gives no learning rate for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder


@dataclass
class LayerNorm(Learner):
    """Train every LayerNorm.

    A head is trained with them; each task owns its copy.
    """

    lr: float = 5e-3

    tags: ClassVar[Tags] = Tags(
        paper="Houlsby et al. 2019, arXiv 1902.00751",
        stores="LayerNorms, head",
        parameter_isolation=True,
    )

    def trains(self, name: str) -> bool:
        """Return true for LayerNorms."""
        return name in self._layernorms

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Find the LayerNorms."""
        self._layernorms = encoder.layernorm_names()
