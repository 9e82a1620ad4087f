"""The bottleneck adapter of Houlsby et al. 2019 (arXiv 1902.00751, section 2.1, figure 2).

D width of the encoder, M size of the bottleneck.
"""

import torch
from torch import nn
from torch.nn import functional


class Bottleneck(nn.Module):
    """x + W_up gelu(W_down x + b_down) + b_up: 2DM + D + M parameters.

    The paper does not name the nonlinearity; its released code uses GELU. Weights start as a
    normal distribution of deviation ``init_std``, truncated at two deviations, biases at 0, so
    that the adapter starts near the identity.
    """

    def __init__(self, width: int, size: int):
        super().__init__()
        self.down = nn.Linear(width, size)
        self.up = nn.Linear(size, width)

    def initialize(self, init_std: float, generator: torch.Generator) -> None:
        """Draw fresh weights."""
        for layer in (self.down, self.up):
            # Drawn on the CPU, so that a GPU run starts from the same weights.
            weight = torch.empty(layer.weight.shape)
            nn.init.trunc_normal_(
                weight, std=init_std, a=-2 * init_std, b=2 * init_std, generator=generator
            )
            with torch.no_grad():
                layer.weight.copy_(weight)
                layer.bias.zero_()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map hidden states [..., D] to the same shape."""
        return hidden + self.up(functional.gelu(self.down(hidden)))


class AdaptedDropout(nn.Module):
    """A sub-layer's dropout followed by an adapter: right before the residual addition.

    Every sub-layer of the BERT family ends in projection, dropout, residual addition, LayerNorm;
    putting the adapter here needs no change to the encoder's own code.
    """

    def __init__(self, dropout: nn.Module, adapter: Bottleneck):
        super().__init__()
        self.dropout = dropout
        self.adapter = adapter

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map the projection's output [B, L, D] to the adapter's output [B, L, D]."""
        return self.adapter(self.dropout(hidden))
