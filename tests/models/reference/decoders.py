"""Decoders from their definitions: GPT-2, Llama and what differs in its relatives.

GPT-2: Radford et al. 2019. Llama: Touvron et al. 2023 (arXiv 2302.13971), with grouped heads
(Ainslie et al. 2023, arXiv 2305.13245). Gemma: arXiv 2403.08295; Gemma 2: arXiv 2408.00118; Gemma
3: arXiv 2503.19786; Qwen 2 and 3: arXiv 2407.10671 and 2505.09388. Nothing of transformers is used
but the names of weights and the values of configurations.

B examples, L tokens, D width.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from stream.data.batches import TokenBatch
from tests.models.reference.functions import (
    End,
    Weights,
    causal,
    gated,
    gelu_tanh,
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


def capped_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
    cap: float | None,
) -> torch.Tensor:
    """Return softmax(cap tanh(scale q k^T / cap)) v over the keys that the mask allows.

    Query head h reads the keys of group h // (H / G). Padding, which reads nothing, gets 0.
    """
    group = q.shape[1] // k.shape[1]
    found = []
    for head in range(q.shape[1]):
        scores = q[:, head] @ k[:, head // group].transpose(1, 2) * scale  # [B, L, L]
        if cap is not None:
            scores = cap * torch.tanh(scores / cap)
        shares = scores.exp() * mask[:, 0]
        total = shares.sum(-1, keepdim=True)
        found.append(shares / total.masked_fill(total == 0, 1) @ v[:, head // group])
    return torch.stack(found, dim=1)


def embedded(weights: Weights, batch: TokenBatch, table: str) -> torch.Tensor:
    """Return the rows of the tokens, [B, L, D]."""
    return weights[table][batch.input_ids]


def gpt2(
    weights: Weights,
    config: Any,
    batch: TokenBatch,
    end: End = same,
    x: torch.Tensor | None = None,
    positions: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return GPT-2's states, [B, L, D].

    Args:
        weights: by name.
        config: the configuration.
        batch: the texts.
        end: what is added in place of F(x).
        x: embeddings in place of those of the tokens, [B, L, D].
        positions: in place of the tokens' own, [B, L].
    """
    mask, eps, width = batch.attention_mask, config.layer_norm_epsilon, config.n_embd
    x = embedded(weights, batch, "wte.weight") if x is None else x
    x = x + weights["wpe.weight"][places(mask) if positions is None else positions]

    def conv(name: str, x: torch.Tensor) -> torch.Tensor:
        return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    for layer in range(config.n_layer):
        name = f"h.{layer}."
        maps = conv(f"{name}attn.c_attn", layer_norm(weights, f"{name}ln_1", x, eps))
        q, k, v = (heads(maps[..., i * width : (i + 1) * width], config.n_head) for i in range(3))
        scale = 1 / math.sqrt(width // config.n_head)
        context = joined(capped_attention(q, k, v, causal(mask), scale, None))
        x = x + end(layer, "attention", conv(f"{name}attn.c_proj", context))
        inner = conv(f"{name}mlp.c_fc", layer_norm(weights, f"{name}ln_2", x, eps))
        x = x + end(layer, "feedforward", conv(f"{name}mlp.c_proj", gelu_tanh(inner)))
    return layer_norm(weights, "ln_f", x, eps)


@dataclass(frozen=True)
class LlamaLike:
    """What differs among Llama and its relatives.

    Attributes:
        activation: of the gate.
        offset: added to the weights of norms.
        scaled: embeddings are multiplied by the root of D.
        inner_norms: of every query and key.
        norms_behind: what a sub-layer adds is the output of a norm.
        scale: of scores; None is 1 / sqrt(width of a head).
        cap: of scores.
        thetas: base of the angles in each layer; None turns nothing.
        windows: of each layer.
    """

    activation: Callable[[torch.Tensor], torch.Tensor] = silu
    offset: float = 0.0
    scaled: bool = False
    inner_norms: bool = False
    norms_behind: bool = False
    scale: float | None = None
    cap: float | None = None
    thetas: tuple[float | None, ...] = (10_000.0, 10_000.0)
    windows: tuple[int | None, ...] = (None, None)

    def __call__(
        self,
        weights: Weights,
        config: Any,
        batch: TokenBatch,
        end: End = same,
        x: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the states, [B, L, D]; arguments as those of `gpt2`."""
        if x is None:
            x = self.embedded(weights, config, batch)
        positions = places(batch.attention_mask) if positions is None else positions

        def norm(name: str, x: torch.Tensor) -> torch.Tensor:
            return rms_norm(weights, name, x, config.rms_norm_eps, self.offset)

        before = "pre_feedforward" if self.norms_behind else "post_attention"
        for layer in range(config.num_hidden_layers):
            name = f"layers.{layer}."
            mlp = f"{name}mlp."
            maps = (f"{mlp}gate_proj", f"{mlp}up_proj", f"{mlp}down_proj")
            seen = norm(f"{name}input_layernorm", x)
            f = self._attended(weights, config, seen, batch.attention_mask, positions, layer)
            if self.norms_behind:
                f = norm(f"{name}post_attention_layernorm", f)
            x = x + end(layer, "attention", f)
            f = gated(weights, maps, norm(f"{name}{before}_layernorm", x), self.activation)
            if self.norms_behind:
                f = norm(f"{name}post_feedforward_layernorm", f)
            x = x + end(layer, "feedforward", f)
        return norm("norm", x)

    def embedded(self, weights: Weights, config: Any, batch: TokenBatch) -> torch.Tensor:
        """Return what the first layer reads, [B, L, D]."""
        rows = embedded(weights, batch, "embed_tokens.weight")
        return rows * math.sqrt(config.hidden_size) if self.scaled else rows

    def _attended(
        self,
        weights: Weights,
        config: Any,
        seen: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
        layer: int,
    ) -> torch.Tensor:
        """Return what a layer's attention makes of its input, [B, L, D]."""
        name, theta = f"layers.{layer}.self_attn.", self.thetas[layer]
        found = []
        for part in "qkv":
            count = config.num_attention_heads if part == "q" else config.num_key_value_heads
            mapped = heads(linear(weights, f"{name}{part}_proj", seen), count)
            if self.inner_norms and part != "v":
                norm = f"{name}{part}_norm"
                mapped = rms_norm(weights, norm, mapped, config.rms_norm_eps, self.offset)
            if theta is not None and part != "v":
                mapped = rotate(mapped, positions, theta)
            found.append(mapped)
        q, k, v = found
        scale = 1 / math.sqrt(q.shape[-1]) if self.scale is None else self.scale
        context = capped_attention(q, k, v, causal(mask, self.windows[layer]), scale, self.cap)
        return linear(weights, f"{name}o_proj", joined(context))
