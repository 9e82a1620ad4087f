"""The encoder of T5 by hand (Raffel et al. 2020, arXiv 1910.10683, section 2.1), a text at a time.

Also of T5 1.1 and mT5 (gated, Shazeer 2020, arXiv 2002.05202) and of umT5 (a bias in every layer).
L tokens, D width, H heads.
"""

import math
from collections.abc import Callable, Mapping

import torch

Weights = Mapping[str, torch.Tensor]
Change = Callable[[int, str, torch.Tensor], torch.Tensor]
BIAS = "layer.0.SelfAttention.relative_attention_bias.weight"


def states(
    weights: Weights,
    embedded: torch.Tensor,
    *,
    layers: int,
    heads: int,
    farthest: int,
    change: Change = lambda layer, position, f: f,
) -> torch.Tensor:
    """Return the states of a text's tokens, [L, D].

    Args:
        weights: by name in the body.
        embedded: the embeddings of the tokens, [L, D].
        layers: how many there are.
        heads: H.
        farthest: the distance from which all are alike.
        change: what stands in place of F(x) in x + F(x), of a layer and a sub-layer.
    """
    x, bias = embedded, torch.zeros(())
    for layer in range(layers):
        own = {n.removeprefix(f"encoder.block.{layer}."): w for n, w in weights.items()}
        if BIAS in own:  # else that of the layer below
            bias = relative_bias(own[BIAS], len(x), farthest)
        read = rms_norm(x, own["layer.0.layer_norm.weight"])
        query, key, value = (
            torch.stack((read @ own[f"layer.0.SelfAttention.{m}.weight"].T).chunk(heads, dim=-1))
            for m in "qkv"
        )
        shares = (query @ key.transpose(1, 2) + bias).softmax(-1)  # scores are not scaled
        context = torch.cat([*(shares @ value)], dim=-1)
        x = x + change(layer, "attention", context @ own["layer.0.SelfAttention.o.weight"].T)
        read = rms_norm(x, own["layer.1.layer_norm.weight"])
        x = x + change(layer, "feedforward", feedforward(own, read))
    return rms_norm(x, weights["encoder.final_layer_norm.weight"])


def rms_norm(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return rows whose mean square is 1, scaled."""
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * scale


def feedforward(own: Weights, read: torch.Tensor) -> torch.Tensor:
    """Return what the feed-forward network makes of [L, D]: with ReLU, or gated."""
    name = "layer.1.DenseReluDense"
    if f"{name}.wi.weight" in own:
        inner = (read @ own[f"{name}.wi.weight"].T).clamp(min=0)
    else:
        inner = gelu(read @ own[f"{name}.wi_0.weight"].T) * (read @ own[f"{name}.wi_1.weight"].T)
    return inner @ own[f"{name}.wo.weight"].T


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return GELU as the authors of T5 approximate it (Hendrycks and Gimpel 2016, section 2)."""
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


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
