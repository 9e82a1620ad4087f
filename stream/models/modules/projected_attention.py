"""Projected attention layers beside each Transformer layer (Stickland & Murray 2019).

B examples, L tokens, D width, M size, H heads. TS(h) = g(V_D MHA(V_E h)), h what the layer's own
attention reads (its input, or where norms come before the norm of it): V_E and V_D are one pair per
task for all layers, the attention is a layer's own and has no output map.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from stream.models.encoder import Encoder
from stream.models.masks import Reading
from stream.models.modules.active_tasks import ActiveTasks
from stream.models.modules.bottleneck import ACTIVATIONS, draw
from stream.models.modules.by_task import ByTask
from stream.models.modules.fresh import Fresh
from stream.models.places import Insertion, SubLayer, first_input


class PalArchitecture(NamedTuple):
    """What a task's projected attention is made of.

    Attributes:
        size: M.
        heads: H.
        activation: g, a name in `ACTIVATIONS`.
    """

    size: int
    heads: int
    activation: str


class Projections(Fresh):
    """V_E and V_D of one task: 2 D M + D + M parameters."""

    purpose: ClassVar[str] = "pals"

    def __init__(self, width: int, size: int):
        super().__init__()
        self.encode = nn.Linear(width, size)
        self.decode = nn.Linear(size, width)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw as BERT's maps."""
        draw(self.encode, 0.02, generator)
        draw(self.decode, 0.02, generator)


class Attention(Fresh):
    """Multi-head attention of M units: 3 (M M + M) parameters."""

    purpose: ClassVar[str] = "pals"

    def __init__(self, size: int, heads: int):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(size, size) for _ in range(3))
        self._heads = heads

    def initialize(self, generator: torch.Generator) -> None:
        """Draw as BERT's maps."""
        for layer in self.maps:
            assert isinstance(layer, nn.Linear)
            draw(layer, 0.02, generator)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Map [B, L, M] to the same shape; ``mask`` as in torch, [B, 1, L or 1, L]."""
        split = [m(hidden).unflatten(-1, (self._heads, -1)).transpose(1, 2) for m in self.maps]
        mixed = functional.scaled_dot_product_attention(*split, attn_mask=mask)
        return mixed.transpose(1, 2).flatten(-2)


class Pal(nn.Module):
    """One task's part at one layer; the projections are all layers' together."""

    def __init__(self, projections: Projections, attention: Attention, activation: str):
        super().__init__()
        self.projections = projections
        self.attention = attention
        self._activate = ACTIVATIONS[activation]

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Return TS(h), [B, L, D]."""
        inner = self.attention(self.projections.encode(hidden), mask)
        return self._activate(self.projections.decode(inner))


class ProjectedSubLayer(Insertion):
    """The end of a layer's last sub-layer, with every task's projected attention."""

    def __init__(
        self,
        place: SubLayer,
        first: SubLayer,
        pals: Mapping[str, Pal],
        active: ActiveTasks,
        reading: Reading,
    ):
        """Insert at ``place``; ``first`` is the layer's attention, whose input is read.

        ``reading`` says which tokens may be read.
        """
        self.pals = ByTask(pals)
        self._active = active
        self._reading = reading
        self._layer_input: torch.Tensor | None = None
        super().__init__(place, {"pals": self.pals})
        first.reader.register_forward_pre_hook(self.note, with_kwargs=True)

    def note(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """Remember what the layer's attention reads; a forward pre-hook."""
        del module
        if self._is_here:
            self._layer_input = first_input(args, kwargs)

    def change(self, f: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """Return the projection's output [B, L, D] with the task's attention, [B, L, D]."""
        del source
        assert self._layer_input is not None, "`note` hooks the layer's attention"
        h, self._layer_input = self._layer_input, None
        return f + self.pals[self._active.names[-1]](h, self._reading.readable())


def add_pals(
    encoder: Encoder,
    tasks: Sequence[str],
    architecture: PalArchitecture,
    active: ActiveTasks,
) -> None:
    """Put projected attention of every task beside every layer."""
    size, heads, activation = architecture
    projections = {task: Projections(encoder.width, size) for task in tasks}
    places = encoder.sublayers()
    for first, last in zip(places[::2], places[1::2], strict=True):
        pals = {task: Pal(projections[task], Attention(size, heads), activation) for task in tasks}
        ProjectedSubLayer(last, first, pals, active, encoder.reading)
