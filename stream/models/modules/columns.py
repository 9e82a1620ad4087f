"""Columns of layers beside the pretrained ones: progressive networks.

B examples, L tokens, D width. Column 0 is the pretrained encoder's layers, frozen. All columns read
the same embeddings; a layer of a column also reads what the columns before it gave one layer below.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from stream.errors import require
from stream.models.encoder import Encoder
from stream.models.modules.active_tasks import ActiveTasks
from stream.models.modules.bottleneck import draw
from stream.models.modules.by_task import ByTask
from stream.models.modules.fresh import Fresh
from stream.models.places import first_input, with_first


@dataclass
class Below:
    """What every column gave in the layer below, [B, L, D] each, column 0 first.

    Attributes:
        hidden: what they gave.
        layer: the index of that layer.
    """

    hidden: list[torch.Tensor] = field(default_factory=list)
    layer: int = -1

    def __deepcopy__(self, memo: object) -> "Below":
        """Return a new one: a copy of the encoder computes its own."""
        return Below()


class Lateral(Fresh):
    """U relu(V [a_j h_j]_j): what ``columns`` earlier columns add to a layer's input."""

    def __init__(self, width: int, size: int, columns: int):
        super().__init__()
        self.scales = nn.Parameter(torch.empty(columns, 1))
        self.down = nn.Linear(columns * width, size)
        self.up = nn.Linear(size, width, bias=False)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw maps near 0; every earlier column counts alike at first."""
        draw(self.down, 0.02, generator)
        draw(self.up, 0.02, generator)
        nn.init.ones_(self.scales)

    def forward(self, earlier: Sequence[torch.Tensor]) -> torch.Tensor:
        """Map [B, L, D] of each earlier column to [B, L, D].

        A task that is asked for before its turn may have fewer columns before it.
        """
        count = len(earlier)
        scaled = torch.stack(list(earlier), dim=-2) * self.scales[:count]  # [B, L, count, D]
        flat = scaled.flatten(-2)
        inner = functional.linear(flat, self.down.weight[:, : flat.shape[-1]], self.down.bias)
        return self.up(functional.relu(inner))


class Column(nn.Module):
    """One layer of one task's column, and from the second layer on its lateral connection."""

    def __init__(self, layer: nn.Module, lateral: Lateral | None):
        super().__init__()
        self.layer = layer
        self.lateral = lateral


class Columns(ByTask):
    """The columns of all tasks at one layer, computed by hooks of the pretrained layer."""

    def __init__(self, columns: dict[str, Column], active: ActiveTasks, below: Below, index: int):
        super().__init__(columns)
        self._active = active
        self._below = below
        self._index = index
        self._inputs: list[torch.Tensor] = []

    def enter(self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Give column 0 what column 0 gave below; a forward pre-hook."""
        del layer
        if self._index == 0:
            self._inputs = [first_input(args, kwargs)] * (len(self._active.names) + 1)
        else:
            assert self._below.layer == self._index - 1, "a pass goes from layer to layer"
            self._inputs = self._below.hidden
        return with_first(self._inputs[0], args, kwargs)

    def leave(
        self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Any:
        """Compute the other columns, and give the last one's output; a forward hook."""
        del layer
        hidden = [_tensor(output)]
        for place, name in enumerate(self._active.names, start=1):
            column = self[name]
            assert isinstance(column, Column)
            below = self._inputs[place]
            if column.lateral is not None:
                below = below + column.lateral(self._inputs[:place])
            given, named = with_first(below, args, kwargs)
            hidden.append(_tensor(column.layer(*given, **named)))
        self._below.hidden, self._below.layer, self._inputs = hidden, self._index, []
        return (hidden[-1], *output[1:]) if isinstance(output, tuple) else hidden[-1]


def _tensor(output: Any) -> torch.Tensor:
    """Return a layer's hidden states: some give a tuple."""
    return output[0] if isinstance(output, tuple) else output


def add_columns(encoder: Encoder, tasks: Sequence[str], size: int, active: ActiveTasks) -> None:
    """Put a column of every task beside the layers: copies of them, with laterals of ``size``.

    The task at place k (from 0) reads k + 1 columns: the pretrained one and those of k tasks.

    Raises:
        UserError: the encoder uses a layer several times.
    """
    require(
        len(encoder.layers()) == encoder.num_layers,
        f"{type(encoder.body).__name__} uses one layer several times: a column beside it would "
        "read itself; choose another learner or encoder",
    )
    below = Below()
    encoder.noted.append(below)
    for index, layer in enumerate(encoder.layers()):
        columns = {}
        for place, task in enumerate(tasks):
            lateral = Lateral(encoder.width, size, place + 1) if index else None
            columns[task] = Column(copy.deepcopy(layer), lateral)
        beside = Columns(columns, active, below, index)
        layer.add_module("columns", beside)
        layer.register_forward_pre_hook(beside.enter, with_kwargs=True)
        layer.register_forward_hook(beside.leave, with_kwargs=True)
