"""What methods share whose tasks insert adapters that later tasks read.

Every task has adapters of its own, which nothing changes after it was learned; what serves a task
are these and those of earlier tasks. So memory is perfect, and yet later tasks may gain from
earlier ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import POSITIVE, WIDEST, at_least, setting
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import reduced
from stream.models.modules.composition import Composed


@dataclass
class ComposedAdapters(Learner):
    """Adapters of every task, in every feed-forward sub-layer.

    Attributes:
        reduction: how many times narrower a bottleneck is than the encoder.
        init_std: the standard deviation of the first weights.
    """

    lr: float = 2e-3
    reduction: int = setting(16, at_least(1, WIDEST))
    init_std: float = setting(0.02, POSITIVE)

    tags: ClassVar[Tags] = Tags(parameter_isolation=True, reads_past_tasks=True)
    COMPOSED: ClassVar[type[Composed]]

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert the adapters, as `pfeiffer` has them, and what composes them."""
        architecture = reduced(encoder.width, self.reduction, self.init_std)
        for place in encoder.sublayers():
            if place.position == "feedforward":
                self.COMPOSED(place, architecture, task_names, self.active)
