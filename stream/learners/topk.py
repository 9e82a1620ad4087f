"""Variable fine-tuning: the top k layers and a head, isolated per task.

Houlsby et al. 2019 (arXiv 1902.00751), section 3.3 (k in 1, 2, 3, 5, 7, 9, 11, 12 of BERT-base,
chosen for each task) and figure 4. A task trains and owns its copy of the top ``layers``
Transformer layers; embeddings and lower layers are frozen, and no gradient is computed below the
lowest trained layer. Deviations: one k for all tasks; the pooler is trained only where the head
reads it (``backbone.pooling=pooler``). Where norms come before sub-layers, the norm behind the last
layer is trained too: it is what in BERT is the last norm of the top layer. A layer that is used
several times is one layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import at_least, setting
from stream.errors import require
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder


@dataclass
class TopK(Learner):
    """Train a copy of the top layers.

    A head is trained with them; each task owns its copy.

    Attributes:
        layers: how many layers from the top are trained (k in the paper); at most all of the
            encoder's.
    """

    lr: float = 4e-4
    head_lr: float | None = 2e-3
    layers: int = setting(1, at_least(1))

    tags: ClassVar[Tags] = Tags(
        paper="Houlsby et al. 2019, arXiv 1902.00751",
        stores="top layers, head",
        parameter_isolation=True,
    )

    def trains(self, name: str) -> bool:
        """Return true for the top layers, and what is above them."""
        return name in self._top or name.startswith("body.pooler.")

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Find the top layers.

        Raises:
            UserError: the encoder has fewer layers.
        """
        count = len(encoder.layers())
        require(
            self.layers <= count,
            f"learner.layers must be at most {count}, all that there are; got {self.layers}",
        )
        self._top = encoder.layer_names(count - self.layers)
