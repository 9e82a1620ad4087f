"""O-LoRA: one low-rank pair per task, orthogonal to earlier ones; all of them serve every task.

Wang et al. 2023 (arXiv 2310.14152), section 3.2: the weights of task t are W + sum_{i<=t} A_i B_i,
of which only the newest pair is trained, and the loss adds ``orthogonality`` times equation 8,
L_orth(A_i, A_t) = sum_{j,k} (A_i^T A_t)[j, k]^2, summed over earlier tasks and changed maps (here
A is the map that reads the input, `LowRank.down`, whose rows span the subspace). All pairs learned
so far serve every task, so earlier tasks may forget. Deviations: the released code adds absolute
values instead of squares, and lambda 2 times the norms of the newest pair, which the paper does not
have; no dropout; each task has a head of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.setting import NOT_NEGATIVE, POSITIVE, WIDEST, at_least, setting
from stream.data.batch import Batch
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.active_tasks import Sources
from stream.models.modules.low_rank import LowRank, LowRankByTask, change_query_value
from stream.models.places import LinearMap


@dataclass
class OLora(Learner):
    """Add orthogonal low-rank changes.

    Each task adds a pair to every query and value map, and a head; all pairs serve every task.

    Attributes:
        rank: the rank of a task's change of a query or value map.
        alpha: a change is scaled by ``alpha`` / ``rank``.
        orthogonality: the factor of the penalty on what a new change shares with earlier ones
            (lambda 1).
    """

    lr: float = 2e-3
    rank: int = setting(8, at_least(1, WIDEST))
    alpha: float = setting(16.0, POSITIVE)
    orthogonality: float = setting(0.5, NOT_NEGATIVE)

    tags: ClassVar[Tags] = Tags(
        paper="Wang et al. 2023, arXiv 2310.14152", stores="low-rank pairs, head"
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Hook a pair per task to every query and value map."""

        def pairs(changed: LinearMap) -> LowRankByTask:
            own = {name: LowRank(changed, self.rank, self.alpha) for name in task_names}
            return LowRankByTask(own, changed, self.active)

        change_query_value(encoder, "olora", pairs)

    def sources(self, task: str) -> Sources:
        """Return all tasks begun so far, whichever of them is served.

        That which is being learned changes what serves the others from its first step on.
        """
        begun = [learned.name for learned in self.learned]
        if self._newest is not None and self._newest not in begun:
            begun.append(self._newest)
        return Sources([*(name for name in begun if name != task), task])

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of the batch, and what the newest pair shares with earlier ones."""
        return super().loss(batch) + self.orthogonality * self.overlap()

    def overlap(self) -> torch.Tensor:
        """Return equation 8 of the newest task, summed over earlier tasks and changed maps."""
        *earlier, newest = self.active.names
        total = torch.zeros((), device=self.model.device)
        for change in self.model.encoder.modules():
            if isinstance(change, LowRankByTask):
                new = change.pair(newest).down.weight  # [r, D_in]
                for name in earlier:
                    total = total + (change.pair(name).down.weight @ new.T).square().sum()
        return total
