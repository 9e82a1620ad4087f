"""Adapters stacked on a shared one below, isolated per task (MAD-X, Pfeiffer et al. 2020).

arXiv 2005.00052, section 4.2: a task adapter reads the output of a language adapter below it, each
added to what the feed-forward sub-layer adds. Deviation: a stream has no language adapter, so the
adapter of its first task takes that place: it is learned with that task and frozen; every later
task trains an adapter on top of it. MAD-X's invertible adapters are for other vocabularies.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from stream.learners._shared.composed import ComposedAdapters
from stream.learners.base import Tags
from stream.models.modules.active_tasks import Sources
from stream.models.modules.composition import Composed
from stream.models.modules.composition import Stacked as StackedAdapters


@dataclass
class Stacked(ComposedAdapters):
    """Train an adapter above the first task's.

    A head is trained with it.
    """

    lr: float = 4e-3

    tags: ClassVar[Tags] = replace(
        ComposedAdapters.tags,
        paper="Pfeiffer et al. 2020, arXiv 2005.00052",
        stores="adapter, head",
    )
    COMPOSED: ClassVar[type[Composed]] = StackedAdapters

    def sources(self, task: str) -> Sources:
        """Return the first task and this one."""
        names = super().sources(task).names
        return Sources([names[0], task] if len(names) > 1 else names)
