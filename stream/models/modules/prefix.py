"""Trained keys and values in front of the attention of every layer (Li & Liang 2021).

B examples, L tokens, P vectors of a prefix, D width, H heads.
"""

from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from stream.models.encoder import Encoder
from stream.models.modules.attention_maps import SelfAttention, maps_of, self_attentions
from stream.models.modules.fresh import Fresh


class Prefix(Fresh):
    """P keys and P values of one layer: 2 P D parameters, normal with deviation ``std`` at first.

    They are what the key and value maps would give, so they are cut into heads as those are.
    """

    def __init__(self, width: int, length: int, std: float):
        super().__init__()
        self.keys = nn.Parameter(torch.empty(length, width))
        self.values = nn.Parameter(torch.empty(length, width))
        self._std = std

    def initialize(self, generator: torch.Generator) -> None:
        """Draw keys, then values."""
        with torch.no_grad():
            for part in self.parameters():
                part.copy_(torch.randn(part.shape, generator=generator) * self._std)


def attend(
    self: Any,
    hidden_states: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor | None, ...]:
    """Compute a layer's attention with its prefix, in place of the module's own ``forward``.

    softmax(Q [P_K; K]^T / sqrt(D / H)) [P_V; V] in every head (Li & Liang 2021, section 4.2; He et
    al. 2022, arXiv 2110.04366, equation 5). Every token reads the whole prefix: no mask hides it,
    and MPNet's bias by relative position is 0 there, for a prefix has no position.

    Args:
        self: the module of transformers that computes self-attention.
        hidden_states: [B, L, D].
        attention_mask: what may be read (bool), or what is added to scores, [B, 1, 1 or L, L].
        position_bias: what is added to scores, [B, H, L, L].
        kwargs: what encoders without a cache have no use for.
    """
    attention = maps_of(self)
    assert attention is not None
    assert kwargs.get("cache") is None
    prefix: Prefix = self.prefix
    rows = len(hidden_states)

    def by_head(states: torch.Tensor, first: torch.Tensor | None = None) -> torch.Tensor:
        if first is not None:
            states = torch.cat([first.expand(rows, -1, -1), states], dim=1)
        return states.unflatten(-1, (attention.heads, -1)).transpose(1, 2)

    context = functional.scaled_dot_product_attention(
        by_head(attention.query(hidden_states)),
        by_head(attention.key(hidden_states), prefix.keys),
        by_head(attention.value(hidden_states), prefix.values),
        attn_mask=_widened(attention_mask, position_bias, len(prefix.keys)),
        dropout_p=self.dropout.p if self.training else 0.0,
    )
    context = context.transpose(1, 2).flatten(2)
    return (context, None) if attention.output is None else (attention.output(context),)


def _widened(
    mask: torch.Tensor | None, bias: torch.Tensor | None, length: int
) -> torch.Tensor | None:
    """Return what both say of tokens, with ``length`` columns that are always read in front."""
    if bias is not None:
        mask = bias if mask is None else mask + bias
    if mask is None:
        return None
    always = 1.0 if mask.dtype == torch.bool else 0.0
    return functional.pad(mask, (length, 0), value=always)


def insert_prefixes(encoder: Encoder, length: int, std: float, learner: str) -> list[Prefix]:
    """Give the attention of every layer a prefix.

    Args:
        encoder: the encoder.
        length: P.
        std: deviation of the first keys and values.
        learner: who asks, for the message.

    Returns:
        The prefixes, from the bottom up.

    Raises:
        UserError: an encoder whose attention is not found.
    """
    return [_insert(found, length, std) for found in self_attentions(encoder, learner)]


def _insert(attention: SelfAttention, length: int, std: float) -> Prefix:
    """Give one layer's attention a prefix."""
    prefix = Prefix(attention.key.out_features, length, std)
    attention.module.add_module("prefix", prefix)
    attention.module.forward = MethodType(attend, attention.module)  # a copy gets its own
    return prefix
