"""One set of Houlsby adapters trained through the whole stream: the control for isolation.

It has what `adapter` has (Houlsby et al. 2019, arXiv 1902.00751) but for a copy a task: where it
forgets and `adapter` does not, the isolation is what removes forgetting, not the adapter. Called
"AdapterCL without isolation" or sequential adapters elsewhere (Madotto et al. 2021, arXiv
2012.15504, compare both).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream.errors import require
from stream.learners.base import Learner
from stream.learners.sequential import insert_shared_adapters
from stream.models.heads import TaskModel
from stream.tasks.task import Task


@dataclass
class SharedAdapter(Learner):
    """Train the same adapters and LayerNorms on each task in turn, with a head a task."""

    lr: float = 1e-3
    size: int = 64

    def __post_init__(self) -> None:
        """Refuse adapters that are none."""
        super().__post_init__()
        require(self.size >= 1, f"learner.size must be at least 1, got {self.size}")

    def trains(self, name: str) -> bool:
        """Adapters and LayerNorms."""
        return name not in self._frozen

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Put the adapters in."""
        self._frozen = insert_shared_adapters(model.encoder, self.size, seed)
        model.encoder.to(model.device)
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)
