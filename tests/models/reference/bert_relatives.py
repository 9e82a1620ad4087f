"""Relatives of BERT: RemBERT, and three whose norms come before the sub-layers.

B examples, L tokens, D width.
"""

from functools import partial
from typing import Any, NamedTuple

import torch

from stream.data.batch import TokenBatch
from tests.models.reference.bert import bert, embedded
from tests.models.reference.forms import Change, Map
from tests.models.reference.functions import End, Weights, gelu, layer_norm, linear, places, same
from tests.models.reference.post_norm import BERT, attended, maps


def ernie(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of ERNIE, [B, L, D]: BERT's, but that every token has task 0."""
    word, task = (f"embeddings.{table}_embeddings.weight" for table in ("word", "task_type"))
    added = weights[task][0] if task in weights else 0.0
    return bert({**weights, word: weights[word] + added}, config, batch, end)


def rembert(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states of RemBERT, [B, L, D]: ELECTRA's, but for the name of one map."""
    own = "encoder.embedding_hidden_mapping_in"
    same_map = {
        f"embeddings_project.{part}": weights[f"{own}.{part}"] for part in ("weight", "bias")
    }
    return bert({**weights, **same_map}, config, batch, end)


class Norms(NamedTuple):
    """What norms are called: the two of a layer, and the one behind the last layer."""

    attention: str
    feedforward: str
    last: str


NORMS = {
    "xlm-roberta-xl": Norms("attention.self_attn_layer_norm", "LayerNorm", "encoder.LayerNorm"),
    "roberta-prelayernorm": Norms("attention.LayerNorm", "intermediate.LayerNorm", "LayerNorm"),
    "megatron-bert": Norms("attention.ln", "ln", "encoder.ln"),
}


def summed(kind: str, weights: Weights, config: Any, batch: TokenBatch) -> torch.Tensor:
    """Return the sum of a token's embeddings, [B, L, D]; that of RoBERTa-PreLayerNorm normed."""
    if kind == "roberta-prelayernorm":
        return embedded(weights, batch, config.layer_norm_eps, config.pad_token_id + 1)
    first = 0 if kind == "megatron-bert" else config.pad_token_id + 1
    x = weights["embeddings.word_embeddings.weight"][batch.input_ids]
    x = x + weights["embeddings.position_embeddings.weight"][places(batch.attention_mask, first)]
    types = weights["embeddings.token_type_embeddings.weight"]
    return x + types[batch.token_type_ids if len(types) > 1 else batch.token_type_ids * 0]


def changed_before(
    kind: str, weights: Weights, config: Any, batch: TokenBatch, change: Change
) -> torch.Tensor:
    """Return the hidden states with what ``change`` makes of every sub-layer, [B, L, D]."""
    names, layers = NORMS[kind], range(config.num_hidden_layers)
    inside = [f"encoder.layer.{index}.{name}" for index in layers for name in names[:2]]

    def norm(name: str) -> Map:
        return lambda x: layer_norm(weights, name, x, config.layer_norm_eps)

    norms = [norm(name) for name in [*inside, names.last]]
    x = summed(kind, weights, config, batch)
    for index in layers:
        name = f"encoder.layer.{index}"
        read = norms[2 * index](x)
        found = maps(weights, BERT.within(name), read)
        mixed = attended(found, config.num_attention_heads, batch.attention_mask)
        f = linear(weights, f"{name}.attention.output.dense", mixed)
        x = x + change(index, "attention", f, x, read, norms[2 * index + 1])
        read = norms[2 * index + 1](x)
        inner = gelu(linear(weights, f"{name}.intermediate.dense", read))
        f = linear(weights, f"{name}.output.dense", inner)
        x = x + change(index, "feedforward", f, x, read, norms[2 * index + 2])
    return norms[-1](x)


def norms_before(
    kind: str, weights: Weights, config: Any, batch: TokenBatch, end: End = same
) -> torch.Tensor:
    """Return the hidden states, [B, L, D]."""
    return changed_before(
        kind, weights, config, batch, lambda index, place, f, x, read, norm: end(index, place, f)
    )


xlm_roberta_xl = partial(norms_before, "xlm-roberta-xl")
roberta_prelayernorm = partial(norms_before, "roberta-prelayernorm")
megatron_bert = partial(norms_before, "megatron-bert")
