"""Modules that a method inserts into the encoder, and their first values."""

import copy
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


def drawn_values(
    encoder: Encoder, seed: int, *names: str, of_task: str | None = None
) -> dict[str, torch.Tensor]:
    """Return fresh values for inserted modules, by parameter name; nothing is changed.

    Args:
        encoder: the encoder.
        seed: the run's.
        names: with the modules' purpose, the name of the random stream.
        of_task: the modules of this task in `ByTask` containers; None is those outside of any.
    """
    tasks, values = task_of_parameters(encoder), {}
    generators: dict[str, torch.Generator] = {}
    for path, module in encoder.named_modules():
        if not isinstance(module, Fresh):
            continue
        inside = [tasks.get(f"{path}.{name}") for name, _ in module.named_parameters()]
        if set(inside) != {of_task}:
            continue
        purpose = module.purpose
        if purpose not in generators:
            generators[purpose] = torch_generator(seed, purpose, *names)
        fresh = copy.deepcopy(module).cpu()  # generators are, so that any device draws the same
        fresh.initialize(generators[purpose])
        values |= {f"{path}.{name}": p.detach() for name, p in fresh.named_parameters()}
    return values


def draw_into(encoder: Encoder, seed: int, *names: str, of_task: str | None = None) -> None:
    """Give inserted modules the values that `drawn_values` returns."""
    parameters = dict(encoder.named_parameters())
    drawn = drawn_values(encoder, seed, *names, of_task=of_task)
    copy_named(drawn, {name: parameters[name] for name in drawn})
