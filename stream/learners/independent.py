"""Full fine-tuning of a model copy per task: the paper's baseline, N models for N tasks.

Houlsby et al. 2019 (arXiv 1902.00751), Table 1 "9.0x" and Table 2 "17x". Every task starts from
the pretrained encoder and keeps the whole of what it read, so nothing is forgotten and nothing is
shared. Deviation: the paper chooses the learning rate and epochs of each task on its validation
rows; here all tasks share them. The copies stay in memory: N times the encoder.
"""

from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner, Tags


@dataclass
class Independent(Learner):
    """Train a whole encoder for each task."""

    lr: float = 5e-5
    head_lr: float | None = 2e-3

    # The paper counts N copies for N tasks, not 1 + N, since what is deployed no longer needs the
    # model that all of them started from.
    tags: ClassVar[Tags] = Tags(
        paper="Houlsby et al. 2019, arXiv 1902.00751",
        stores="the whole encoder, head",
        parameter_isolation=True,
        is_reference=True,
        keeps_pretrained=False,
    )

    def trains(self, name: str) -> bool:
        """Return true: everything is trained."""
        return True
