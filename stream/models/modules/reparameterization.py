"""MLPs that make a prompt while it is learned; only what they made last is kept.

P vectors of a prompt, E their width, M units of the MLP.
"""

from collections.abc import Sequence

import torch
from torch import nn

from stream.models.modules.fresh import Fresh


class Reparameterization(Fresh):
    """Makes the values of some parameters from an input of its own.

    `initialize` draws the two linear maps as torch does (uniform within 1 / sqrt(D_in)).
    """

    def __init__(self, width: int, units: int, outputs: int):
        super().__init__()
        self.down = nn.Linear(width, units)
        self.up = nn.Linear(units, outputs)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the maps."""
        with torch.no_grad():
            for layer in (self.down, self.up):
                bound = layer.in_features**-0.5
                for parameter in layer.parameters():
                    uniform = torch.rand(parameter.shape, generator=generator)
                    parameter.copy_((2 * uniform - 1) * bound)

    def take(self, values: list[torch.Tensor]) -> None:
        """See the first values of the parameters that it makes from now on."""
        del values

    def forward(self) -> list[torch.Tensor]:
        """Return the values of the parameters."""
        raise NotImplementedError


class ResidualPrompt(Reparameterization):
    """p + W2 tanh(W1 p + b1) + b2, from p [P, E], which starts as the prompt did.

    2 E M + M + E parameters, and P E of p.
    """

    def __init__(self, length: int, width: int, units: int):
        super().__init__(width, units, width)
        self.base = nn.Parameter(torch.zeros(length, width))

    def take(self, values: list[torch.Tensor]) -> None:
        """Start p as the prompt's first vectors."""
        with torch.no_grad():
            self.base.copy_(values[0])

    def forward(self) -> list[torch.Tensor]:
        """Return the prompt [P, E]."""
        return [self.base + self.up(torch.tanh(self.down(self.base)))]


class PrefixMlp(Reparameterization):
    """W2 tanh(W1 p + b1) + b2, from p [P, D], cut into the keys and values of all layers' prefixes.

    P D + D M + M + S (M + 1) parameters, S the sum of their ``widths`` (D each, unless heads share
    keys); p is drawn from a standard normal distribution.
    """

    def __init__(self, length: int, width: int, units: int, widths: Sequence[int]):
        super().__init__(width, units, sum(widths))
        self.base = nn.Parameter(torch.zeros(length, width))
        self._widths = list(widths)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the maps, then p."""
        super().initialize(generator)
        with torch.no_grad():
            self.base.copy_(torch.randn(self.base.shape, generator=generator))

    def forward(self) -> list[torch.Tensor]:
        """Return keys and values of the layers, from the bottom up, each [P, its width]."""
        made = self.up(torch.tanh(self.down(self.base)))
        return list(made.split(self._widths, dim=1))
