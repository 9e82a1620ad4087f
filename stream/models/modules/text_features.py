"""What stands between an encoder's vector of a text and the heads: a random projection, a length.

B texts, D width of the encoder, M of the projection.
"""

from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from stream.models.modules.fresh import Fresh


class TextFeatures(Fresh):
    """x -> relu(x P), where P is wanted, scaled to length 1, where that is.

    P [D, M] has standard normal entries, which nothing trains (RanPAC, McDonnell et al. 2023, arXiv
    2307.02251).

    Args:
        width: D.
        projection: M; 0 leaves the vectors as they are.
        unit: whether vectors are scaled to length 1.
    """

    purpose: ClassVar[str] = "projection"

    def __init__(self, width: int, projection: int, *, unit: bool):
        super().__init__()
        self.width = projection or width
        self.unit = unit
        self.projection = nn.Parameter(torch.zeros(width, projection)) if projection else None

    def initialize(self, generator: torch.Generator) -> None:
        """Draw P."""
        if self.projection is not None:
            nn.init.normal_(self.projection, generator=generator)

    def forward(self, texts: torch.Tensor) -> torch.Tensor:
        """Map the encoder's vectors [B, D] to what heads read, [B, M] or [B, D]."""
        if self.projection is not None:
            texts = (texts @ self.projection).relu()
        return functional.normalize(texts, dim=1) if self.unit else texts
