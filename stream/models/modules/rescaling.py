"""Learned factors of activations (IA3, Liu et al. 2022, arXiv 2205.05638, section 3.3)."""

from typing import Any

import torch
from torch import nn

from stream.errors import require
from stream.models.encoder import Encoder
from stream.models.modules.attention_maps import self_attentions
from stream.models.modules.fresh import Fresh


class Rescaling(Fresh):
    """A factor for each of a module's outputs, 1 at first: as many parameters."""

    def __init__(self, width: int):
        super().__init__()
        self.factors = nn.Parameter(torch.empty(width))

    def initialize(self, generator: torch.Generator) -> None:
        """Leave everything as it is; nothing is drawn."""
        del generator
        nn.init.ones_(self.factors)

    def rescale(self, module: nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> Any:
        """Multiply an output [B, L, width] by the factors; a forward hook."""
        del module, inputs
        return output * self.factors


def insert_rescalings(encoder: Encoder, learner: str) -> None:
    """Rescale the keys, the values and the feed-forward's inner activations of every layer.

    Args:
        encoder: the encoder.
        learner: who asks, for the message.

    Raises:
        UserError: an encoder whose attention or feed-forward is not found.
    """
    places: list[tuple[nn.Module, int]] = []
    for found in self_attentions(encoder, learner):
        places += [(found.key, found.key.out_features), (found.value, found.value.out_features)]
    for place in encoder.sublayers():
        if place.position == "feedforward":
            inner: Any = place.reader
            require(
                isinstance(getattr(inner, "dense", None), nn.Linear),
                f"learner={learner}: {type(inner).__name__} has no map called dense",
            )
            places.append((inner, inner.dense.out_features))  # its output is behind the activation
    for module, width in places:
        rescaling = Rescaling(width)
        module.add_module("ia3", rescaling)
        module.register_forward_hook(rescaling.rescale)
