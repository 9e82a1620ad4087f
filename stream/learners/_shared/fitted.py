"""What `majority` and `tfidf` share: a task is fitted at once, and the encoder is not run."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.config.setting import POSITIVE, setting
from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners.base import Learner, Tags, Tensors
from stream.learners.workload import Workload

NO_STEPS = "with learner={0.name}, which makes no training steps"


@dataclass
class Fitted(Learner):
    """A learner without training steps: `fitted` returns what serves the task, all its own."""

    lr: float = setting(5e-5, POSITIVE, idle=NO_STEPS)
    head_lr: float | None = setting(None, POSITIVE, idle=NO_STEPS)

    tags: ClassVar[Tags] = Tags(
        parameter_isolation=True,
        is_reference=True,
        seeded=False,
        uses_encoder=False,
        makes_steps=False,
        learns_spans=False,
    )

    def fitted(self, task: Task) -> Tensors:
        """Return the tensors that serve ``task``, from its training rows, on the CPU."""
        raise NotImplementedError

    def logits(self, state: Tensors, task: Task, batch: Batch) -> torch.Tensor:
        """Return the logits [B, K] of a batch of ``task``, float32.

        Args:
            state: what `fitted` returned.
            task: the task.
            batch: of this task alone.
        """
        raise NotImplementedError

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return no work for the training loop."""
        return Workload(0, 0, 0)

    def end_task(self, task: Task) -> None:
        """Fit the task."""
        self.task_tensors[task.name] = self.fitted(task)

    def predict(self, batch: Batch) -> list[torch.Tensor]:
        """Return the logits [B, K]; all 0 (or the middle of the scores) before it was fitted."""
        (part,) = batch.parts
        task = part.task
        if task.name in self.task_tensors:
            return [self.logits(self.task_tensors[task.name], task, batch)]
        middle = sum(task.spec.score_range) / 2 if task.spec.score_range else 0.0
        return [torch.full((len(batch), task.num_outputs), middle)]
