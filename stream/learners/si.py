"""Synaptic intelligence (Zenke et al. 2017, arXiv 1703.04200, equations 3 to 5).

While a task is learned, w_i += -g_i dx_i sums what each weight's movement took off the loss, with g
the gradient of the task's loss alone. After the task, Omega_i += w_i / (D_i^2 + xi), D_i the whole
movement, and later tasks pay strength sum_i Omega_i (x_i - x*_i)^2 from the newest x*. Deviations:
w below 0 counts as 0, since a negative Omega would reward moving away (the released code cuts the
sum over tasks at 0, not what each adds); g is taken before the gradients are clipped, and dx is the
whole step, with AdamW's momentum and weight decay. Heads belong to one task each and are outside
the penalty; a head that all tasks share is inside.

The paper's damping xi is a constant (its code: 0.1 for permuted MNIST, 0.001 for CIFAR, with c from
0.01 to 1), chosen for networks trained from scratch at a learning rate of 1e-3. Fine-tuning moves a
weight by 1e-4 to 1e-3, so that 0.1 is larger than every D_i^2 by orders of magnitude and Omega is
only w / xi. Here xi = ``damping`` times the mean of D_i^2 over all shared weights, so that Omega
means the same at every learning rate: sum_i Omega_i D_i^2 is about the loss that the task's path
took off. On MiniLM a strength of 1 already keeps new tasks from being learned, 0.01 holds nothing.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from stream.config.setting import POSITIVE, setting
from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners._shared.sequential import Penalized
from stream.learners.base import Tags
from stream.models.bf16 import copy_all


@dataclass
class Si(Penalized):
    """Train one encoder, hold weights by path.

    What lowered the loss of earlier tasks along its path is held near its value.

    Attributes:
        damping: keeps the importance of weights that hardly moved finite: the paper's xi, as a
            multiple of the mean squared movement of all shared weights.
    """

    strength: float = 0.1
    damping: float = setting(0.1, POSITIVE)

    tags: ClassVar[Tags] = replace(
        Penalized.tags,
        paper="Zenke et al. 2017, arXiv 1703.04200",
        stores="head, sum of importances",
        cuda_graph_safe=True,
    )
    ANCHOR: ClassVar[str] = "start"  # where a path starts is where the penalty is anchored

    def begin_task(self, task: Task) -> None:
        """Start a new path, and make room for what a step notes: captured, it writes in place."""
        shared = self.shared_parameters()
        self._gradient = {name: torch.zeros_like(p) for name, p in shared.items()}
        self._before = {name: torch.zeros_like(p) for name, p in shared.items()}
        self.penalty.begin(shared)
        self._path = {name: torch.zeros_like(p) for name, p in shared.items()}
        self.fit_tensors.update({f"path.{name}": path for name, path in self._path.items()})

    def after_backward(self, batch: Batch) -> None:
        """Note the task's gradient and where it was taken, then add the penalty's gradient."""
        shared = self.shared_parameters()
        noted = {name: p.grad for name, p in shared.items() if p.grad is not None}
        copy_all([self._gradient[name] for name in noted], list(noted.values()))
        copy_all(list(self._before.values()), list(shared.values()))
        if self.strength:
            self.penalty.add_gradient(shared, 2 * self.strength)

    def after_step(self, batch: Batch) -> None:
        """Go on along the path; in few kernels, since no graph holds them."""
        shared = self.shared_parameters()
        with torch.no_grad():
            moved = torch._foreach_sub(list(shared.values()), list(self._before.values()))  # pyright: ignore[reportPrivateImportUsage]
            paths, gradients = list(self._path.values()), list(self._gradient.values())
            torch._foreach_addcmul_(paths, gradients, moved, value=-1)  # pyright: ignore[reportPrivateImportUsage]

    def end_task(self, task: Task) -> None:
        """Turn the path into importance."""
        shared = self.shared_parameters()
        moved = {name: p.detach() - self.penalty.anchor(name) for name, p in shared.items()}
        xi = self.damping * torch.cat([m.flatten() for m in moved.values()]).square().mean()
        # A weight that nothing moved, because all learning rates were 0, took nothing off the loss.
        smallest = torch.finfo(xi.dtype).tiny
        importance = {
            name: (self._path[name] / (moved[name] ** 2 + xi).clamp(smallest)).clamp(0)
            for name in shared
        }
        self.penalty.replace(shared, importance, decay=1.0)
