"""ALBERT, which shares layers (Lan et al. 2020, arXiv 1909.11942, section 3.1).

B examples, L tokens, D width.
"""

from typing import Any

import torch

from stream.data.batch import TokenBatch
from tests.models.reference.bert import embedded
from tests.models.reference.forms import Change, Map
from tests.models.reference.functions import End, Weights, gelu_tanh, layer_norm, linear, same
from tests.models.reference.post_norm import Maps, Names, attended, maps

LAYER = "encoder.albert_layer_groups.{}.albert_layers.0"
MAPS = Names(*(f"attention.{name}" for name in ("query", "key", "value", "dense")))


def albert_maps(weights: Weights, config: Any, index: int, x: torch.Tensor) -> Maps:
    """Return the queries, keys and values of a layer."""
    del config
    return maps(weights, MAPS.within(LAYER.format(index)), x)


def albert(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
    """Return the hidden states, [B, L, D]; ``end`` gets the index of the use."""
    return changed_albert(
        weights, config, batch, lambda use, place, f, x, read, norm: end(use, place, f)
    )


def changed_albert(
    weights: Weights, config: Any, batch: TokenBatch, change: Change
) -> torch.Tensor:
    """Return the hidden states with what ``change`` makes of every sub-layer, [B, L, D]."""
    x = embedded(weights, batch, config.layer_norm_eps)
    x = linear(weights, "encoder.embedding_hidden_mapping_in", x)
    run = config.num_hidden_layers // config.num_hidden_groups

    def norm(name: str) -> Map:
        return lambda total: layer_norm(weights, name, total, config.layer_norm_eps)

    for use in range(config.num_hidden_layers):
        name = LAYER.format(use // run)
        found = maps(weights, MAPS.within(name), x)
        mixed = attended(found, config.num_attention_heads, batch.attention_mask)
        f, own = (
            linear(weights, f"{name}.attention.dense", mixed),
            norm(f"{name}.attention.LayerNorm"),
        )
        x = own(x + change(use, "attention", f, x, x, own))
        inner = gelu_tanh(linear(weights, f"{name}.ffn", x))
        f, own = linear(weights, f"{name}.ffn_output", inner), norm(f"{name}.full_layer_layer_norm")
        x = own(x + change(use, "feedforward", f, x, x, own))
    return x
