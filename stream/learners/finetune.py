"""Sequential full fine-tuning: one encoder trained on task after task, one head per task.

The lower bound of continual learning: nothing protects earlier tasks. Its learning rate is tuned
by itself (MIGU, arXiv 2406.17245, Tables 8-9: the usual catastrophic figures come from a learning
rate that suits adapters).
"""

from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner, Tags


@dataclass
class Finetune(Learner):
    """Train one encoder on task after task."""

    lr: float = 5e-5
    head_lr: float | None = 2e-3

    tags: ClassVar[Tags] = Tags(paper="the usual lower bound", stores="head")

    def trains(self, name: str) -> bool:
        """Return true: everything is trained."""
        return True
