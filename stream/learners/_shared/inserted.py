"""What methods share that put small modules into a frozen encoder, a set a task."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.data.task import Task
from stream.learners.base import Learner
from stream.learners.keeping import copy_named
from stream.models.encoder import POSITIONS, Encoder
from stream.models.heads import TaskModel
from stream.models.modules.bottleneck import AdaptedDropout, Architecture, Bottleneck, Fresh
from stream.seeding import torch_generator


@dataclass
class Inserted(Learner):
    """Train and own what `insert` put into the encoder, and what `also_trains` names."""

    parameter_isolation: ClassVar[bool] = True

    def insert(self, encoder: Encoder) -> None:
        """Put the modules into the encoder: `Fresh` ones, drawn anew for each task."""
        raise NotImplementedError

    def also_trains(self, encoder: Encoder) -> set[str]:
        """Return the pretrained parameters that each task trains and owns as well, by name."""
        del encoder
        return set()

    def trains(self, name: str) -> bool:
        """Everything but what came with the encoder and stays frozen."""
        return name not in self._frozen

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Put the modules in."""
        encoder = model.encoder
        self._frozen = encoder.pretrained - self.also_trains(encoder)
        self.insert(encoder)
        encoder.to(model.device)
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)

    def first_values(self, task: Task) -> dict[str, torch.Tensor]:
        """Return the pretrained values, and modules drawn for the task's name."""
        drawn = drawn_values(self.model.encoder, torch_generator(self.seed, "adapter", task.name))
        return {**self.bank.first, **drawn}


def drawn_values(
    encoder: Encoder, generator: torch.Generator, part: str = ""
) -> dict[str, torch.Tensor]:
    """Return fresh values for every inserted module, by name; nothing is changed.

    ``part`` is what the names of modules must hold to be among them.
    """
    values = {}
    for module_name, module in encoder.named_modules():
        if isinstance(module, Fresh) and part in f".{module_name}.":
            fresh = copy.deepcopy(module)
            fresh.initialize(generator)
            values |= {f"{module_name}.{n}": p.detach() for n, p in fresh.named_parameters()}
    return values


def draw_into(encoder: Encoder, generator: torch.Generator, part: str = "") -> None:
    """Give inserted modules fresh values, those that `drawn_values` returns."""
    drawn, parameters = drawn_values(encoder, generator, part), dict(encoder.named_parameters())
    copy_named(drawn, {name: parameters[name] for name in drawn})


def insert_adapters(
    encoder: Encoder,
    architecture: Architecture,
    form: str = "sequential",
    positions: Sequence[str] = POSITIONS,
) -> list[tuple[int, AdaptedDropout]]:
    """Put an adapter behind the dropout of every sub-layer at ``positions``.

    Returns:
        (layer, module) of each, from the bottom up.
    """
    adapted = []
    for place in encoder.sublayers():
        if place.position in positions:
            module = AdaptedDropout(place, Bottleneck(architecture), form)
            place.put(module)
            adapted.append((place.layer, module))
    return adapted
