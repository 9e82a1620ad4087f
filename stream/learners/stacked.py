"""Adapters stacked on a shared one below, isolated a task (MAD-X, Pfeiffer et al. 2020).

arXiv 2005.00052, section 4.2: a task adapter reads the output of a language adapter below it, each
added to what the feed-forward sub-layer adds. Deviation: a stream has no language adapter, so the
adapter of its first task takes that place: it is learned with that task and frozen; every later
task trains an adapter on top of it. MAD-X's invertible adapters are for other vocabularies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream.errors import require
from stream.learners.grown import Grown
from stream.models.bottleneck import Architecture
from stream.models.composed import Stacked as StackedAdapters
from stream.models.encoder import Encoder


@dataclass
class Stacked(Grown):
    """Train an adapter of D / ``reduction`` units on top of the first task's, and a head."""

    lr: float = 4e-3
    reduction: int = 16
    init_std: float = 0.02

    def __post_init__(self) -> None:
        """Refuse a reduction that is none."""
        super().__post_init__()
        require(self.reduction >= 1, f"learner.reduction must be at least 1, got {self.reduction}")

    def grow(self, encoder: Encoder, tasks: Sequence[str]) -> None:
        """Put an adapter of every task into every feed-forward sub-layer."""
        units = max(encoder.width // self.reduction, 1)
        architecture = Architecture(encoder.width, units, "relu", init_std=self.init_std)
        for place in encoder.sublayers():
            if place.position == "feedforward":
                place.put(StackedAdapters(place, architecture, tasks, self.use))

    def sources(self, task: str) -> list[str]:
        """Return the first task and this one."""
        names = super().sources(task)
        return [names[0], task] if len(names) > 1 else names
