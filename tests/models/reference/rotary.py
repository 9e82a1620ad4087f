"""Encoders with rotary positions: Nomic BERT, GTE and Jina v3 (norms after), EuroBERT (before).

B examples, L tokens, D width.
"""

from functools import partial
from typing import Any

import torch

from stream.data.batch import TokenBatch
from tests.models.reference.functions import (
    End,
    Weights,
    attention,
    gated,
    gelu,
    heads,
    joined,
    layer_norm,
    linear,
    places,
    rms_norm,
    rotate,
    same,
    silu,
)


def rotary_maps(
    weights: Weights, config: Any, index: int, x: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the queries, keys and values of a layer, not yet turned."""
    del config
    return tuple(linear(weights, f"layers.{index}.self_attn.{which}_proj", x) for which in "qkv")


def attended(
    weights: Weights, config: Any, name: str, x: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Return what a layer's attention makes of x [B, L, D]."""
    width = config.hidden_size // config.num_attention_heads
    q, k, v = (linear(weights, f"{name}.self_attn.{which}_proj", x) for which in "qkv")
    q, k, v = (heads(part, part.shape[-1] // width) for part in (q, k, v))
    base = config.rope_parameters["rope_theta"]
    q, k = (rotate(part, places(mask), base) for part in (q, k))
    return linear(weights, f"{name}.self_attn.o_proj", joined(attention(q, k, v, mask)))


def gates(name: str) -> tuple[str, str, str]:
    """Return the names of a layer's gated feed-forward maps: gate, up, down."""
    return f"{name}.mlp.gate_proj", f"{name}.mlp.up_proj", f"{name}.mlp.down_proj"


def fed(weights: Weights, kind: str, name: str, x: torch.Tensor) -> torch.Tensor:
    """Return what a layer's feed-forward network makes of x [B, L, D]."""
    if kind == "jina_embeddings_v3":
        return linear(weights, f"{name}.mlp.fc2", gelu(linear(weights, f"{name}.mlp.fc1", x)))
    return gated(weights, gates(name), x, gelu if kind == "gte" else silu)


def norms_after(
    kind: str, weights: Weights, config: Any, batch: TokenBatch, end: End = same
) -> torch.Tensor:
    """Return the hidden states of Nomic BERT, GTE or Jina v3, [B, L, D]."""
    epsilon = config.layer_norm_eps
    x = weights["embeddings.word_embeddings.weight"][batch.input_ids]
    types = weights.get("embeddings.token_type_embeddings.weight")
    if types is not None:
        x = x + types[batch.token_type_ids if len(types) > 1 else batch.token_type_ids * 0]
    x = layer_norm(weights, "embeddings.LayerNorm", x, epsilon)
    for index in range(config.num_hidden_layers):
        name = f"layers.{index}"
        f = attended(weights, config, name, x, batch.attention_mask)
        x = x + end(index, "attention", f)
        x = layer_norm(weights, f"{name}.post_attention_layernorm", x, epsilon)
        x = x + end(index, "feedforward", fed(weights, kind, name, x))
        x = layer_norm(weights, f"{name}.post_mlp_layernorm", x, epsilon)
    return x


nomic_bert = partial(norms_after, "nomic_bert")
gte = partial(norms_after, "gte")
jina_embeddings_v3 = partial(norms_after, "jina_embeddings_v3")


def eurobert(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of EuroBERT, [B, L, D]."""
    epsilon = config.rms_norm_eps
    x = weights["embed_tokens.weight"][batch.input_ids]
    for index in range(config.num_hidden_layers):
        name = f"layers.{index}"
        read = rms_norm(weights, f"{name}.input_layernorm", x, epsilon)
        f = attended(weights, config, name, read, batch.attention_mask)
        x = x + end(index, "attention", f)
        read = rms_norm(weights, f"{name}.post_attention_layernorm", x, epsilon)
        x = x + end(index, "feedforward", gated(weights, gates(name), read, silu))
    return rms_norm(weights, "norm", x, epsilon)
