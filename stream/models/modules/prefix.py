"""Trained keys and values in front of the attention of every layer (Li & Liang 2021).

B examples, L tokens, P vectors of a prefix, H heads, K heads of keys and values (H, or fewer that
several queries share), W width of a head.

Where an encoder's attention goes through the functions of transformers (`AttentionInterface`), one
of our own is called instead, which puts the prefix in front. An attention module that computes by
itself what is softmax(Q K^T / sqrt(W) + bias + mask) V gets another ``forward``.
"""

import inspect
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from stream.errors import require
from stream.models.encoder import Encoder
from stream.models.modules.fresh import Fresh
from stream.models.places import AttentionMaps, SubLayer

KINDS = ("sdpa", "eager")
"""Attention functions that take any mask: what is computed behind a prefix."""
ROLES = ("query", "key", "value", "output")


class Prefix(Fresh):
    """P keys and P values of one layer, [P, K W] each, normal with deviation ``std`` at first.

    They are what attention reads, cut into heads as what the key and value maps give: a family that
    turns keys by their position or norms them does not do so with these.
    """

    def __init__(self, maps: AttentionMaps, length: int, std: float):
        super().__init__()
        self.keys = nn.Parameter(torch.empty(length, maps.key.out_features))
        self.values = nn.Parameter(torch.empty(length, maps.value.out_features))
        self._std = std

    def initialize(self, generator: torch.Generator) -> None:
        """Draw keys, then values."""
        with torch.no_grad():
            for part in self.parameters():
                part.copy_(torch.randn(part.shape, generator=generator) * self._std)

    def before(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values [B, K, L, W] with the prefix in front, [B, K, P + L, W]."""
        return _joined(self.keys, key), _joined(self.values, value)

    def widened(self, mask: torch.Tensor | None) -> torch.Tensor | None:
        """Return a mask (bool) or what is added to scores, [..., L], with P columns in front.

        They are read, and nothing is added to their scores. None, which masks nothing, stays.
        """
        if mask is None:
            return None
        always = 1.0 if mask.dtype == torch.bool else 0.0
        return functional.pad(mask, (len(self.keys), 0), value=always)


def _joined(first: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
    """Return vectors [P, K W] in front of a layer's [B, K, L, W], as [B, K, P + L, W]."""
    by_token = states.transpose(1, 2)
    first = first.to(states.dtype).expand(len(states), -1, -1)
    joined = torch.cat([first, by_token.flatten(2)], dim=1)  # [B, P + L, K W]
    return joined.unflatten(-1, by_token.shape[2:]).transpose(1, 2)


def prefix_of(module: Any) -> Prefix:
    """Return the prefix that an attention module computes with now."""
    uses = module.prefix_uses
    return module.prefix if uses is None else getattr(module, f"prefix_{uses.current}")


def attend(
    kind: str,
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Compute a layer's attention with its prefix, an attention function of transformers.

    softmax(Q [P_K; K]^T / sqrt(W)) [P_V; V] in every head (Li & Liang 2021, section 4.2; He et al.
    2022, arXiv 2110.04366, equation 5). Every token reads the whole prefix: no mask hides it, and
    a bias by relative position is 0 there, for a prefix has no position.

    Args:
        kind: of `KINDS`.
        module: computes the attention of a layer.
        query: [B, H, L, W].
        key: [B, K, L, W].
        value: [B, K, L, W].
        attention_mask: what may be read (bool), or what is added to scores, [B, 1, 1 or L, L].
            None says that all is read.
        kwargs: other arguments of attention functions.
    """
    prefix = prefix_of(module)
    is_causal = kwargs.pop("is_causal", None)
    is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    assert attention_mask is not None or not is_causal, "`stream.models.masks` makes those masks"
    bias = kwargs.pop("position_bias", None)
    if bias is not None:
        kwargs["position_bias"] = prefix.widened(bias)
    keys, values = prefix.before(key, value)
    mask = prefix.widened(attention_mask)
    return _function(kind)(module, query, keys, values, mask, is_causal=False, **kwargs)


def plain_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute attention step by step, as transformers' eager functions: with a cap of scores too.

    Args:
        module: learns or serves.
        query: [B, H, L, W].
        key: [B, K, P + L, W].
        value: [B, K, P + L, W].
        attention_mask: what may be read (bool), or what is added to scores.
        options: as transformers calls them: ``scaling``, and if there are ``dropout``, ``softcap``,
            ``position_bias``.

    Returns:
        What the heads give, [B, L, H, W], and the weights.
    """
    shared = query.shape[1] // key.shape[1]
    key, value = (states.repeat_interleave(shared, dim=1) for states in (key, value))
    scores = query @ key.transpose(2, 3) * options["scaling"]
    if (cap := options.get("softcap")) is not None:
        scores = torch.tanh(scores / cap) * cap
    if (bias := options.get("position_bias")) is not None:
        scores = scores + bias
    if attention_mask is not None:
        added = attention_mask.dtype != torch.bool
        least = torch.finfo(scores.dtype).min
        scores = scores + attention_mask if added else scores.where(attention_mask, least)
    exact = torch.promote_types(query.dtype, torch.float32)
    weights = scores.softmax(-1, dtype=exact).to(query.dtype)
    weights = functional.dropout(weights, options.get("dropout", 0.0), module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def _function(kind: str) -> Callable[..., Any]:
    """Return the attention function of a kind."""
    from transformers import AttentionInterface

    return plain_attention if kind == "eager" else AttentionInterface()[kind]


def attend_itself(
    self: Any,
    hidden_states: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor]:
    """Compute a layer's attention with its prefix, in place of the module's own ``forward``.

    Args:
        self: the module of transformers that computes self-attention.
        hidden_states: [B, L, D].
        attention_mask: what is added to scores, [B, 1, 1 or L, L].
        position_bias: what is added to scores, [B, H, L, L].
        kwargs: what encoders without a cache have no use for.
    """
    assert kwargs.get("cache") is None
    maps, prefix = self.prefix_maps, prefix_of(self)

    def by_head(name: str) -> torch.Tensor:
        made = getattr(self, name)(hidden_states)
        return made.unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)

    # In this order, in which gradients of what all three read are summed.
    query, key, value = (by_head(maps[role]) for role in ("query", "key", "value"))
    keys, values = prefix.before(key, value)
    mask = attention_mask
    if position_bias is not None:
        mask = position_bias if mask is None else mask + position_bias
    context = functional.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=prefix.widened(mask),
        dropout_p=self.dropout.p if self.training else 0.0,
    )
    return (getattr(self, maps["output"])(context.transpose(1, 2).flatten(2)),)


def insert_prefixes(encoder: Encoder, length: int, std: float, learner: str) -> list[Prefix]:
    """Give the attention of every layer a prefix; of a layer used several times, every use.

    Args:
        encoder: the encoder.
        length: P.
        std: deviation of the first keys and values.
        learner: who asks, for the message.

    Returns:
        The prefixes, from the bottom up.

    Raises:
        UserError: an encoder whose attention no prefix can enter.
    """
    layers = encoder.attention_maps()
    _enter_attention(encoder, layers, learner)
    places = [place for place in encoder.sublayers() if place.position == "attention"]
    return [
        _insert(place, layers[place.layer * len(layers) // len(places)], length, std)
        for place in places
    ]


def _insert(place: SubLayer, maps: AttentionMaps, length: int, std: float) -> Prefix:
    """Give one use of a layer a prefix."""
    prefix = Prefix(maps, length, std)
    maps.module.add_module(place.named("prefix"), prefix)
    vars(maps.module)["prefix_uses"] = place.uses
    return prefix


def _enter_attention(encoder: Encoder, layers: list[AttentionMaps], learner: str) -> None:
    """Let the attention of every layer read a prefix.

    Raises:
        UserError: it cannot.
    """
    body: Any = encoder.body
    if body._can_set_attn_implementation():
        _replace_function(body, learner)
        return
    for maps in layers:
        _replace_forward(type(body).__name__, maps, learner)


def _replace_function(body: Any, learner: str) -> None:
    """Let an encoder call `attend`, with masks as before.

    Raises:
        UserError: it computes attention by kernels that take no mask.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    kind = body.config._attn_implementation
    require(
        kind in KINDS,
        f"learner={learner}: attention must be computed by {' or '.join(KINDS)}, got {kind!r}",
    )
    name = f"stream_prefix_{kind}"
    AttentionInterface.register(name, partial(attend, kind))
    AttentionMaskInterface.register(name, AttentionMaskInterface()[kind])
    body.set_attn_implementation(name)


def _replace_forward(encoder: str, maps: AttentionMaps, learner: str) -> None:
    """Let an attention module compute `attend_itself`.

    Args:
        encoder: what it is part of, for the message.
        maps: of the layer.
        learner: who asks, for the message.

    Raises:
        UserError: what it computes is not known.
    """
    module = maps.module
    names = {child: name for name, child in module.named_children()}
    found = {role: names.get(getattr(maps, role).module) for role in ROLES}
    read = inspect.signature(module.forward).parameters
    require(
        None not in found.values() and {"attention_mask", "position_bias"} <= read.keys(),
        f"learner={learner}: {encoder} computes attention by itself, not by transformers' "
        "attention functions, so that no keys can be put in front of those of the tokens",
    )
    vars(module)["prefix_maps"] = found
    vars(module)["forward"] = MethodType(attend_itself, module)  # a copy gets its own
