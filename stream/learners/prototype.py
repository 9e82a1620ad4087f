"""Prototypes in the frozen encoder's space: nearest class mean, or ridge regression (RanPAC).

A task is read once, without a training step. ``kind=ncm`` answers with the class whose mean vector
is nearest (in continual learning: iCaRL, arXiv 1611.07725, equation 2): ``metric=euclidean``, or
``cosine``, for which vectors are scaled to length 1, and their means again. ``kind=ridge`` fits
one-hot targets: W = (G + penalty I)^-1 C, with G the sum of x x', and C that of the x of each class
(RanPAC, McDonnell et al. 2023, arXiv 2307.02251, section 4), x = relu(f P) with ``projection``: f
the encoder's vector, as ``backbone.pooling`` has it, P random and frozen, drawn from the seed. The
penalty is the power of ten from 1e-8 to 1e8 with the least squared error on a fifth of the task's
rows after a fit on the others, as in the paper, or a setting.

Sums are in float64, the heads that they give in float32. They are those of a head: of one task, and
then nothing is kept but the head; or, where tasks share one, of all classes met so far, and then C,
the counts, and for ridge G are stored for the next task; the penalty is chosen on the newest task's
rows alone, as in RanPAC's code. A new task changes no mean of other classes. RanPAC's phase 1 (it
adapts the encoder on the first task) is left out. Scores are fitted by ridge regression either way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch.nn import functional

from stream.config.run import TrainingConfig
from stream.config.setting import POSITIVE, at_least, setting
from stream.data.task import Task
from stream.learners._shared.fitted import NO_STEPS
from stream.learners._shared.sums import Ridge, Sums, middle_of, sums_of
from stream.learners.base import Learner, Tags
from stream.learners.workload import Workload
from stream.models.encoder import Encoder
from stream.models.heads import Head
from stream.models.modules.text_features import TextFeatures
from stream.seeding import numpy_generator

HELD_OUT = 5  # one row of so many says how good a penalty is


@dataclass
class Prototype(Learner):
    """Fit heads on the frozen encoder at once.

    Attributes:
        kind: the nearest class mean (``ncm``) or ridge regression (``ridge``).
        metric: what is near: ``euclidean`` distance or the ``cosine`` of the angle.
        projection: features of the random projection (M; the paper has 10,000); 0 is without.
        penalty: lambda of ridge regression; null chooses it on held-out training rows.
    """

    lr: float = setting(5e-5, POSITIVE, idle=NO_STEPS)
    head_lr: float | None = setting(None, POSITIVE, idle=NO_STEPS)
    kind: str = setting("ncm", ("ncm", "ridge"))
    metric: str = setting("euclidean", ("euclidean", "cosine"), needs={"kind": "ncm"})
    projection: int = setting(0, at_least(0, 65_536))
    penalty: float | None = setting(None, POSITIVE, needs={"kind": "ridge"})

    tags: ClassVar[Tags] = Tags(
        paper="McDonnell et al. 2023, arXiv 2307.02251",
        stores="head",
        keeps_logits=True,
        seeded=False,
        makes_steps=False,
        learns_spans=False,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert the projection."""
        unit = self.metric == "cosine"
        if self.projection or unit:
            features = TextFeatures(encoder.width, self.projection, unit=unit)
            encoder.insert_features(features, features.width)

    def trains(self, name: str) -> bool:
        """Return false: the encoder stays, and so does the projection."""
        return False

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return no work for the training loop."""
        return Workload(0, 0, 0)

    def begin_task(self, task: Task) -> None:
        """Leave no class of a new head to its first weights."""
        head = self.model.head(task.head_name)
        is_new = Sums.kept(self.shared_tensors, task.head_name, head.outputs) is None
        if is_new and not task.is_regression:
            self._fill(head, torch.zeros(()), torch.tensor(Head.NEVER))

    def end_task(self, task: Task) -> None:
        """Fit the head, on all that is known of its classes."""
        ridge = self.kind == "ridge" or task.is_regression
        rows = len(task.split("train"))
        order = numpy_generator(self.seed, "held out", task.name).permutation(rows)
        held_out = np.isin(np.arange(rows), order[: max(rows // HELD_OUT, 1)])
        fitted, others = sums_of(self.model, task, self.pad_id, held_out, gram=ridge)
        head = self.model.head(task.head_name)
        kept = Sums.kept(self.shared_tensors, task.head_name, head.outputs)
        sums = fitted + others if kept is None else kept + (fitted + others)
        if task.head_name != task.name:  # other tasks have it too
            self.shared_tensors.update(sums.named(task.head_name))
        if ridge:
            weight = Ridge(sums).coefficients(self.penalty or Ridge(fitted).chosen(others)).T
            bias = torch.full_like(sums.counts, middle_of(task))
        else:
            weight = (sums.products / sums.counts.clamp(min=1)).T
            weight = functional.normalize(weight, dim=1) if self.metric == "cosine" else weight
            # |x - m|^2 / -2, but for |x|^2, which is the same for all classes
            far = weight.square().sum(1) / 2
            bias = -far if self.metric == "euclidean" else torch.zeros_like(far)
        if not task.is_regression:
            bias = torch.where(sums.counts > 0, bias, Head.NEVER)
        self._fill(head, weight, bias)

    def _fill(self, head: Head, weight: torch.Tensor, bias: torch.Tensor) -> None:
        """Give a head its values."""
        with torch.no_grad():
            head.weight.copy_(weight)
            head.bias.copy_(bias)
