"""Adapters that all tasks share, with gates of each task on their units (Serra et al. 2018).

arXiv 1801.01423, section 2.2: a gate is sigmoid(s e), e trained by task, s rising while it learns.
B examples, L tokens, D width of the encoder, M units of the bottleneck.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from stream.models.encoder import Encoder, SubLayer
from stream.models.modules.active_tasks import ActiveTasks
from stream.models.modules.bottleneck import Architecture, Bottleneck
from stream.models.modules.by_task import ByTask
from stream.models.modules.fresh import Fresh


class Scale:
    """The s of all gates that learn; copies of the encoder share this object."""

    def __init__(self, s: float):
        self.s = s

    def __deepcopy__(self, memo: object) -> "Scale":
        """Return the same object."""
        return self


class Attention(NamedTuple):
    """The gates of one adapter: of its units, [M], and of its outputs, [D]."""

    units: torch.Tensor
    outputs: torch.Tensor


class TaskGates(Fresh):
    """What one task attends to in one adapter: M + D numbers e, drawn from N(0, 1)."""

    def __init__(self, architecture: Architecture):
        super().__init__()
        self.units = nn.Parameter(torch.empty(architecture.size))
        self.outputs = nn.Parameter(torch.empty(architecture.width))

    def initialize(self, generator: torch.Generator) -> None:
        """Draw every e, so that about half of the gates are open."""
        for e in self.parameters():
            drawn = torch.randn(e.shape, generator=generator)
            with torch.no_grad():
                e.copy_(drawn)

    def soft(self, s: float) -> Attention:
        """Return sigmoid(s e)."""
        return Attention(torch.sigmoid(s * self.units), torch.sigmoid(s * self.outputs))

    def hard(self) -> Attention:
        """Return 1 where e is above 0, and 0 elsewhere: the limit of a large s."""
        return Attention((self.units > 0).to(self.units), (self.outputs > 0).to(self.outputs))


class AttendedDropout(nn.Module):
    """A sub-layer's dropout with a shared adapter, of which each task uses what its gates leave.

    x + o W_up (u gelu(W_down x + b_down)) + o b_up, with u and o the gates of the active task,
    multiplied by element: soft while it learns, hard where it is served.
    """

    def __init__(
        self,
        place: SubLayer,
        architecture: Architecture,
        gates: dict[str, TaskGates],
        active: ActiveTasks,
        scale: Scale,
    ):
        super().__init__()
        self.dropout = place.dropout
        self.adapter = Bottleneck(architecture)
        self.gates = ByTask(gates)
        self._active = active
        self._scale = scale

    def of(self, task: str) -> TaskGates:
        """Return the gates of one task."""
        gates = self.gates[task]
        assert isinstance(gates, TaskGates)
        return gates

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map the projection's output [B, L, D] to what is added to the residual, [B, L, D]."""
        hidden = self.dropout(hidden)
        gates = self.of(self._active.names[-1])
        attention = gates.soft(self._scale.s) if self.training else gates.hard()
        units = functional.gelu(self.adapter.down(hidden)) * attention.units
        return hidden + self.adapter.up(units) * attention.outputs


def insert_attended(
    encoder: Encoder,
    architecture: Architecture,
    task_names: list[str],
    active: ActiveTasks,
    scale: Scale,
) -> dict[str, AttendedDropout]:
    """Insert an adapter with gates behind the dropout of every sub-layer.

    Returns:
        The modules by their names in the encoder, from the bottom up.
    """
    placed = []
    for place in encoder.sublayers():
        gates = {name: TaskGates(architecture) for name in task_names}
        placed.append(AttendedDropout(place, architecture, gates, active, scale))
        place.put(placed[-1])
    return {name: module for name, module in encoder.named_modules() if module in placed}
