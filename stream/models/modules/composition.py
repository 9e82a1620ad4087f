"""Several tasks' adapters at one place: stacked, or fused by attention.

B examples, L tokens, D width, T adapters. All stand where `pfeiffer` puts its one: with f what the
feed-forward sub-layer adds to its input x and h = LN(f + x), an adapter adds A(h) to f.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import nn

from stream.models.modules.active_tasks import ActiveTasks
from stream.models.modules.bottleneck import Architecture, Bottleneck, draw
from stream.models.modules.by_task import ByTask
from stream.models.modules.fresh import Fresh
from stream.models.places import Insertion, SubLayer


class Composed(Insertion):
    """A sub-layer with the adapters of every task at its end."""

    def __init__(
        self,
        place: SubLayer,
        architecture: Architecture,
        tasks: Sequence[str],
        active: ActiveTasks,
        more: Mapping[str, nn.Module] | None = None,
    ):
        """Insert adapters by task, and ``more`` modules by name."""
        self.adapters = ByTask({task: Bottleneck(architecture) for task in tasks})
        self.active = active
        self._norm = place.norm
        super().__init__(place, {"adapters": self.adapters, **(more or {})}, "residual")

    def change(self, f: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """Return what is added to the residual x, which is ``source``, [B, L, D]."""
        h = self._norm(f + source)
        if self.active.combined:
            return self.combine(f, h)
        return f + self.added(self.active.names[-1], h)

    def added(self, task: str, h: torch.Tensor) -> torch.Tensor:
        """Return what the adapter of ``task`` adds, [B, L, D]."""
        adapter = self.adapters[task]
        assert isinstance(adapter, Bottleneck)
        return adapter.change(h)

    def combine(self, f: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """Return f and what all active adapters add, [B, L, D]."""
        raise NotImplementedError


class Stacked(Composed):
    """Each adapter reads the one below: a <- f + A(a), from a = h (MAD-X, section 4.2)."""

    def combine(self, f: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """Return the topmost adapter's output, [B, L, D]."""
        for task in self.active.names:
            h = f + self.added(task, h)
        return h


class Attention(Fresh):
    """The weights of adapters at every token, and what they add (AdapterFusion, section 3.2)."""

    purpose: ClassVar[str] = "fusion"

    def __init__(self, width: int):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width, bias=False)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw query and key as BERT's maps; the value map starts as the identity, almost."""
        draw(self.query, 0.02, generator)
        draw(self.key, 0.02, generator)
        with torch.no_grad():
            self.value.weight.fill_(1e-6).fill_diagonal_(1.0)

    def forward(self, hidden: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
        """Return the sum over T of softmax(q . k) v, [B, L, D]; ``added`` is [T, B, L, D]."""
        scores = (self.query(hidden) * self.key(added)).sum(-1, keepdim=True)  # [T, B, L, 1]
        return (scores.softmax(0) * self.value(added)).sum(0)


class Fused(Composed):
    """f + the attention of f over what all adapters add."""

    def __init__(
        self, place: SubLayer, architecture: Architecture, tasks: Sequence[str], active: ActiveTasks
    ):
        self.fusion = Attention(architecture.width)
        super().__init__(place, architecture, tasks, active, {"fusion": self.fusion})

    def combine(self, f: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """Return f and the attention over what all active adapters add, [B, L, D]."""
        return f + self.fusion(f, torch.stack([self.added(task, h) for task in self.active.names]))
