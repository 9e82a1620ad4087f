"""The bottleneck adapter of Houlsby et al. 2019 (arXiv 1902.00751, section 2.1, figure 2).

The variants are those of its section 3.6. D width of the encoder, M size of the bottleneck.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from stream.errors import require
from stream.models.encoder import Encoder
from stream.models.modules.fresh import Fresh
from stream.models.places import POSITIONS, Insertion, SubLayer

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
    "tanh": torch.tanh,
    "silu": functional.silu,
    "identity": lambda hidden: hidden,
}


@dataclass(frozen=True)
class Architecture:
    """What one adapter is made of.

    Attributes:
        width: D.
        size: M.
        activation: the nonlinearity, a name in `ACTIVATIONS`; ``identity`` leaves it out.
        depth: hidden layers of M units.
        norm: ``layer`` puts a LayerNorm at the adapter's input.
        init_std: deviation of the first weights.
        zero_up: the last map starts at 0 instead, so that the adapter changes nothing at first.
        scale: factor of what the adapter adds.
    """

    width: int
    size: int
    activation: str = "gelu"
    depth: int = 1
    norm: str = "none"
    init_std: float = 1e-2
    zero_up: bool = False
    scale: float = 1.0


def reduced(width: int, reduction: int, init_std: float) -> Architecture:
    """Return the adapter of Pfeiffer et al. 2020: ReLU and D / ``reduction`` units.

    Args:
        width: D, the encoder's.
        reduction: how many times narrower the adapter is.
        init_std: of its first weights.

    Raises:
        UserError: no unit would be left.
    """
    require(
        reduction <= width,
        f"learner.reduction={reduction} leaves no unit: the encoder is {width} wide",
    )
    return Architecture(width, width // reduction, "relu", init_std=init_std)


class Switch:
    """Whether an adapter is there; the sub-layer is the pretrained one without it.

    A copy of the encoder (`stream.models.bf16`) has the same switch.
    """

    on: bool = True

    def __deepcopy__(self, memo: object) -> "Switch":
        """Return the same switch."""
        return self


class Bottleneck(Fresh):
    """x + W_up gelu(W_down x + b_down) + b_up: 2DM + D + M parameters.

    The paper does not name the nonlinearity; its released code uses GELU. Each further hidden
    layer adds M^2 + M parameters, a LayerNorm 2D. Weights start as a normal distribution of
    deviation ``init_std``, truncated at two deviations, biases at 0, so that the adapter starts
    near the identity.
    """

    def __init__(self, architecture: Architecture):
        super().__init__()
        width, size = architecture.width, architecture.size
        self._architecture = architecture
        self._activate = ACTIVATIONS[architecture.activation]
        self.norm = nn.LayerNorm(width) if architecture.norm == "layer" else nn.Identity()
        self.down = nn.Linear(width, size)
        self.inner = nn.ModuleList(nn.Linear(size, size) for _ in range(architecture.depth - 1))
        self.up = nn.Linear(size, width)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw fresh weights; a LayerNorm gets scale 1 and shift 0."""
        for layer in self.modules():  # in the order of the computation
            if isinstance(layer, nn.LayerNorm):
                layer.reset_parameters()
            if isinstance(layer, nn.Linear):
                draw(layer, self._architecture.init_std, generator)
        if self._architecture.zero_up:
            nn.init.zeros_(self.up.weight)

    def change(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map hidden states [..., D] to what the adapter adds to them, [..., D]."""
        hidden = self._activate(self.down(self.norm(hidden)))
        for layer in self.inner:
            hidden = self._activate(layer(hidden))
        added, scale = self.up(hidden), self._architecture.scale
        return added if scale == 1 else added * scale

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map hidden states [..., D] to the same shape."""
        return hidden + self.change(hidden)


def draw(layer: nn.Linear, std: float, generator: torch.Generator) -> None:
    """Draw a map's weights from a normal distribution cut at two deviations; its bias is 0."""
    weight = torch.empty(layer.weight.shape)
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std, generator=generator)
    with torch.no_grad():
        layer.weight.copy_(weight)
        if layer.bias is not None:
            layer.bias.zero_()


# (adapter, F(x), x, the sub-layer's LayerNorm) to what is added to the residual.
Form = Callable[[Bottleneck, torch.Tensor, torch.Tensor, nn.Module], torch.Tensor]
FORMS: dict[str, Form] = {
    "sequential": lambda adapter, f, x, norm: adapter(f),
    "parallel": lambda adapter, f, x, norm: f + adapter.change(x),
    "multiplicative": lambda adapter, f, x, norm: f * (1 + adapter.change(x)),
    "pfeiffer": lambda adapter, f, x, norm: f + adapter.change(norm(f + x)),
}


READS = {"sequential": "", "parallel": "input", "multiplicative": "input", "pfeiffer": "residual"}
"""What each form reads besides F(x)."""


class AdaptedSubLayer(Insertion):
    """A sub-layer with an adapter: right before the residual addition.

    With x what is added back, F(x) what the sub-layer makes of its input, up to its end, and A what
    an adapter adds, the sum becomes

    - ``sequential``: F(x) + A(F(x)) + x
    - ``parallel``: F(x) + A(i) + x (He et al. 2022, arXiv 2110.04366, table 1), i what the
      sub-layer's maps read: x itself where norms come after, its norm where they come before
    - ``multiplicative``: F(x) (1 + A(i)) + x, by element. The paper only says "possibly with a
      multiplicative interaction"; this one also starts near the identity.
    - ``pfeiffer``: F(x) + A(LN(F(x) + x)) + x, with the norm that reads the sum: the sub-layer's
      own (Pfeiffer et al. 2020, arXiv 2005.00052, section 4.2), or the next one's where norms come
      before
    """

    def __init__(self, place: SubLayer, adapter: Bottleneck, form: str = "sequential"):
        self.adapter = adapter
        self.there = Switch()
        self._form, self._norm = FORMS[form], place.norm
        super().__init__(place, {"adapter": adapter}, READS[form])

    def change(self, f: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """Return the sub-layer's output [B, L, D] with what the adapter adds."""
        return self._form(self.adapter, f, source, self._norm) if self.there.on else f


def insert_adapters(
    encoder: Encoder,
    architecture: Architecture,
    form: str = "sequential",
    positions: Sequence[str] = POSITIONS,
) -> list[tuple[int, AdaptedSubLayer]]:
    """Insert an adapter at the end of every sub-layer at ``positions``.

    Args:
        encoder: the encoder.
        architecture: of each adapter.
        form: how what it adds enters the residual, a name in `FORMS`.
        positions: ``attention``, ``feedforward`` or both.

    Returns:
        (layer, adapted sub-layer) of each, from the bottom up.
    """
    adapted = []
    for place in encoder.sublayers():
        if place.position in positions:
            adapter = Bottleneck(architecture)
            adapted.append((place.layer, AdaptedSubLayer(place, adapter, form)))
    return adapted
