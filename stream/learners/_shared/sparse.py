"""What methods share that change few entries of the whole encoder for each task, and own those.

A task is learned twice: first in full, then only at the chosen places, whose difference from the
pretrained values is stored sparse (4 + 4 bytes per entry). So it takes twice the steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.config.setting import Range, setting
from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners.base import Learner, Tags
from stream.learners.workload import Epoch, Workload
from stream.models.bf16 import copy_all

CHOSEN = "chosen."


@dataclass
class Sparse(Learner):
    """Change the ``fraction`` of the encoder's entries that `importance` ranks highest.

    Attributes:
        fraction: the fraction of the encoder's weights that a task may change.
    """

    lr: float = 5e-5
    head_lr: float | None = 2e-3
    fraction: float = setting(0.05, Range(0, 1, above=True))

    tags: ClassVar[Tags] = Tags(parameter_isolation=True, sparse_differences=True)

    def importance(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return how much each entry of a parameter matters, of the shape of its ``change``."""
        raise NotImplementedError

    def second_start(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return the change from which the chosen entries are learned again."""
        raise NotImplementedError

    def trains(self, name: str) -> bool:
        """Return true: everything is trained."""
        return True

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of learning ``task`` twice."""
        return super().workload(task, training).twice()

    @property
    def chosen(self) -> dict[str, torch.Tensor]:
        """The chosen entries of each parameter as masks; empty while every entry is free."""
        return {name.removeprefix(CHOSEN): mask for name, mask in self.fit_tensors.items()}

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch; before the second half, choose."""
        if epoch.is_late and not self.fit_tensors:
            self._choose()
        yield from super().training_batches(task, epoch)

    def changes(self) -> dict[str, torch.Tensor]:
        """Return how far each parameter of the encoder is from its first value."""
        first = self.task_parameters.first
        return {name: p.detach() - first[name] for name, p in self.read_parameters.items()}

    def _choose(self) -> None:
        """Choose the entries that matter most, all tensors together, and start them again."""
        changes = self.changes()
        ranks = {name: self.importance(name, change) for name, change in changes.items()}
        flat = torch.cat([rank.reshape(-1) for rank in ranks.values()])
        best = flat.topk(max(round(self.fraction * len(flat)), 1)).indices
        chosen = torch.zeros(len(flat), dtype=torch.bool, device=flat.device)
        chosen[best] = True
        pieces = chosen.split([rank.numel() for rank in ranks.values()])
        with torch.no_grad():
            for (name, change), piece in zip(changes.items(), pieces, strict=True):
                mask = piece.view(change.shape)
                self.fit_tensors[f"{CHOSEN}{name}"] = mask
                start = self.second_start(name, change) * mask
                self.read_parameters[name].copy_(self.task_parameters.first[name] + start)

    def after_step(self, batch: Batch) -> None:
        """Take back what moved elsewhere: old moments and decay do, without any gradient."""
        with torch.no_grad():
            parameters = [self.read_parameters[name] for name in self.chosen]
            first = [self.task_parameters.first[name] for name in self.chosen]
            chosen = zip(self.chosen.values(), parameters, first, strict=True)
            copy_all(parameters, [torch.where(*each) for each in chosen])

    def after_backward(self, batch: Batch) -> None:
        """Keep the gradients of the chosen entries alone."""
        for name, chosen in self.chosen.items():
            gradient = self.read_parameters[name].grad
            if gradient is not None:
                gradient.mul_(chosen)
