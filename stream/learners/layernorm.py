"""LayerNorms only, isolated a task: the paper's smallest baseline ("40k" parameters).

Houlsby et al. 2019 (arXiv 1902.00751), section 3.4 and figure 4. A task trains and owns the scale
and shift of every LayerNorm, the embedding's too, and its head. No deviation is known; the paper
gives no learning rate for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.data.task import Task
from stream.learners.base import Learner
from stream.models.heads import TaskModel


@dataclass
class LayerNorm(Learner):
    """Train every LayerNorm and a head; each task owns its copy."""

    lr: float = 5e-3

    parameter_isolation: ClassVar[bool] = True

    def trains(self, name: str) -> bool:
        """LayerNorms."""
        return name in self._layernorms

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Find the LayerNorms."""
        self._layernorms = model.encoder.layernorm_names()
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)
