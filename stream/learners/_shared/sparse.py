"""What methods share that change few entries of the whole encoder for each task, and own those.

A task is learned twice: first in full, then only at the chosen places, whose difference from the
pretrained values is stored sparse (4 + 4 bytes an entry). So it takes twice the steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.data.batches import Batch
from stream.data.task import Task
from stream.errors import require
from stream.learners.base import Learner
from stream.learners.workload import Epoch, Workload
from stream.models.heads import TaskModel
from stream.models.sparse_parameters import SparseTaskParameters


@dataclass
class Sparse(Learner):
    """Change the ``fraction`` of the encoder's entries that `importance` ranks highest."""

    lr: float = 5e-5
    head_lr: float | None = 2e-3
    fraction: float = 0.05

    parameter_isolation: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse to change nothing, or more than there is."""
        super().__post_init__()
        require(0 < self.fraction <= 1, f"learner.fraction must be in (0, 1], got {self.fraction}")

    def importance(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return how much each entry of a parameter matters, of the shape of its ``change``."""
        raise NotImplementedError

    def second_start(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return the change from which the chosen entries are learned again."""
        raise NotImplementedError

    def trains(self, name: str) -> bool:
        """Everything."""
        del name
        return True

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Keep what tasks own as differences."""
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)
        self.bank = SparseTaskParameters(model.encoder, self._read)
        self._chosen: dict[str, torch.Tensor] = {}

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of learning ``task`` twice."""
        return super().workload(task, training).twice()

    def begin_task(self, task: Task) -> None:
        """Start with every entry free."""
        super().begin_task(task)
        self._chosen = {}

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch; before the second half, choose."""
        if epoch.is_late and not self._chosen:
            self._choose()
        yield from super().training_batches(task, epoch)

    def changes(self) -> dict[str, torch.Tensor]:
        """Return how far each parameter of the encoder is from its first value."""
        return {name: p.detach() - self.bank.first[name] for name, p in self._read.items()}

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
                self._chosen[name] = piece.view(change.shape)
                start = self.second_start(name, change) * self._chosen[name]
                self._read[name].copy_(self.bank.first[name] + start)

    def after_step(self, batch: Batch) -> None:
        """Take back what moved elsewhere: old moments and decay do, without any gradient."""
        del batch
        with torch.no_grad():
            for name, chosen in self._chosen.items():
                parameter = self._read[name]
                parameter.copy_(torch.where(chosen, parameter, self.bank.first[name]))

    def after_backward(self) -> None:
        """Keep the gradients of the chosen entries alone."""
        for name, chosen in self._chosen.items():
            gradient = self._read[name].grad
            if gradient is not None:
                gradient.mul_(chosen)

    def num_trained(self, task: Task) -> int:
        """Return the entries that were changed, and the head's."""
        private = self.bank.tensors(task.name) or {}
        changed = sum(t.numel() for name, t in private.items() if name.endswith(".values"))
        return changed + sum(t.numel() for t in self.model.head_state(task.name).values())

    def running_state(self) -> dict[str, torch.Tensor]:
        """Return the choice, once it was made."""
        return {f"chosen.{name}": chosen for name, chosen in self._chosen.items()}

    def restore_running(self, running: Mapping[str, torch.Tensor]) -> None:
        """Take the choice."""
        self._chosen = {
            name.removeprefix("chosen."): tensor.bool()
            for name, tensor in running.items()
            if name.startswith("chosen.")
        }
