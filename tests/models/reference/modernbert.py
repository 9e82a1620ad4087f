"""ModernBERT by hand (Warner et al. 2024, arXiv 2412.13663), one text at a time.

L tokens, D width, H heads.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch

Weights = Mapping[str, torch.Tensor]
Change = Callable[[int, str, torch.Tensor], torch.Tensor]


def states(
    weights: Weights,
    embedded: torch.Tensor,
    *,
    heads: int,
    windows: Sequence[int | None],
    thetas: Sequence[float],
    change: Change = lambda layer, position, f: f,
) -> torch.Tensor:
    """Return the states of a text's tokens, [L, D].

    Args:
        weights: by name in the body.
        embedded: the embeddings of the tokens, [L, D].
        heads: H.
        windows: of each layer, how far away a token may be that another reads; None is any.
        thetas: of each layer, the base of its rotations.
        change: what stands in place of F(x) in x + F(x), of a layer and a sub-layer.
    """
    x = layer_norm(embedded, weights["embeddings.norm.weight"])
    for layer, (window, theta) in enumerate(zip(windows, thetas, strict=True)):
        own = {n.removeprefix(f"layers.{layer}."): w for n, w in weights.items()}
        read = layer_norm(x, own["attn_norm.weight"]) if layer else x
        query, key, value = (read @ own["attn.Wqkv.weight"].T).chunk(3, dim=-1)
        context = attention(
            rotated(by_head(query, heads), theta),
            rotated(by_head(key, heads), theta),
            by_head(value, heads),
            window,
        )
        x = x + change(layer, "attention", context @ own["attn.Wo.weight"].T)
        read = layer_norm(x, own["mlp_norm.weight"])
        inner, gate = (read @ own["mlp.Wi.weight"].T).chunk(2, dim=-1)
        x = x + change(layer, "feedforward", (gelu(inner) * gate) @ own["mlp.Wo.weight"].T)
    return layer_norm(x, weights["final_norm.weight"])


def layer_norm(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return rows of mean 0 and variance 1, scaled; there is no shift."""
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * scale


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return x times the probability that a standard normal is below it."""
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def by_head(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Cut [L, D] into heads, [H, L, D / H]."""
    return torch.stack(x.chunk(heads, dim=-1))


def rotated(x: torch.Tensor, theta: float) -> torch.Tensor:
    """Turn pairs (i, i + d/2) of every token, [H, L, d], by its place times theta^(-2 i / d)."""
    half = x.shape[-1] // 2
    frequencies = torch.tensor([theta ** (-i / half) for i in range(half)], dtype=x.dtype)
    angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * frequencies
    first, second = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, window: int | None
) -> torch.Tensor:
    """Return what each token reads, [L, D], from [H, L, D / H]."""
    scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
    length = scores.shape[-1]
    for i in range(length):
        for j in range(length):
            if window is not None and abs(i - j) > window:
                scores[:, i, j] = -math.inf
    return torch.cat([*(scores.softmax(-1) @ value)], dim=-1)
