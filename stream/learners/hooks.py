"""What a method may fill: a dataclass whose fields are its hyperparameters, and few hooks.

A method fills what differs from plain training of what it inserted into the encoder: its
hyperparameters and the members of `Hooks`, nothing else. `stream.learners.base` has what follows
from them. A constructor stores hyperparameters and does nothing else; state appears in `attach`,
which calls `setup`.

A parameter of the encoder that `trains` names is one of three (`stream.learners.ownership`):

- inside a `ByTask` container (modules by the names of tasks) it belongs to that task;
- else, with ``tags.parameter_isolation``, each task owns a copy;
- else all tasks share it.

With ``scenario=shared_head`` one head answers all tasks, and a text is served without knowing its
task: the head is shared too, and whatever serves the task learned last serves every text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.config.setting import POSITIVE, Settings, setting
from stream.data.batch import Batch
from stream.data.batching import collate, training_rows
from stream.data.task import Task
from stream.learners._shared.replay_buffer import ReplayBuffer
from stream.learners.tags import Tags
from stream.learners.workload import Epoch, Workload, planned_work
from stream.models.encoder import Encoder
from stream.models.losses import batch_loss
from stream.models.modules.active_tasks import ActiveTasks, Sources
from stream.models.task_model import TaskModel

Tensors = dict[str, torch.Tensor]


class Attached(Settings):
    """What a method has after `attach`; in no dataclass, where these would be hyperparameters."""

    model: TaskModel
    """The encoder and the heads."""
    seed: int
    """The run's."""
    pad_id: int
    """The tokenizer's padding token."""
    learned: list[Task]
    """The tasks so far, in order."""
    active: ActiveTasks
    """The tasks whose modules the encoder reads now."""
    buffer: ReplayBuffer | None
    """Stored examples: set one in `setup`, and it is filled and restored."""

    # Tensors that are no parameters are kept by putting them into one of these.
    task_tensors: dict[str, Tensors]
    """By task: they serve that task."""
    shared_tensors: Tensors
    """Learning the next task needs them."""
    fit_tensors: Tensors
    """Only going on within a task needs them; empty before `begin_task`."""


@dataclass
class Hooks(Attached):
    """What a method may fill, and what holds where it does not: plain training.

    Attributes:
        lr: the learning rate at its peak; that of the heads too, unless ``head_lr`` is set.
        head_lr: the learning rate of the heads; null takes ``lr``.
    """

    lr: float = setting(5e-5, POSITIVE)
    head_lr: float | None = setting(None, POSITIVE)

    GROUP: ClassVar[str] = "learner"
    tags: ClassVar[Tags] = Tags()
    """What kind of method it is."""

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert modules into the encoder and create state; called once, before the first task.

        `Fresh` modules are initialized afterwards: per task, from its name, or once if shared.

        Args:
            encoder: the pretrained encoder, which is also ``self.model.encoder``.
            task_names: the tasks of the stream in order, for modules by task; a continual learner
                does not look ahead otherwise.
        """

    def trains(self, name: str) -> bool:
        """Return whether learning changes the encoder's parameter ``name``.

        Here: what `setup` inserted.
        """
        return name not in self.model.encoder.pretrained

    def trains_head(self, name: str, task: Task) -> bool:
        """Return whether learning ``task`` changes the head called ``name``."""
        return name == task.head_name

    def learning_rate(self, name: str) -> float:
        """Return the learning rate at its peak of the model's parameter ``name``.

        Names are those in the model, such as ``encoder.body...`` and ``heads.cola.weight``.
        """
        own = self.head_lr if name.startswith("heads.") else None
        return own or self.lr

    def sources(self, task: str) -> Sources:
        """Return the tasks whose modules serve ``task``, itself last.

        Here: itself, and with ``tags.reads_past_tasks`` those learned before it.
        """
        names = [learned.name for learned in self.learned] if self.tags.reads_past_tasks else []
        return Sources([*(names[: names.index(task)] if task in names else names), task])

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of learning ``task``, the same whenever it is asked for."""
        return planned_work(len(task.split("train")), training)

    def begin_task(self, task: Task) -> None:
        """Prepare to learn ``task``: its head and its first values are in the model."""

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        for rows in training_rows(task, epoch.batch_size, self.seed, epoch.index):
            yield collate([(task, task.split("train"), rows)], self.pad_id)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of one batch, a scalar."""
        return batch_loss(batch, self.model(batch))

    def after_backward(self, batch: Batch) -> None:
        """Change the gradients of a batch before they are clipped and applied."""

    def after_step(self, batch: Batch) -> None:
        """See the batch that was just learned."""

    def end_task(self, task: Task) -> None:
        """Keep what learning ``task`` leaves behind; it is the last of ``learned`` now."""

    def predict(self, batch: Batch) -> list[torch.Tensor]:
        """Return the logits [B_part, K] of each part of a batch; their tasks are being served."""
        return self.model(batch)
