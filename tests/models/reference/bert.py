"""BERT (Devlin et al. 2018), and RoBERTa, ELECTRA, MPNet and DistilBERT, which differ by little."""

import math
from functools import partial
from typing import Any

import torch

from stream.data.batch import TokenBatch
from tests.models.reference.functions import End, Weights, layer_norm, linear, places, same
from tests.models.reference.post_norm import BERT, Maps, Names, attended, layer, maps

MPNET = Names(
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    output="attention.attn.o",
    attention_norm="attention.LayerNorm",
)
DISTILBERT = Names(
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    output="attention.out_lin",
    attention_norm="sa_layer_norm",
    inner="ffn.lin1",
    outer="ffn.lin2",
    feedforward_norm="output_layer_norm",
)


def embedded(
    weights: Weights, batch: TokenBatch, eps: float, first: int = 0, *, types: bool = True
) -> torch.Tensor:
    """Return the norm of the sum of word, position and type embeddings, [B, L, E]."""
    word, position = (weights[f"embeddings.{t}_embeddings.weight"] for t in ("word", "position"))
    total = word[batch.input_ids] + position[places(batch.attention_mask, first)]
    if types:
        table = weights["embeddings.token_type_embeddings.weight"]
        single = len(table) == 1  # then all tokens have the same
        total = total + table[batch.token_type_ids * 0 if single else batch.token_type_ids]
    return layer_norm(weights, "embeddings.LayerNorm", total, eps)


def bert(
    weights: Weights, config: Any, batch: TokenBatch, end: End = same, first: int = 0
) -> torch.Tensor:
    """Return the hidden states of BERT, [B, L, D]; of ELECTRA, whose embeddings are projected."""
    x = embedded(weights, batch, config.layer_norm_eps, first)
    if "embeddings_project.weight" in weights:
        x = linear(weights, "embeddings_project", x)
    for index in range(config.num_hidden_layers):
        names = BERT.within(f"encoder.layer.{index}")

        def attend(x: torch.Tensor, names: Names = names) -> torch.Tensor:
            found = maps(weights, names, x)
            return attended(found, config.num_attention_heads, batch.attention_mask)

        x = layer(weights, names, x, attend, partial(end, index), config.layer_norm_eps)
    return x


def roberta(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of RoBERTa, [B, L, D]: positions begin behind that of padding."""
    return bert(weights, config, batch, end, config.pad_token_id + 1)


def bucket(distance: int) -> int:
    """Return MPNet's bucket of a key so far before its query, as T5's for 32 buckets up to 128.

    Keys behind the query have buckets 16 to 31. Of 16, the first 8 are of one distance each, the
    others divide the rest in equal steps of its logarithm.
    """
    behind, far = (16 if distance < 0 else 0), abs(distance)
    if far < 8:
        return behind + far
    return behind + min(15, 8 + math.floor(8 * math.log(far / 8) / math.log(128 / 8)))


def mpnet(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of MPNet (Song et al. 2020), [B, L, D]: a bias by distance."""
    x = embedded(weights, batch, config.layer_norm_eps, 2, types=False)
    tokens = range(x.shape[1])
    buckets = torch.tensor([[bucket(i - j) for j in tokens] for i in tokens])
    bias = weights["encoder.relative_attention_bias.weight"][buckets].permute(2, 0, 1)[None]
    for index in range(config.num_hidden_layers):
        names = MPNET.within(f"encoder.layer.{index}")

        def attend(x: torch.Tensor, names: Names = names) -> torch.Tensor:
            found = maps(weights, names, x)
            return attended(found, config.num_attention_heads, batch.attention_mask, bias)

        x = layer(weights, names, x, attend, partial(end, index), config.layer_norm_eps)
    return x


def distilbert(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of DistilBERT (Sanh et al. 2019), [B, L, D]: no types; eps 1e-12."""
    x = embedded(weights, batch, 1e-12, types=False)
    for index in range(config.n_layers):
        names = DISTILBERT.within(f"transformer.layer.{index}")

        def attend(x: torch.Tensor, names: Names = names) -> torch.Tensor:
            return attended(maps(weights, names, x), config.n_heads, batch.attention_mask)

        x = layer(weights, names, x, attend, partial(end, index), 1e-12)
    return x


def bert_maps(weights: Weights, config: Any, index: int, x: torch.Tensor) -> Maps:
    """Return the queries, keys and values of a layer of BERT's."""
    del config
    return maps(weights, BERT.within(f"encoder.layer.{index}"), x)


def mpnet_maps(weights: Weights, config: Any, index: int, x: torch.Tensor) -> Maps:
    """Return the queries, keys and values of a layer of MPNet's."""
    del config
    return maps(weights, MPNET.within(f"encoder.layer.{index}"), x)


def distilbert_maps(weights: Weights, config: Any, index: int, x: torch.Tensor) -> Maps:
    """Return the queries, keys and values of a layer of DistilBERT's."""
    del config
    return maps(weights, DISTILBERT.within(f"transformer.layer.{index}"), x)
