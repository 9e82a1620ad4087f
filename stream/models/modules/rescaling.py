"""Learned factors of activations (IA3, Liu et al. 2022, arXiv 2205.05638, section 3.3)."""

from typing import Any

import torch
from torch import nn

from stream.models.encoder import Encoder
from stream.models.modules.fresh import Fresh
from stream.models.places import LinearMap


class Rescaling(Fresh):
    """A factor for each output of a map, or for each input: as many parameters, 1 at first."""

    def __init__(self, changed: LinearMap, width: int):
        super().__init__()
        self.factors = nn.Parameter(torch.empty(width))
        self._part = changed.part

    def initialize(self, generator: torch.Generator) -> None:
        """Leave everything as it is; nothing is drawn."""
        del generator
        nn.init.ones_(self.factors)

    def rescale(self, module: nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> Any:
        """Multiply the map's outputs among those of its module by the factors; a forward hook."""
        del module, inputs
        return self._part.placed(output, self._part.of(output) * self.factors)

    def rescale_input(self, module: nn.Module, inputs: tuple[Any, ...]) -> Any:
        """Multiply what a map reads, [B, L, width], by the factors; a forward pre-hook."""
        del module
        return (inputs[0] * self.factors, *inputs[1:])


def insert_rescalings(encoder: Encoder) -> None:
    """Rescale the keys, the values and the feed-forward's inner activations of every layer."""
    for maps in encoder.attention_maps():
        for role, changed in (("key", maps.key), ("value", maps.value)):
            rescaling = Rescaling(changed, changed.out_features)
            changed.module.add_module(changed.named("ia3", role), rescaling)
            changed.module.register_forward_hook(rescaling.rescale)
    for changed in encoder.inner_maps():
        rescaling = Rescaling(changed, changed.in_features)
        changed.module.add_module("ia3", rescaling)
        changed.module.register_forward_pre_hook(rescaling.rescale_input)
