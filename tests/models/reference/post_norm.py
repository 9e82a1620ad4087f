"""A layer with norms behind its residual additions, as BERT's and those of its relatives."""

from collections.abc import Callable
from typing import NamedTuple

import torch

from tests.models.reference.functions import (
    Weights,
    attention,
    gelu,
    heads,
    joined,
    layer_norm,
    linear,
)


class Names(NamedTuple):
    """What a layer's weights are called, inside the layer."""

    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    output: str = "attention.output.dense"
    attention_norm: str = "attention.output.LayerNorm"
    inner: str = "intermediate.dense"
    outer: str = "output.dense"
    feedforward_norm: str = "output.LayerNorm"

    def within(self, layer: str) -> "Names":
        """Return the names with a layer's in front."""
        return Names(*(f"{layer}.{name}" for name in self))


BERT = Names()
Maps = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def maps(weights: Weights, names: Names, x: torch.Tensor) -> Maps:
    """Return queries, keys and values, [B, L, D] each."""
    q, k, v = (linear(weights, name, x) for name in names[:3])
    return q, k, v


def attended(
    found: Maps, number: int, mask: torch.Tensor, bias: torch.Tensor | float = 0.0
) -> torch.Tensor:
    """Return what each token gets of the values, [B, L, D], with ``number`` heads."""
    q, k, v = (heads(x, number) for x in found)
    return joined(attention(q, k, v, mask, bias))


def layer(
    weights: Weights,
    names: Names,
    x: torch.Tensor,
    attend: Callable[[torch.Tensor], torch.Tensor],
    put: Callable[[str, torch.Tensor], torch.Tensor],
    eps: float,
) -> torch.Tensor:
    """Return a layer's output, [B, L, D].

    Args:
        weights: by name.
        names: of the layer's weights.
        x: the layer's input, [B, L, D].
        attend: what its attention makes of x, before the output map.
        put: (sub-layer, F(x)) to what is added to x.
        eps: of its norms.
    """
    f = linear(weights, names.output, attend(x))
    x = layer_norm(weights, names.attention_norm, x + put("attention", f), eps)
    f = linear(weights, names.outer, gelu(linear(weights, names.inner, x)))
    return layer_norm(weights, names.feedforward_norm, x + put("feedforward", f), eps)
