"""Sequential full fine-tuning: one encoder trained on task after task, one head per task.

The lower bound of continual learning: nothing protects earlier tasks. Its learning rate is tuned
by itself (MIGU, arXiv 2406.17245, Tables 8-9: the usual catastrophic figures come from a learning
rate that suits adapters).
"""

from dataclasses import dataclass

from stream.learners.base import Learner


@dataclass
class Finetune(Learner):
    """Train the whole encoder on each task in turn."""

    lr: float = 5e-5
    head_lr: float | None = 2e-3

    def trains(self, name: str) -> bool:
        """Return true: everything is trained."""
        return True
