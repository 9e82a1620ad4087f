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

from stream.data.batch import TokenBatch
from tests.models.reference.forms import Change, Map
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


class Decoder:
    """A forward pass; a family says what it has in place of what stands here."""

    def __call__(
        self, weights: Weights, config: Any, batch: TokenBatch, end: End = same
    ) -> torch.Tensor:
        """Return the states, [B, L, D]."""
        return self.changed(
            weights, config, batch, lambda layer, place, f, *_: end(layer, place, f)
        )

    def changed(
        self,
        weights: Weights,
        config: Any,
        batch: TokenBatch,
        change: Change,
        x: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the states with what ``change`` makes of every sub-layer, [B, L, D].

        Args:
            weights: by name.
            config: the configuration.
            batch: the texts.
            change: see `Change`.
            x: embeddings in place of those of the tokens, [B, L, D].
            positions: in place of the tokens' own, [B, L].
        """
        mask = batch.attention_mask
        positions = places(mask) if positions is None else positions
        x = self.embedded(weights, config, batch) if x is None else x
        x = x + self.placed(weights, positions)
        norms = self.norms(weights, config)
        for layer in range(config.num_hidden_layers):
            read = norms[2 * layer](x)
            f = self.attended(weights, config, layer, read, mask, positions)
            x = x + change(layer, "attention", f, x, read, norms[2 * layer + 1])
            read = norms[2 * layer + 1](x)
            f = self.fed(weights, config, layer, read)
            x = x + change(layer, "feedforward", f, x, read, norms[2 * layer + 2])
        return norms[-1](x)

    def embedded(self, weights: Weights, config: Any, batch: TokenBatch) -> torch.Tensor:
        """Return what is made of the tokens, [B, L, D]."""
        raise NotImplementedError

    def placed(self, weights: Weights, positions: torch.Tensor) -> torch.Tensor | float:
        """Return what is added for positions."""
        del weights, positions
        return 0.0

    def norms(self, weights: Weights, config: Any) -> list[Map]:
        """Return the norms before all sub-layers, and the last one."""
        raise NotImplementedError

    def queries_keys_values(
        self, weights: Weights, config: Any, layer: int, read: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return what a layer's maps make of what its attention reads."""
        raise NotImplementedError

    def attended(
        self,
        weights: Weights,
        config: Any,
        layer: int,
        read: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
    ) -> torch.Tensor:
        """Return F(x) of a layer's attention, [B, L, D]."""
        raise NotImplementedError

    def fed(self, weights: Weights, config: Any, layer: int, read: torch.Tensor) -> torch.Tensor:
        """Return F(x) of a layer's feed-forward network, [B, L, D]."""
        raise NotImplementedError


def columns(weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    """Return x W + b with W stored as [D_in, D_out]."""
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


class GPT2(Decoder):
    """GPT-2."""

    def embedded(self, weights: Weights, config: Any, batch: TokenBatch) -> torch.Tensor:
        del config
        return weights["wte.weight"][batch.input_ids]

    def placed(self, weights: Weights, positions: torch.Tensor) -> torch.Tensor:
        return weights["wpe.weight"][positions]

    def norms(self, weights: Weights, config: Any) -> list[Map]:
        names = [f"h.{i}.{name}" for i in range(config.n_layer) for name in ("ln_1", "ln_2")]
        eps = config.layer_norm_epsilon
        return [lambda x, name=name: layer_norm(weights, name, x, eps) for name in [*names, "ln_f"]]

    def queries_keys_values(
        self, weights: Weights, config: Any, layer: int, read: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        made, width = columns(weights, f"h.{layer}.attn.c_attn", read), config.n_embd
        return made[..., :width], made[..., width : 2 * width], made[..., 2 * width :]

    def attended(
        self,
        weights: Weights,
        config: Any,
        layer: int,
        read: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
    ) -> torch.Tensor:
        del positions
        made = self.queries_keys_values(weights, config, layer, read)
        q, k, v = (heads(part, config.n_head) for part in made)
        scale = 1 / math.sqrt(config.n_embd // config.n_head)
        context = joined(capped_attention(q, k, v, causal(mask), scale, None))
        return columns(weights, f"h.{layer}.attn.c_proj", context)

    def fed(self, weights: Weights, config: Any, layer: int, read: torch.Tensor) -> torch.Tensor:
        del config
        inner = gelu_tanh(columns(weights, f"h.{layer}.mlp.c_fc", read))
        return columns(weights, f"h.{layer}.mlp.c_proj", inner)


@dataclass(frozen=True)
class LlamaLike(Decoder):
    """What differs among Llama and its relatives.

    Attributes:
        activation: of the gate.
        offset: added to the weights of norms.
        factor: of embeddings.
        inner_norms: of every query and key.
        norms_behind: what a sub-layer adds is the output of a norm.
        scale: of scores; None is 1 / sqrt(width of a head).
        cap: of scores.
        thetas: base of the angles in each layer; None turns nothing.
        windows: of each layer.
    """

    activation: Callable[[torch.Tensor], torch.Tensor] = silu
    offset: float = 0.0
    factor: float = 1.0
    inner_norms: bool = False
    norms_behind: bool = False
    scale: float | None = None
    cap: float | None = None
    thetas: tuple[float | None, ...] = (10_000.0, 10_000.0)
    windows: tuple[int | None, ...] = (None, None)

    def embedded(self, weights: Weights, config: Any, batch: TokenBatch) -> torch.Tensor:
        del config
        return weights["embed_tokens.weight"][batch.input_ids] * self.factor

    def norm(self, weights: Weights, config: Any, name: str) -> Map:
        """Return a norm by its name."""
        return lambda x: rms_norm(weights, name, x, config.rms_norm_eps, self.offset)

    def norms(self, weights: Weights, config: Any) -> list[Map]:
        second = "pre_feedforward" if self.norms_behind else "post_attention"
        both, layers = ("input", second), range(config.num_hidden_layers)
        names = [f"layers.{i}.{name}_layernorm" for i in layers for name in both]
        return [self.norm(weights, config, name) for name in [*names, "norm"]]

    def behind(
        self, weights: Weights, config: Any, layer: int, place: str, f: torch.Tensor
    ) -> torch.Tensor:
        """Return what a sub-layer gives behind its last map."""
        if not self.norms_behind:
            return f
        return self.norm(weights, config, f"layers.{layer}.post_{place}_layernorm")(f)

    def queries_keys_values(
        self, weights: Weights, config: Any, layer: int, read: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        del config
        return tuple(linear(weights, f"layers.{layer}.self_attn.{n}_proj", read) for n in "qkv")

    def attended(
        self,
        weights: Weights,
        config: Any,
        layer: int,
        read: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
    ) -> torch.Tensor:
        name, theta, groups = (
            f"layers.{layer}.self_attn",
            self.thetas[layer],
            config.num_key_value_heads,
        )
        q, k, v = self.queries_keys_values(weights, config, layer, read)
        q, k, v = heads(q, config.num_attention_heads), heads(k, groups), heads(v, groups)
        if self.inner_norms:
            q = self.norm(weights, config, f"{name}.q_norm")(q)
            k = self.norm(weights, config, f"{name}.k_norm")(k)
        if theta is not None:
            q, k = rotate(q, positions, theta), rotate(k, positions, theta)
        scale = 1 / math.sqrt(q.shape[-1]) if self.scale is None else self.scale
        context = capped_attention(q, k, v, causal(mask, self.windows[layer]), scale, self.cap)
        f = linear(weights, f"{name}.o_proj", joined(context))
        return self.behind(weights, config, layer, "attention", f)

    def fed(self, weights: Weights, config: Any, layer: int, read: torch.Tensor) -> torch.Tensor:
        mlp = f"layers.{layer}.mlp."
        names = (f"{mlp}gate_proj", f"{mlp}up_proj", f"{mlp}down_proj")
        f = gated(weights, names, read, self.activation)
        return self.behind(weights, config, layer, "feedforward", f)
