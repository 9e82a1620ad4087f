"""Progressive networks: a column of layers a task, with lateral connections (Rusu et al. 2016).

arXiv 1606.04671, equation 2: h_i = f(W_i h_i-1 + U_i relu(V_i [a_j h_i-1^j]_j<k)), the second term
from all earlier columns one layer below, each scaled by a learned a_j, through a bottleneck of
``size`` units. Earlier columns are frozen, so nothing is forgotten; parameters grow by a column a
task and computation with every column. Deviations: a layer is a Transformer layer; columns start
from the pretrained layers, which are a frozen column 0, and share the embeddings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.errors import require
from stream.learners._shared.grown import Grown
from stream.models.encoder import Encoder
from stream.models.modules.columns import Reading, add_columns


@dataclass
class Progressive(Grown):
    """Train a copy of all layers that reads every earlier copy, and a head."""

    lr: float = 4e-4
    head_lr: float | None = 2e-3
    size: int = 64

    PART: ClassVar[str] = "columns"

    def __post_init__(self) -> None:
        """Refuse lateral connections that are none."""
        super().__post_init__()
        require(self.size >= 1, f"learner.size must be at least 1, got {self.size}")

    def grow(self, encoder: Encoder, tasks: Sequence[str]) -> None:
        """Put a column of every task beside the layers."""
        self.use = Reading()
        add_columns(encoder, tasks, self.size, self.use)
