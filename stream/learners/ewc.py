"""Elastic weight consolidation (Kirkpatrick et al. 2017, arXiv 1612.00796, equation 3).

L(x) = L_new(x) + strength / 2 sum_t sum_i F_t,i (x_i - x*_t,i)^2, with F the diagonal of the Fisher
information: the mean over examples of the squared gradient of one example's log-likelihood. Each
example has a gradient of its own; squared means over batches would depend on the batch size.
``online``: one anchor and F <- decay F + F_new, of which decay F counts while the next task is
learned (Schwarz et al. 2018, arXiv 1805.06370, section 3.2). Earlier releases of van de Ven's code
have both factors too; Mammoth's ewc_on has no second one, which is a strength of 1 / decay.
Deviations: labels are the data's, not drawn from the model ("empirical Fisher"), of
``fisher_rows`` examples per task; a regression's likelihood is normal with variance 1. Heads belong
to one task each and are outside the penalty; a head that all tasks share is inside, as the whole
network is in class-incremental comparisons (Mammoth's ewc_on, van de Ven's code). A class that a
task brings has no importance before.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from stream.config.setting import Range, at_least, setting
from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.learners._shared.sequential import Penalized
from stream.learners.base import Tags
from stream.models.losses import part_loss
from stream.seeding import numpy_generator


@dataclass
class Ewc(Penalized):
    """Train one encoder, hold weights by Fisher.

    What earlier tasks need, by Fisher information, is held near its value.

    Attributes:
        online: keep one anchor, and one sum of importances that fades (Schwarz et al. 2018).
        decay: what is left of the sum of importances at each new task (gamma); 0 is plain
            fine-tuning.
        fisher_rows: examples of a task from which its importances are measured.
    """

    strength: float = 100.0
    online: bool = False
    decay: float = setting(1.0, Range(0, 1), needs={"online": True})
    fisher_rows: int = setting(128, at_least(1))

    tags: ClassVar[Tags] = replace(
        Penalized.tags,
        paper="Kirkpatrick et al. 2017, arXiv 1612.00796",
        stores="head, sum of importances",
        cuda_graph_safe=True,
    )

    def begin_task(self, task: Task) -> None:
        """Anchor the penalty, once there is one."""
        if self.shared_tensors:
            self.penalty.begin(self.shared_parameters())

    def after_backward(self, batch: Batch) -> None:
        """Add the penalty's gradient."""
        if self.strength:
            faded = self.decay if self.online else 1.0
            self.penalty.add_gradient(self.shared_parameters(), self.strength * faded)

    def end_task(self, task: Task) -> None:
        """Measure what the task needs."""
        fisher, values = self.fisher(task), self.shared_parameters()
        if self.online:
            self.penalty.replace(values, fisher, self.decay)
        else:
            self.penalty.add(values, fisher)

    def fisher(self, task: Task) -> dict[str, torch.Tensor]:
        """Return the diagonal of the empirical Fisher information of the shared parameters."""
        split, model = task.split("train"), self.model
        order = numpy_generator(self.seed, "fisher", task.name).permutation(len(split))
        rows = order[: self.fisher_rows]
        parameters = self.shared_parameters()
        found = {name: torch.zeros_like(p) for name, p in parameters.items()}
        # A squared error is twice a normal's; a span's loss is the mean over its two ends.
        nll_of_loss = 0.5 if task.is_regression else 2.0 if task.is_span else 1.0
        was_training = model.training
        model.eval()
        model.sync_bf16_copy()
        model.zero_grad(set_to_none=True)  # of the step before
        for row in rows:
            batch = collate([(task, split, np.array([row]))], self.pad_id).to(model.device)
            with model.computing():
                loss = part_loss(batch.parts[0], model(batch)[0], batch.labels[0])
                (loss * nll_of_loss).backward()
            for name, parameter in parameters.items():
                if parameter.grad is not None:
                    found[name].addcmul_(parameter.grad, parameter.grad, value=1 / len(rows))
            model.zero_grad(set_to_none=True)
        model.train(was_training)
        return found
