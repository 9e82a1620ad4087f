"""DeBERTa (He et al. 2021, arXiv 2006.03654) and its versions 2 and 3 (arXiv 2111.09543).

The score of query i and key j is, with kr and qr what maps make of the embedding of a distance,

    (q_i k_j + q_i kr[i - j] + k_j qr[i - j]) / sqrt(3 d)

The paper's equation 4 has qr[j - i] in the last term; its released code, with which the published
weights were trained, has i - j, and so has transformers.
"""

import math
from functools import partial
from typing import Any

import torch

from stream.data.batch import TokenBatch
from tests.models.reference.functions import (
    End,
    Weights,
    attention,
    gelu,
    heads,
    joined,
    layer_norm,
    linear,
    places,
    same,
)
from tests.models.reference.post_norm import BERT, Maps, Names, layer, maps

V2 = Names(
    query="attention.self.query_proj",
    key="attention.self.key_proj",
    value="attention.self.value_proj",
)


def embedded(weights: Weights, config: Any, batch: TokenBatch) -> torch.Tensor:
    """Return the embeddings, 0 at padding, [B, L, D]."""
    x = weights["embeddings.word_embeddings.weight"][batch.input_ids]
    if config.position_biased_input:
        table = weights["embeddings.position_embeddings.weight"]
        x = x + table[places(batch.attention_mask)]
    if config.type_vocab_size > 0:
        x = x + weights["embeddings.token_type_embeddings.weight"][batch.token_type_ids]
    if x.shape[-1] != config.hidden_size:
        x = linear(weights, "embeddings.embed_proj", x)
    x = layer_norm(weights, "embeddings.LayerNorm", x, config.layer_norm_eps)
    return x * batch.attention_mask[..., None]


def most_distance(config: Any) -> int:
    """Return from which distance on all are alike."""
    given = config.max_relative_positions
    return config.max_position_embeddings if given < 1 else given


def bucket(distance: int, buckets: int, most: int) -> int:
    """Return the bucket of a distance: itself if it is near, then by its logarithm."""
    half = buckets // 2
    if buckets < 1 or abs(distance) <= half:
        return distance
    steps = math.ceil(math.log(abs(distance) / half) / math.log((most - 1) / half) * (half - 1))
    return int(math.copysign(half + steps, distance))


def rows(config: Any, length: int) -> torch.Tensor:
    """Return which row of the table of distances belongs to query i and key j, [L, L]."""
    most, buckets = most_distance(config), getattr(config, "position_buckets", -1)
    reach = buckets if buckets > 0 else most
    tokens = range(length)
    found = [[bucket(i - j, buckets, most) + reach for j in tokens] for i in tokens]
    return torch.tensor(found).clamp(0, 2 * reach - 1)


def by_distance(
    q: torch.Tensor,
    k: torch.Tensor,
    kr: torch.Tensor | None,
    qr: torch.Tensor | None,
    row: torch.Tensor,
) -> torch.Tensor:
    """Return the terms of distances in the scores, before they are scaled, [B, H, L, L].

    Args:
        q: queries, [B, H, L, d].
        k: keys, likewise.
        kr: keys of distances, [rows, H d]; None leaves their term out.
        qr: queries of distances, likewise.
        row: of the table for each pair of tokens, [L, L].
    """
    total = torch.zeros(*q.shape[:3], q.shape[2], dtype=q.dtype)
    number = q.shape[1]
    if kr is not None:
        total = total + torch.einsum("bhid,ijhd->bhij", q, kr.unflatten(-1, (number, -1))[row])
    if qr is not None:
        total = total + torch.einsum("bhjd,ijhd->bhij", k, qr.unflatten(-1, (number, -1))[row])
    return total


def _attended(
    config: Any,
    found: Maps,
    mask: torch.Tensor,
    kr: torch.Tensor | None,
    qr: torch.Tensor | None,
) -> torch.Tensor:
    """Return what each token gets of the values, [B, L, D]."""
    q, k, v = (heads(x, config.num_attention_heads) for x in found)
    scale = (q.shape[-1] * (1 + len(config.pos_att_type or []))) ** -0.5
    bias = by_distance(q, k, kr, qr, rows(config, q.shape[2])) * scale
    return joined(attention(q, k, v, mask, bias, scale))


