"""The control: the pretrained encoder stays as it is, each task trains a linear head on it."""

from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner


@dataclass
class Frozen(Learner):
    """Train the task's head only (linear probing)."""

    lr: float = 2e-2

    parameter_isolation: ClassVar[bool] = True

    def trains(self, name: str) -> bool:
        """Nothing of the encoder."""
        del name
        return False
