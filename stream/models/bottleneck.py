"""The bottleneck adapter of Houlsby et al. 2019 (arXiv 1902.00751, section 2.1, figure 2).

The variants are those of its section 3.6. D width of the encoder, M size of the bottleneck.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
    "tanh": torch.tanh,
    "silu": functional.silu,
    "identity": lambda hidden: hidden,
}
FORMS = ("sequential", "parallel", "multiplicative")


@dataclass(frozen=True)
class Architecture:
    """What one adapter is made of.

    Attributes:
        width: D.
        size: M.
        activation: the nonlinearity, a name in `ACTIVATIONS`; ``identity`` leaves it out.
        depth: hidden layers of M units.
        norm: ``layer`` puts a LayerNorm at the adapter's input.
    """

    width: int
    size: int
    activation: str = "gelu"
    depth: int = 1
    norm: str = "none"


class Bottleneck(nn.Module):
    """x + W_up gelu(W_down x + b_down) + b_up: 2DM + D + M parameters.

    The paper does not name the nonlinearity; its released code uses GELU. Each further hidden
    layer adds M^2 + M parameters, a LayerNorm 2D. Weights start as a normal distribution of
    deviation ``init_std``, truncated at two deviations, biases at 0, so that the adapter starts
    near the identity.
    """

    def __init__(self, architecture: Architecture):
        super().__init__()
        width, size = architecture.width, architecture.size
        self._activate = ACTIVATIONS[architecture.activation]
        self.norm = nn.LayerNorm(width) if architecture.norm == "layer" else nn.Identity()
        self.down = nn.Linear(width, size)
        self.inner = nn.ModuleList(nn.Linear(size, size) for _ in range(architecture.depth - 1))
        self.up = nn.Linear(size, width)

    def initialize(self, init_std: float, generator: torch.Generator) -> None:
        """Draw fresh weights; a LayerNorm stays as it is made, scale 1 and shift 0."""
        for layer in self.modules():  # in the order of the computation
            if not isinstance(layer, nn.Linear):
                continue
            # Drawn on the CPU, so that a GPU run starts from the same weights.
            weight = torch.empty(layer.weight.shape)
            nn.init.trunc_normal_(
                weight, std=init_std, a=-2 * init_std, b=2 * init_std, generator=generator
            )
            with torch.no_grad():
                layer.weight.copy_(weight)
                layer.bias.zero_()

    def change(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map hidden states [..., D] to what the adapter adds to them, [..., D]."""
        hidden = self._activate(self.down(self.norm(hidden)))
        for layer in self.inner:
            hidden = self._activate(layer(hidden))
        return self.up(hidden)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map hidden states [..., D] to the same shape."""
        return hidden + self.change(hidden)


class AdaptedDropout(nn.Module):
    """A sub-layer's dropout with an adapter: right before the residual addition.

    Every sub-layer of the BERT family ends in projection, dropout, residual addition, LayerNorm;
    putting the adapter here needs no change to the encoder's own code. With F(x) what the sub-layer
    makes of its input x, up to its dropout, and A what an adapter adds, the LayerNorm reads

    - ``sequential``: F(x) + A(F(x)) + x
    - ``parallel``: F(x) + A(x) + x (He et al. 2022, arXiv 2110.04366, table 1)
    - ``multiplicative``: F(x) (1 + A(x)) + x, by element. The paper only says "possibly with a
      multiplicative interaction"; this one also starts near the identity.
    """

    def __init__(self, dropout: nn.Module, adapter: Bottleneck, form: str = "sequential"):
        super().__init__()
        self.dropout = dropout
        self.adapter = adapter
        self.enabled = True
        """Whether the adapter is there; the sub-layer is the pretrained one without it."""
        self._form = form
        self._input: torch.Tensor | None = None

    def note_input(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        """Remember the sub-layer's input; a forward pre-hook of the module that reads it."""
        del module
        self._input = arguments[0]

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map the projection's output [B, L, D] to what is added to the residual, [B, L, D]."""
        hidden = self.dropout(hidden)
        source, self._input = self._input, None
        if not self.enabled:
            return hidden
        if self._form == "sequential":
            return self.adapter(hidden)
        assert source is not None, "`note_input` hooks the sub-layer's reader"
        change = self.adapter.change(source)
        return hidden + change if self._form == "parallel" else hidden * (1 + change)
