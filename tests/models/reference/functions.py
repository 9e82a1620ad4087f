"""What forward passes are made of, from the definitions and in any float type.

B examples, H heads, L tokens, D width, d width of a head. A weight is taken by its name.
"""

import math
from collections.abc import Callable, Mapping

import torch

Weights = Mapping[str, torch.Tensor]
End = Callable[[int, str, torch.Tensor], torch.Tensor]
"""(layer, sub-layer, F(x)) to what is added to x in place of F(x): the place of an adapter."""


def same(layer: int, position: str, f: torch.Tensor) -> torch.Tensor:
    """Add F(x) itself: an encoder without adapters."""
    del layer, position
    return f


def linear(weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    """Return W x + b; without b if there is none."""
    y = torch.einsum("...i,oi->...o", x, weights[f"{name}.weight"])
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def layer_norm(weights: Weights, name: str, x: torch.Tensor, eps: float) -> torch.Tensor:
    """Return (x - mean) / sqrt(variance + eps) by the scale, plus the shift if there is one."""
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    y = scaled * weights[f"{name}.weight"]
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def rms_norm(
    weights: Weights, name: str, x: torch.Tensor, eps: float, offset: float = 0.0
) -> torch.Tensor:
    """Return x / sqrt(mean(x^2) + eps) by the scale; Gemma's scale is the weight plus 1."""
    scaled = x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
    return scaled * (weights[f"{name}.weight"] + offset)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return x by the standard normal distribution function of x."""
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """Return GELU's approximation by tanh (Hendrycks and Gimpel 2016)."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: torch.Tensor) -> torch.Tensor:
    """Return x by its logistic function."""
    return x / (1 + torch.exp(-x))


def gated(
    weights: Weights,
    names: tuple[str, str, str],
    x: torch.Tensor,
    activation: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Return W_down (activation(W_gate x) * W_up x); names are those of gate, up and down."""
    gate, up, down = names
    return linear(weights, down, activation(linear(weights, gate, x)) * linear(weights, up, x))


def heads(x: torch.Tensor, number: int) -> torch.Tensor:
    """Divide [B, L, H d] among heads, [B, H, L, d]."""
    return x.unflatten(-1, (number, -1)).transpose(1, 2)


def joined(x: torch.Tensor) -> torch.Tensor:
    """Put heads [B, H, L, d] together, [B, L, H d]."""
    return x.transpose(1, 2).flatten(2)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor,
    bias: torch.Tensor | float = 0.0,
    scale: float | None = None,
) -> torch.Tensor:
    """Return softmax(scale q k^T + bias) v over the keys that the mask allows, [B, H, L, d].

    Args:
        q: queries, [B, H, L, d].
        k: keys, [B, H or fewer groups, L, d].
        v: values, as many as keys.
        mask: which keys are read: [B, L], or for each query [B, 1, L, L]; not 0 is read. A query
            that reads nothing gets 0.
        bias: added to the scores, broadcast to [B, H, L, L].
        scale: 1 / sqrt(d) if it is None.
    """
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, 1) for x in (k, v))
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * (scale or q.shape[-1] ** -0.5) + bias
    allowed = (mask if mask.dim() == 4 else mask[:, None, None, :]) != 0
    scores = scores.masked_fill(~allowed, -math.inf)
    highest = scores.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(q.dtype).min)
    shares = (scores - highest).exp()
    total = shares.sum(-1, keepdim=True)
    return torch.einsum("bhij,bhjd->bhid", shares / total.masked_fill(total == 0, 1), v)


def causal(mask: torch.Tensor, window: int | None = None) -> torch.Tensor:
    """Return which keys each query reads: real ones not behind it, [B, 1, L, L].

    Args:
        mask: of tokens, [B, L].
        window: a query reads itself and those fewer than so many tokens before it.
    """
    place = torch.arange(mask.shape[1])
    before = place[:, None] - place
    seen = (before >= 0) & (before < (window or mask.shape[1]))
    return seen[None, None] & (mask[:, None, None, :] != 0)


def rotate(x: torch.Tensor, positions: torch.Tensor, base: float) -> torch.Tensor:
    """Turn queries or keys by their positions (RoPE; Su et al. 2021, arXiv 2104.09864).

    Coordinates i and i + d/2 are a plane, turned by the angle position * base^(-2 i / d).

    Args:
        x: [B, H, L, d].
        positions: [B, L].
        base: of the angles.
    """
    half = x.shape[-1] // 2
    speeds = base ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = positions[:, None, :, None].to(x.dtype) * speeds
    a, b = x[..., :half], x[..., half:]
    return torch.cat(
        [a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1
    )


def places(mask: torch.Tensor, first: int = 0) -> torch.Tensor:
    """Return the positions of tokens, which padding does not count among, [B, L]."""
    counted = torch.zeros_like(mask)
    for example, row in enumerate(mask.tolist()):
        place = first
        for token, real in enumerate(row):
            counted[example, token] = place if real else max(first - 1, 0)
            place += real
    return counted
