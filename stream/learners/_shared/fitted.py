"""What `majority` and `tfidf` share: a task is fitted at once, and the encoder is not run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.data.batches import Batch
from stream.data.task import Task
from stream.errors import require, require_effect
from stream.learners.base import Learner
from stream.learners.workload import Workload
from stream.models.heads import TaskModel

Tensors = dict[str, torch.Tensor]


@dataclass
class Fitted(Learner):
    """A learner without training steps: `fitted` returns what serves the task, all its own."""

    parameter_isolation: ClassVar[bool] = True
    seeded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse learning rates: there is nothing that they could change."""
        super().__post_init__()
        otherwise = f"with learner={self.name}: it has no training steps"
        for name in ("lr", "head_lr"):
            require_effect(self, f"learner.{name}", used=False, otherwise=otherwise)

    @property
    def plain_steps(self) -> bool:
        """Never: there are none to capture."""
        return False

    def fitted(self, task: Task) -> Tensors:
        """Return the tensors that serve ``task``, from its training rows, on the CPU."""
        raise NotImplementedError

    def logits(self, state: Tensors, task: Task, batch: Batch) -> torch.Tensor:
        """Return the logits [B, K] of a batch of ``task``, float32."""
        raise NotImplementedError

    def trains(self, name: str) -> bool:
        """Nothing of the encoder."""
        del name
        return False

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Start with nothing fitted.

        Raises:
            UserError: a span task, which has no label that could be counted.
        """
        spans = [task.name for task in tasks if task.is_span]
        require(not spans, f"learner {self.name} cannot learn where answers stand: {spans}")
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)
        self._states: dict[str, Tensors] = {}
        self._served: Task | None = None

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return no work for the training loop."""
        del task, training
        return Workload(0, 0, 0)

    def num_trained(self, task: Task) -> int:
        """Return how many numbers were fitted."""
        tensors = self._states[task.name].values()
        return sum(tensor.numel() for tensor in tensors if tensor.is_floating_point())

    def begin_task(self, task: Task) -> None:
        """Add no head."""

    def end_task(self, task: Task) -> None:
        """Fit the task."""
        self._states[task.name] = self.fitted(task)
        self.learned.append(task)

    @contextmanager
    def serving(self, task: Task) -> Iterator[None]:
        """Serve ``task`` inside the block."""
        before, self._served = self._served, task
        try:
            yield
        finally:
            self._served = before

    def predict(self, batch: Batch) -> list[torch.Tensor]:
        """Return the logits [B, K]; all 0 (or the middle of the scores) before it was fitted."""
        task = self._served
        assert task is not None, "predict is called inside `serving`"
        if task.name in self._states:
            return [self.logits(self._states[task.name], task, batch)]
        middle = sum(task.spec.score_range) / 2 if task.spec.score_range else 0.0
        return [torch.full((len(batch), task.num_outputs), middle)]

    def served_state(self, task: str) -> Tensors:
        """Return the fitted tensors of a task.

        Raises:
            KeyError: ``task`` was not learned.
        """
        if task not in self._states:
            raise KeyError(f"task {task!r} was not learned")
        return {f"{task}.{name}": tensor for name, tensor in self._states[task].items()}

    def owned_state(self, task: str) -> Tensors:
        """Return the fitted tensors of a task: there are no others."""
        return self._states[task]

    def adopt(self, task: Task, owned: Mapping[str, torch.Tensor]) -> None:
        """Take the fitted tensors of a task."""
        self._states[task.name] = dict(owned)
        self.learned.append(task)

    def training_state(self) -> Tensors:
        """Return nothing: not even the encoder is kept."""
        return {}
