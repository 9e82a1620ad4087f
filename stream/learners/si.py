"""Synaptic intelligence (Zenke et al. 2017, arXiv 1703.04200, equations 3 to 5).

While a task is learned, w_i += -g_i dx_i sums what each weight's movement took off the loss, with g
the gradient of the task's loss alone. After the task, Omega_i += w_i / (D_i^2 + xi), D_i the whole
movement, and later tasks pay strength sum_i Omega_i (x_i - x*_i)^2 from the newest x*. Deviations:
w below 0 counts as 0, since a negative Omega would reward moving away; g is taken before the
gradients are clipped. Heads are a task's own and outside the penalty.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from stream.data.batches import Batch
from stream.data.task import Task
from stream.errors import require
from stream.learners._shared.sequential import Penalized


@dataclass
class Si(Penalized):
    """Train shared weights, held near where earlier tasks left them by their importance."""

    strength: float = 1000.0
    xi: float = 0.1

    def __post_init__(self) -> None:
        """Refuse a division by 0."""
        super().__post_init__()
        require(self.xi > 0, f"learner.xi must be positive, got {self.xi}")

    def begin_task(self, task: Task) -> None:
        """Start a new path."""
        super().begin_task(task)
        shared = self.shared_parameters()
        self._start = {name: p.detach().clone() for name, p in shared.items()}
        self._before = {name: p.detach().clone() for name, p in shared.items()}
        self._path = {name: torch.zeros_like(p) for name, p in shared.items()}

    def after_backward(self) -> None:
        """Note the task's gradient, then add the penalty's."""
        shared = self.shared_parameters()
        self._gradient = {n: p.grad.clone() for n, p in shared.items() if p.grad is not None}
        if self.strength:
            self._penalty.add_gradient(shared, 2 * self.strength)

    def after_step(self, batch: Batch) -> None:
        """Go on along the path."""
        del batch
        with torch.no_grad():
            for name, parameter in self.shared_parameters().items():
                if name in self._gradient:
                    moved = parameter - self._before[name]
                    self._path[name].addcmul_(self._gradient[name], moved, value=-1)
                    self._before[name].copy_(parameter)

    def end_task(self, task: Task) -> None:
        """Turn the path into importance."""
        super().end_task(task)
        shared = self.shared_parameters()
        importance = {
            name: (self._path[name] / ((p.detach() - self._start[name]) ** 2 + self.xi)).clamp(0)
            for name, p in shared.items()
        }
        self._penalty.replace(shared, importance, decay=1.0)

    def running_state(self) -> dict[str, torch.Tensor]:
        """Return the path so far, and where it started."""
        path = {f"path.{name}": tensor for name, tensor in self._path.items()}
        return path | {f"start.{name}": tensor for name, tensor in self._start.items()}

    def restore_running(self, running: Mapping[str, torch.Tensor]) -> None:
        """Take the path; the weights stand at its end, the anchor at its start."""
        for name, parameter in self.shared_parameters().items():
            self._path[name] = running[f"path.{name}"]
            self._start[name] = running[f"start.{name}"]
            self._before[name] = parameter.detach().clone()
        self._penalty.move_anchor({name: self._start[name] for name in self._penalty.anchor})
