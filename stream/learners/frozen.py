"""The control: the pretrained encoder stays as it is, each task trains a linear head on it."""

from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner, Tags


@dataclass
class Frozen(Learner):
    """Train the task's head only (linear probing)."""

    lr: float = 2e-2

    tags: ClassVar[Tags] = Tags(parameter_isolation=True)
