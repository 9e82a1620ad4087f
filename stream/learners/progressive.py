"""Progressive networks: a column of layers per task, with lateral connections (Rusu et al. 2016).

arXiv 1606.04671, equation 2: h_i = f(W_i h_i-1 + U_i relu(V_i [a_j h_i-1^j]_j<k)), the second term
from all earlier columns one layer below, each scaled by a learned a_j, through a bottleneck of
``size`` units. Earlier columns are frozen, so nothing is forgotten; parameters grow by a column per
task and computation with every column. Deviations: a layer is a Transformer layer; columns start
from the pretrained layers, which are a frozen column 0, and share the embeddings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import WIDEST, at_least, setting
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.columns import add_columns


@dataclass
class Progressive(Learner):
    """Train a column that reads earlier columns.

    A column is a copy of all layers. A head is trained with it.

    Attributes:
        size: units of the lateral connections to earlier columns.
    """

    lr: float = 4e-4
    head_lr: float | None = 2e-3
    size: int = setting(64, at_least(1, WIDEST))

    tags: ClassVar[Tags] = Tags(
        paper="Rusu et al. 2016, arXiv 1606.04671",
        stores="column of layers, head",
        parameter_isolation=True,
        reads_past_tasks=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Put a column of every task beside the layers."""
        add_columns(encoder, task_names, self.size, self.active)
