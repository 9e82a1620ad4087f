"""Adapters that all tasks share, with gates of each task on their units (Serra et al. 2018).

arXiv 1801.01423, section 2.2: a gate is sigmoid(s e), e trained by task, s rising while it learns.
B examples, L tokens, D width of the encoder, M units of the bottleneck.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from stream.models.encoder import Encoder
from stream.models.modules.active_tasks import ActiveTasks
from stream.models.modules.bottleneck import Architecture, Bottleneck
from stream.models.modules.by_task import ByTask
from stream.models.modules.fresh import Fresh
from stream.models.places import Insertion, SubLayer

MOST_EXPONENT = 50.0  # of a hyperbolic cosine, as in the released code


class Scale:
    """The s of all gates that learn; copies of the encoder share this object.

    Attributes:
        s: a scalar that stays where it is, so that a captured step reads what it is now. In
            float64, since a number of Python's, which it stands for, is.
    """

    def __init__(self, s: float, device: torch.device):
        self.s = torch.tensor(s, dtype=torch.float64, device=device)

    def set(self, s: float) -> None:
        """Give all gates another s."""
        self.s.fill_(s)

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

    def soft(self, s: torch.Tensor) -> Attention:
        """Return sigmoid(s e)."""
        return Attention(torch.sigmoid(s * self.units), torch.sigmoid(s * self.outputs))

    def hard(self) -> Attention:
        """Return 1 where e is above 0, and 0 elsewhere: the limit of a large s."""
        return Attention((self.units > 0).to(self.units), (self.outputs > 0).to(self.outputs))


class AttendedSubLayer(Insertion):
    """A sub-layer with a shared adapter at its end, of which each task uses what its gates leave.

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
        self.adapter = Bottleneck(architecture)
        self.gates = ByTask(gates)
        self._active = active
        self._scale = scale
        super().__init__(place, {"adapter": self.adapter, "gates": self.gates})

    def of(self, task: str) -> TaskGates:
        """Return the gates of one task."""
        gates = self.gates[task]
        assert isinstance(gates, TaskGates)
        return gates

    def change(self, f: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """Return the sub-layer's output [B, L, D] with what the adapter adds."""
        del source
        gates = self.of(self._active.names[-1])
        attention = gates.soft(self._scale.s) if self.training else gates.hard()
        units = functional.gelu(self.adapter.down(f)) * attention.units
        return f + self.adapter.up(units) * attention.outputs


def insert_attended(
    encoder: Encoder,
    architecture: Architecture,
    task_names: list[str],
    active: ActiveTasks,
    scale: Scale,
) -> dict[str, AttendedSubLayer]:
    """Insert an adapter with gates at the end of every sub-layer.

    Returns:
        What was inserted, by its adapter's name in the encoder, from the bottom up.
    """
    found = []
    for place in encoder.sublayers():
        gates = {name: TaskGates(architecture) for name in task_names}
        found.append(AttendedSubLayer(place, architecture, gates, active, scale))
    names = {module: name for name, module in encoder.named_modules()}
    return {names[inserted.adapter]: inserted for inserted in found}


class Protection:
    """What earlier tasks use of the shared adapters, by their names in the encoder.

    Attributes:
        free: by the name of a shared parameter, the factor of its gradient (equation 2), of a
            shape that broadcasts to it: 0 for what an earlier task uses, else 1.
    """

    def __init__(self, adapters: Mapping[str, AttendedSubLayer], earlier: Sequence[str]):
        self._adapters = adapters
        self._used = {place: _used(module, earlier) for place, module in adapters.items()}
        self.free: dict[str, torch.Tensor] = {}
        for place, (units, outputs) in self._used.items():
            down, up = f"{place}.down", f"{place}.up"
            self.free[f"{down}.weight"] = 1 - units[:, None]  # what it reads is no task's
            self.free[f"{down}.bias"] = 1 - units
            self.free[f"{up}.weight"] = 1 - torch.minimum(outputs[:, None], units[None, :])
            self.free[f"{up}.bias"] = 1 - outputs

    def occupied(self, task: str, s: torch.Tensor) -> torch.Tensor:
        """Return R of equation 5, a scalar: the share of the unused that the task's gates take."""
        taken, there = [], []
        for place, module in self._adapters.items():
            for gate, used in zip(module.of(task).soft(s), self._used[place], strict=True):
                taken.append((gate * (1 - used)).sum())
                there.append((1 - used).sum())
        return torch.stack(taken).sum() / torch.stack(there).sum().clamp(min=1)


def _used(module: AttendedSubLayer, tasks: Sequence[str]) -> Attention:
    """Return the largest of the tasks' hard gates, 0 without any."""
    adapter = module.adapter
    with torch.no_grad():
        used = Attention(torch.zeros_like(adapter.down.bias), torch.zeros_like(adapter.up.bias))
        for task in tasks:
            used = Attention(*map(torch.maximum, used, module.of(task).hard()))
    return used


def compensation(e: torch.Tensor, s: torch.Tensor, s_max: float) -> torch.Tensor:
    """Return the factor of the gradient of ``e`` that undoes what s does to it, of its shape."""
    steep = torch.cosh((s * e).clamp(-MOST_EXPONENT, MOST_EXPONENT)) + 1
    return s_max / s * steep / (torch.cosh(e) + 1)
