"""The encoder of T5 from its definition (Raffel et al. 2020, arXiv 1910.10683, section 2.1).

Also of T5 1.1 and mT5, whose feed-forward network is gated (Shazeer 2020, arXiv 2002.05202), and
of umT5, which has a bias in every layer (Chung et al. 2023, arXiv 2304.09151).
B examples, L tokens, D width, H heads.
"""

import math
from typing import Any

import torch

from stream.data.batch import TokenBatch
from tests.models.reference.forms import Change, Map
from tests.models.reference.functions import (
    End,
    Weights,
    attention,
    gated,
    gelu_tanh,
    heads,
    joined,
    linear,
    rms_norm,
    same,
)

TABLE = "shared.weight"


def t5(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states, [B, L, D]."""
    return changed(weights, config, batch, lambda index, place, f, *_: end(index, place, f))


def changed(
    weights: Weights,
    config: Any,
    batch: TokenBatch,
    change: Change,
    x: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the hidden states with what ``change`` makes of every sub-layer, [B, L, D].

    Args:
        weights: by name.
        config: the configuration.
        batch: the texts.
        change: see `Change`.
        x: embeddings in place of the tokens', [B, L, D].
    """
    layers = range(config.num_layers)
    names = [f"encoder.block.{i}.layer.{part}.layer_norm" for i in layers for part in (0, 1)]

    def norm(name: str) -> Map:
        return lambda x: rms_norm(weights, name, x, config.layer_norm_epsilon)

    norms = [norm(name) for name in [*names, "encoder.final_layer_norm"]]
    x = weights[TABLE][batch.input_ids] if x is None else x
    bias = torch.zeros(())
    for index in layers:
        name = f"encoder.block.{index}.layer"
        table = weights.get(f"{name}.0.SelfAttention.relative_attention_bias.weight")
        if table is not None:  # else that of the layer below
            bias = relative_bias(table, x.shape[1], config.relative_attention_max_distance)
        read = norms[2 * index](x)
        q, k, v = (
            heads(part, config.num_heads)
            for part in queries_keys_values(weights, config, index, read)
        )
        mixed = joined(attention(q, k, v, batch.attention_mask, bias, scale=1.0))
        f = linear(weights, f"{name}.0.SelfAttention.o", mixed)
        x = x + change(index, "attention", f, x, read, norms[2 * index + 1])
        read = norms[2 * index + 1](x)
        f = fed(weights, f"{name}.1.DenseReluDense", read)
        x = x + change(index, "feedforward", f, x, read, norms[2 * index + 2])
    return norms[-1](x)


def queries_keys_values(
    weights: Weights, config: Any, index: int, read: torch.Tensor
) -> list[torch.Tensor]:
    """Return what a layer makes of what its attention reads, [B, L, H d] each."""
    del config
    name = f"encoder.block.{index}.layer.0.SelfAttention"
    return [linear(weights, f"{name}.{which}", read) for which in "qkv"]


def fed(weights: Weights, name: str, read: torch.Tensor) -> torch.Tensor:
    """Return what the feed-forward network makes of [B, L, D]: with ReLU, or gated."""
    if f"{name}.wi.weight" in weights:
        return linear(weights, f"{name}.wo", linear(weights, f"{name}.wi", read).clamp(min=0))
    return gated(weights, (f"{name}.wi_0", f"{name}.wi_1", f"{name}.wo"), read, gelu_tanh)


def relative_bias(table: torch.Tensor, length: int, farthest: int) -> torch.Tensor:
    """Return what is added to the scores, [H, L, L], from a table [buckets, H]."""
    buckets = [
        [bucket(key - query, len(table), farthest) for key in range(length)]
        for query in range(length)
    ]
    return table[torch.tensor(buckets)].permute(2, 0, 1)


def bucket(offset: int, buckets: int, farthest: int) -> int:
    """Return the bucket of an offset: half of them for tokens behind, half for those before.

    Of each half, half count single steps, and the others grow as a logarithm up to ``farthest``.
    """
    half = buckets // 2
    exact, distance = half // 2, abs(offset)
    if distance >= exact:
        grown = math.log(distance / exact) / math.log(farthest / exact) * (half - exact)
        distance = min(half - 1, exact + int(grown))
    return distance + half * (offset > 0)
