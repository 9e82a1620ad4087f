"""BERT (Devlin et al. 2018), ELECTRA and RoBERTa: post-norm layers over summed embeddings."""

from typing import Any

import torch

from stream.data.batches import TokenBatch
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


def embedded(weights: Weights, config: Any, batch: TokenBatch, first: int = 0) -> torch.Tensor:
    """Return the norm of the sum of word, position and type embeddings, [B, L, E]."""
    tables = [weights[f"embeddings.{t}_embeddings.weight"] for t in ("word", "position")]
    total = tables[0][batch.input_ids] + tables[1][places(batch.attention_mask, first)]
    types = weights["embeddings.token_type_embeddings.weight"]
    single = len(types) == 1  # then all tokens have the same
    total = total + types[batch.token_type_ids * 0 if single else batch.token_type_ids]
    return layer_norm(weights, "embeddings.LayerNorm", total, config.layer_norm_eps)


def layer(
    weights: Weights,
    name: str,
    x: torch.Tensor,
    config: Any,
    mask: torch.Tensor,
    index: int,
    end: End,
) -> torch.Tensor:
    """Return a layer's output, [B, L, D]."""
    q, k, v = (
        heads(linear(weights, f"{name}.attention.self.{which}", x), config.num_attention_heads)
        for which in ("query", "key", "value")
    )
    f = linear(weights, f"{name}.attention.output.dense", joined(attention(q, k, v, mask)))
    x = layer_norm(
        weights,
        f"{name}.attention.output.LayerNorm",
        x + end(index, "attention", f),
        config.layer_norm_eps,
    )
    inner = gelu(linear(weights, f"{name}.intermediate.dense", x))
    f = linear(weights, f"{name}.output.dense", inner)
    total = x + end(index, "feedforward", f)
    return layer_norm(weights, f"{name}.output.LayerNorm", total, config.layer_norm_eps)


def bert(
    weights: Weights, config: Any, batch: TokenBatch, end: End = same, first: int = 0
) -> torch.Tensor:
    """Return the hidden states of BERT, [B, L, D]; of ELECTRA, whose embeddings are projected."""
    x = embedded(weights, config, batch, first)
    if "embeddings_project.weight" in weights:
        x = linear(weights, "embeddings_project", x)
    for index in range(config.num_hidden_layers):
        name = f"encoder.layer.{index}"
        x = layer(weights, name, x, config, batch.attention_mask, index, end)
    return x


def roberta(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of RoBERTa, [B, L, D]: positions begin behind that of padding."""
    return bert(weights, config, batch, end, config.pad_token_id + 1)
