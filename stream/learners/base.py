"""The learner: a dataclass whose fields are its hyperparameters, and few hooks with defaults.

A constructor stores hyperparameters and does nothing else; state appears in `begin_stream`. The
default hooks describe plain training of whatever `trains` names, with one head a task.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.data.batches import Batch, collate, training_rows
from stream.data.task import Task
from stream.errors import require
from stream.learners.keeping import Keeping
from stream.learners.workload import Epoch, Workload, planned_work
from stream.models.heads import TaskModel
from stream.models.losses import batch_loss
from stream.models.task_parameters import TaskParameters


@dataclass
class Learner(Keeping):
    """What the orchestrator and the training loop ask of a method.

    State after `begin_stream`: ``model``, ``bank`` (what each task owns of the encoder), ``seed``,
    ``pad_id`` and ``learned`` (the tasks so far, in order).
    """

    lr: float = 5e-5
    head_lr: float | None = None
    """Learning rate of the heads; null takes ``lr``."""

    parameter_isolation: ClassVar[bool] = False
    """Learning a task changes no byte of what serves an earlier one."""

    seeded: ClassVar[bool] = True
    """Learning draws random numbers, so that another seed gives another result."""

    is_multitask: ClassVar[bool] = False
    """Learning a task reads other tasks' training rows: a reference, not continual learning."""

    cuda_graph_safe: ClassVar[bool] = False
    """A step's hooks read the same tensors of the same shapes throughout a task, so that it can be
    captured though it has hooks; of rows that only fill a batch up they make nothing."""

    reads_past_tasks: ClassVar[bool] = False
    """What serves a task includes what earlier ones left, so that order matters to it."""

    def __post_init__(self) -> None:
        """Refuse a learning rate that cannot learn."""
        require(self.lr > 0, f"learner.lr must be positive, got {self.lr}")
        positive = self.head_lr is None or self.head_lr > 0
        require(positive, f"learner.head_lr must be positive, got {self.head_lr}")

    @property
    def name(self) -> str:
        """The method's name: that of its file."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def plain_steps(self) -> bool:
        """Whether a step is the loss of one batch and nothing else, so that it can be captured."""
        hooks = (self.loss, self.after_backward, self.after_step)
        return all(getattr(Learner, hook.__name__) is hook.__func__ for hook in hooks)

    # What a method is made of, besides `trains` and `owns`.

    def trains_head(self, name: str, task: Task) -> bool:
        """Whether learning ``task`` changes the head of the task called ``name``."""
        return name == task.name

    def first_values(self, task: Task) -> dict[str, torch.Tensor]:
        """Return the values with which ``task`` starts to learn what it owns of the encoder."""
        del task
        return self.bank.first

    # Hooks, in the order in which they are called.

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Take the model; mark what is trained and what each task owns.

        ``tasks`` are those of the stream, in order; a continual learner does not look ahead.
        """
        del tasks
        self.model, self.seed, self.pad_id = model, seed, pad_id
        self.learned: list[Task] = []
        encoder = model.encoder
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.reads(name) and self.trains(name))
        self._read = encoder.read_parameters()  # of every task after every task, so it is kept
        self.bank = TaskParameters(encoder, [name for name in self._read if self.owns(name)])

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of learning ``task``, the same whenever it is asked for."""
        return planned_work(len(task.split("train")), training)

    def passes(self, task: Task, training: TrainingConfig) -> int:
        """Return how often learning ``task`` reads its training rows."""
        return self.workload(task, training).epochs

    def begin_task(self, task: Task) -> None:
        """Add the task's head and give the task its first values."""
        now = self.model.encoder.read_parameters()
        assert self._read.keys() == now.keys(), "modules are added before `begin_stream`"
        self.model.add_head(task)
        for name, head in self.model.heads.items():
            head.requires_grad_(self.trains_head(name, task))
        self.bank.start(task.name, self.first_values(task))

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        for rows in training_rows(task, epoch.batch_size, self.seed, epoch.index):
            yield collate([(task, task.split("train"), rows)], self.pad_id)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of one batch, a scalar."""
        return batch_loss(batch, self.model(batch))

    def after_backward(self) -> None:
        """Change gradients before they are clipped and applied."""

    def after_step(self, batch: Batch) -> None:
        """See the batch that was just learned."""

    def end_task(self, task: Task) -> None:
        """Keep what serves the task from now on."""
        self.bank.store(task.name)
        self.learned.append(task)

    @contextmanager
    def serving(self, task: Task) -> Iterator[None]:
        """Serve ``task`` inside the block, learned or not; nothing is changed afterwards."""
        self.model.add_head(task)
        if self.bank.active == task.name:
            yield
            return
        values = self.bank.values(task.name)
        with self.bank.holding(self.first_values(task) if values is None else values):
            yield

    def predict(self, batch: Batch) -> list[torch.Tensor]:
        """Return the logits [B_part, K] of each part of a batch; their tasks are being served."""
        return self.model(batch)

    @property
    def serves_together(self) -> bool:
        """Whether a batch may hold several tasks: none of them owns any of the encoder."""
        return not (self.parameter_isolation or self.bank.first)
