"""L2P: a pool of soft prompts for the whole stream, of which each text takes the nearest few.

Wang et al. 2022 (arXiv 2112.08654), section 4: the frozen encoder without a prompt gives a query
q(x); the ``taken`` prompts of the pool whose keys are nearest to it, by the distance
g = 1 - cos(q(x), k), stand beside the text's tokens. The loss is that of the task plus ``pull``
times the sum of g over the keys taken (equation 5). All tasks share the pool, so earlier tasks may
forget. With ``diversify`` keys are chosen by g h while learning (section 4.2): h is the share of
all choices that fell on a prompt in earlier tasks; in the first task it counts alike everywhere.
The query costs a second forward pass, in learning and serving, which the counted operations hold.
Deviations: a head reads the encoder's text vector, where the paper averages the outputs at the
prompts; each text of a batch takes its own prompts, as in the paper, while the released code lets a
batch vote; prompts start as tokens and keys as random directions, in the released code uniform in
[0, 0.01]; ``pull`` is the paper's 0.5 (the released code: 1.0; a common port to PyTorch: 0.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.setting import NOT_NEGATIVE, at_least, setting
from stream.data.batch import Batch
from stream.data.task import Task
from stream.distributed.world import World
from stream.errors import require
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.prompt_pool import Match, PromptPool

SELECTED = "selected"  # how often each prompt was taken, [M]


@dataclass
class L2p(Learner):
    """Train a pool of prompts that texts choose from.

    The encoder is frozen; all tasks share the pool, and each has a head.

    Attributes:
        pool: prompts in the pool (M in the paper).
        length: vectors of a prompt (L_p).
        taken: prompts that each text takes (N); at most ``pool``.
        pull: the factor of the distance between a text and the keys that it takes (lambda).
        diversify: while learning, prefer prompts that earlier tasks took seldom.
    """

    lr: float = 3e-2
    pool: int = setting(10, at_least(1, 4096))
    length: int = setting(5, at_least(1, 4096))
    taken: int = setting(5, at_least(1, 4096))
    pull: float = setting(0.5, NOT_NEGATIVE)
    diversify: bool = False

    tags: ClassVar[Tags] = Tags(paper="Wang et al. 2022, arXiv 2112.08654", stores="head")

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert the pool.

        Raises:
            UserError: a text would take more prompts than there are.
        """
        require(
            self.taken <= self.pool,
            f"learner.taken must be at most learner.pool={self.pool}, got {self.taken}",
        )
        self._match = Match()
        pool = PromptPool(encoder, self.pool, self.length, self.taken, self._match)
        encoder.insert_prompt(pool, queried=True)
        if self.diversify:
            device = self.model.device
            self._step = torch.zeros(self.pool, device=device)  # choices of the last step
            self._match.penalty = torch.ones(self.pool, device=device)

    def begin_task(self, task: Task) -> None:
        """Find out how often earlier tasks took each prompt."""
        if self.diversify:
            none = torch.zeros_like(self._step)
            before = self.shared_tensors.setdefault(SELECTED, none)
            share = before / before.sum() if self.learned else torch.ones_like(none)
            assert self._match.penalty is not None
            self._match.penalty.copy_(share)
            self.fit_tensors[SELECTED] = torch.zeros_like(none)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of the batch, and ``pull`` times the distance from the keys taken."""
        loss = super().loss(batch)
        if self.diversify:
            taken = self._match.taken
            chosen = torch.nn.functional.one_hot(taken, self.pool).sum(1)  # [B, M]
            real = batch.real
            self._step.copy_((chosen if real is None else chosen * real[:, None]).sum(0))
        return loss + self.pull * batch.mean(self._match.read_distance())

    def after_step(self, batch: Batch) -> None:
        """Count the choices of the step."""
        if self.diversify:
            self.fit_tensors[SELECTED] += World.now().total(self._step)

    def end_task(self, task: Task) -> None:
        """Count the choices of the task."""
        if self.diversify:
            self.shared_tensors[SELECTED] += self.fit_tensors.pop(SELECTED)
