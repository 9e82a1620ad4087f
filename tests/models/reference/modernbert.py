"""ModernBERT from its definition (Warner et al. 2024, arXiv 2412.13663, section 2.1).

B examples, L tokens, D width.
"""

from typing import Any

import torch

from stream.data.batch import TokenBatch
from tests.models.reference.forms import Change, Map
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
    rotate,
    same,
)

TABLE = "embeddings.tok_embeddings.weight"


def modernbert(weights: Weights, config: Any, batch: TokenBatch, end: End = same) -> torch.Tensor:
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
    layers = range(config.num_hidden_layers)
    names = [f"layers.{i}.{name}" for i in layers for name in ("attn_norm", "mlp_norm")]

    def norm(name: str) -> Map:
        return lambda x: layer_norm(weights, name, x, config.norm_eps)

    norms = [lambda x: x, *map(norm, [*names[1:], "final_norm"])]  # none before the first attention
    x = weights[TABLE][batch.input_ids] if x is None else x
    x = norm("embeddings.norm")(x)
    for index in layers:
        name, kind = f"layers.{index}", config.layer_types[index]
        read = norms[2 * index](x)
        base = config.rope_parameters[kind]["rope_theta"]
        q, k, v = queries_keys_values(weights, config, index, read)
        q, k, v = (heads(part, config.num_attention_heads) for part in (q, k, v))
        q, k = (rotate(part, places(batch.attention_mask), base) for part in (q, k))
        far = config.local_attention // 2 if kind == "sliding_attention" else None
        f = linear(weights, f"{name}.attn.Wo", joined(attention(q, k, v, near(batch, far))))
        x = x + change(index, "attention", f, x, read, norms[2 * index + 1])
        read = norms[2 * index + 1](x)
        inner, gate = linear(weights, f"{name}.mlp.Wi", read).chunk(2, dim=-1)
        f = linear(weights, f"{name}.mlp.Wo", gelu(inner) * gate)
        x = x + change(index, "feedforward", f, x, read, norms[2 * index + 2])
    return norms[-1](x)


def queries_keys_values(
    weights: Weights, config: Any, index: int, read: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return what a layer makes of what its attention reads, [B, L, D] each."""
    del config
    return linear(weights, f"layers.{index}.attn.Wqkv", read).chunk(3, dim=-1)


def near(batch: TokenBatch, far: int | None) -> torch.Tensor:
    """Return which tokens each reads: those at most ``far`` away, or all, [B, 1, L, L]."""
    mask = batch.attention_mask
    length = mask.shape[1]
    allowed = mask[:, None, None, :].expand(-1, 1, length, -1).clone()
    for i in range(length):
        for j in range(length):
            if far is not None and abs(i - j) > far:
                allowed[:, :, i, j] = 0
    return allowed