def v1_maps(weights: Weights, config: Any, index: int, x: torch.Tensor) -> Maps:
    """Return queries, keys and values: of one map, the three of each head behind one another."""
    name = f"encoder.layer.{index}.attention.self"
    fused = linear(weights, f"{name}.in_proj", x)
    width = config.hidden_size // config.num_attention_heads
    starts = range(0, 3 * config.hidden_size, 3 * width)
    q, k, v = (
        torch.cat([fused[..., s + part * width : s + (part + 1) * width] for s in starts], -1)
        for part in range(3)
    )
    return q + weights[f"{name}.q_bias"], k, v + weights[f"{name}.v_bias"]


def v1_add(
    weights: dict[str, torch.Tensor], config: Any, index: int, role: str, change: torch.Tensor
) -> None:
    """Add a change [D, D] to what makes queries or values, head by head."""
    name, number = (
        f"encoder.layer.{index}.attention.self.in_proj.weight",
        config.num_attention_heads,
    )
    parts = list(weights[name].unflatten(0, (number, 3, -1)).unbind(1))
    place = ("query", "key", "value").index(role)
    parts[place] = parts[place] + change.unflatten(0, (number, -1))
    weights[name] = torch.stack(parts, 1).flatten(0, 2)


def v1(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of DeBERTa, [B, L, D]."""
    x = embedded(weights, config, batch)
    types = config.pos_att_type or []
    table = weights.get("encoder.rel_embeddings.weight", torch.empty(0, config.hidden_size))
    for index in range(config.num_hidden_layers):
        name = f"encoder.layer.{index}"
        inside = f"{name}.attention.self"
        kr = linear(weights, f"{inside}.pos_proj", table) if "c2p" in types else None
        qr = linear(weights, f"{inside}.pos_q_proj", table) if "p2c" in types else None

        def attend(x: torch.Tensor, index: int = index, kr: Any = kr, qr: Any = qr) -> torch.Tensor:
            found = v1_maps(weights, config, index, x)
            return _attended(config, found, batch.attention_mask, kr, qr)

        put = partial(end, index)
        x = layer(weights, BERT.within(name), x, attend, put, config.layer_norm_eps)
    return x


def v2_maps(weights: Weights, config: Any, index: int, x: torch.Tensor) -> Maps:
    """Return queries, keys and values."""
    del config
    return maps(weights, V2.within(f"encoder.layer.{index}"), x)


def v2(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of DeBERTa's versions 2 and 3, [B, L, D]."""
    first = x = embedded(weights, config, batch)
    eps, types, shares = config.layer_norm_eps, config.pos_att_type or [], _shares(config)
    table = weights.get("encoder.rel_embeddings.weight", torch.empty(0, config.hidden_size))
    if getattr(config, "norm_rel_ebd", "none") == "layer_norm":
        table = layer_norm(weights, "encoder.LayerNorm", table, eps)
    for index in range(config.num_hidden_layers):
        name = f"encoder.layer.{index}"
        inside = f"{name}.attention.self"
        names = ("key_proj", "query_proj") if shares else ("pos_key_proj", "pos_query_proj")
        kr = linear(weights, f"{inside}.{names[0]}", table) if "c2p" in types else None
        qr = linear(weights, f"{inside}.{names[1]}", table) if "p2c" in types else None

        def attend(x: torch.Tensor, index: int = index, kr: Any = kr, qr: Any = qr) -> torch.Tensor:
            found = v2_maps(weights, config, index, x)
            return _attended(config, found, batch.attention_mask, kr, qr)

        x = layer(weights, V2.within(name), x, attend, partial(end, index), eps)
        if index == 0 and "encoder.conv.conv.weight" in weights:
            x = convolved(weights, first, x, batch.attention_mask, eps)
    return x


def _shares(config: Any) -> bool:
    """Whether distances go through the maps of queries and keys."""
    return getattr(config, "share_att_key", False)


def convolved(
    weights: Weights, first: torch.Tensor, x: torch.Tensor, mask: torch.Tensor, eps: float
) -> torch.Tensor:
    """Return the norm of x and gelu of the embeddings' convolution, 0 at padding, [B, L, D]."""
    kernel, bias = (weights[f"encoder.conv.conv.{name}"] for name in ("weight", "bias"))
    side, length = kernel.shape[-1] // 2, x.shape[1]
    wide = torch.nn.functional.pad(first, (0, 0, side, side))
    taps = (wide[:, tap : tap + length] @ kernel[..., tap].T for tap in range(2 * side + 1))
    total = x + gelu((sum(taps) + bias) * mask[..., None])
    return layer_norm(weights, "encoder.conv.LayerNorm", total, eps) * mask[..., None]
