"""Modules that a method inserts into the encoder, and their first values."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import nn

from stream.models.encoder import Encoder
from stream.models.modules.by_task import task_of_parameters
from stream.models.task_parameters import copy_named
from stream.seeding import torch_generator


class Fresh(nn.Module):
    """A module that a method puts into the encoder, and that can start anew for each task."""

    purpose: ClassVar[str] = "adapter"
    """Names the random stream of its first values."""

    def initialize(self, generator: torch.Generator) -> None:
        """Draw all parameters anew, on the CPU, so that a GPU run starts from the same ones."""
        raise NotImplementedError

    def drawn(self, generator: torch.Generator) -> dict[str, torch.Tensor]:
        """Return what `initialize` draws, by the parameter's name, on the CPU.

        The parameters have other memory meanwhile, and then their own again: a copy of the module
        would take longer than to draw a small one.
        """
        parameters = dict(self.named_parameters())
        own = {name: parameter.data for name, parameter in parameters.items()}
        try:
            for parameter in parameters.values():
                parameter.data = torch.zeros(parameter.shape, dtype=parameter.dtype)
            self.initialize(generator)
            return {name: parameter.data for name, parameter in parameters.items()}
        finally:
            for name, parameter in parameters.items():
                parameter.data = own[name]


FreshModules = dict[str | None, dict[str, Fresh]]
"""Modules by their path in the encoder, by the task that they belong to; None is no task."""


def fresh_modules(encoder: Encoder) -> FreshModules:
    """Return the modules inside the encoder that can start anew."""
    tasks, found = task_of_parameters(encoder), FreshModules({None: {}})
    for path, module in encoder.named_modules():
        if isinstance(module, Fresh):
            owners = {tasks.get(f"{path}.{name}") for name, _ in module.named_parameters()}
            if len(owners) == 1:
                found.setdefault(owners.pop(), {})[path] = module
    return found


def drawn_values(modules: Mapping[str, Fresh], seed: int, *names: str) -> dict[str, torch.Tensor]:
    """Return fresh values, by parameter name in the encoder; nothing is changed.

    Args:
        modules: by their path in the encoder.
        seed: the run's.
        names: with the modules' purpose, the name of the random stream.
    """
    values: dict[str, torch.Tensor] = {}
    generators: dict[str, torch.Generator] = {}
    for path, module in modules.items():
        purpose = module.purpose
        if purpose not in generators:
            generators[purpose] = torch_generator(seed, purpose, *names)
        drawn = module.drawn(generators[purpose])
        values |= {f"{path}.{name}": tensor for name, tensor in drawn.items()}
    return values


def draw_into(modules: Mapping[str, Fresh], seed: int, *names: str) -> None:
    """Give modules the values that `drawn_values` returns."""
    inside = {
        f"{path}.{name}": parameter
        for path, module in modules.items()
        for name, parameter in module.named_parameters()
    }
    copy_named(drawn_values(modules, seed, *names), inside)
