"""The control: the pretrained encoder stays as it is, each task trains a linear head on it."""

from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner, Tags


@dataclass
class Frozen(Learner):
    """Train a head alone."""

    lr: float = 2e-2

    tags: ClassVar[Tags] = Tags(
        paper="the usual control",
        stores="head",
        parameter_isolation=True,
        is_reference=True,
        class_incremental=True,
    )
