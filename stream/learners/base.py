"""The learner: a dataclass whose fields are its hyperparameters, and few hooks with defaults.

A constructor stores hyperparameters and does nothing else; state appears in `begin_stream`. The
default hooks describe plain training of whatever `trains` names, with one head a task.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config import TrainingConfig
from stream.errors import require
from stream.memory import ReplayMemory
from stream.models.bank import TaskBank
from stream.models.heads import TaskModel, batch_loss
from stream.schedule import Epoch, Workload, planned_work
from stream.tasks.batches import Batch, collate, training_rows
from stream.tasks.task import Task


@dataclass
class Learner:
    """What the orchestrator and the training loop ask of a method.

    State after `begin_stream`: ``model``, ``bank`` (what each task owns of the encoder), ``seed``,
    ``pad_id`` and ``learned`` (the tasks so far, in order).
    """

    lr: float = 5e-5
    head_lr: float | None = None
    """Learning rate of the heads; null takes ``lr``."""

    promises_memory: ClassVar[bool] = False
    """Learning a task changes no byte of what serves an earlier one."""

    seeded: ClassVar[bool] = True
    """Learning draws random numbers, so that another seed gives another result."""

    sees_all: ClassVar[bool] = False
    """Learning a task reads other tasks' training rows: a reference, not continual learning."""

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

    # What a method is made of.

    def trains(self, name: str) -> bool:
        """Whether learning changes the encoder's parameter ``name``."""
        raise NotImplementedError

    def owns(self, name: str) -> bool:
        """Whether each task has its own copy of the encoder's parameter ``name``."""
        return self.promises_memory and self.trains(name)

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
        self.bank = TaskBank(encoder, [name for name in self._read if self.owns(name)])

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of learning ``task``, the same whenever it is asked for."""
        return planned_work(len(task.split("train")), training)

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
        values = self.bank.tensors(task.name)
        with self.bank.holding(self.first_values(task) if values is None else values):
            yield

    def predict(self, batch: Batch) -> list[torch.Tensor]:
        """Return the logits [B_part, K] of each part of a batch; their tasks are being served."""
        return self.model(batch)

    @property
    def serves_together(self) -> bool:
        """Whether a batch may hold several tasks: none of them owns any of the encoder."""
        return not (self.promises_memory or self.bank.first)

    # What is kept.

    def trained_parameters(self) -> dict[str, torch.nn.Parameter]:
        """Return what the optimizer may change now, by name."""
        return {n: p for n, p in self.model.named_parameters() if p.requires_grad}

    def served_state(self, task: str) -> dict[str, torch.Tensor]:
        """Return exactly the tensors that a prediction for ``task`` reads, by name.

        Raises:
            KeyError: ``task`` was not learned.
        """
        private = self.bank.tensors(task)
        if private is None:
            raise KeyError(f"task {task!r} was not learned")
        state = {f"encoder.{name}": private.get(name, p) for name, p in self._read.items()}
        return {**state, **self.model.head_state(task)}

    def owned_state(self, task: str) -> dict[str, torch.Tensor]:
        """Return the part of `served_state` that is this task's alone, by name."""
        private = self.bank.tensors(task) or {}
        owned = {f"encoder.{name}": tensor for name, tensor in private.items()}
        return {**owned, **self.model.head_state(task)}

    def restore(self, task: Task, owned: Mapping[str, torch.Tensor]) -> None:
        """Go on after a task that was learned before: `adopt` it, and whatever else is kept."""
        self.adopt(task, owned)

    def adopt(self, task: Task, owned: Mapping[str, torch.Tensor]) -> None:
        """Take the `owned_state` of a learned task, to serve it; reads none of its rows.

        Raises:
            KeyError, ValueError: a tensor is missing or has another shape.
        """
        self.model.add_head(task)
        self.bank.start(task.name, self.bank.first)
        working = self.owned_state(task.name)
        if working.keys() != owned.keys():
            odd = sorted(working.keys() ^ owned.keys())
            raise KeyError(f"{len(odd)} names differ, the first is {odd[0]}")
        _copy(owned, working)
        self.bank.store(task.name)
        self.learned.append(task)

    def shared_state(self) -> dict[str, torch.Tensor]:
        """Return what learning changed and no single task owns, by its name in the model."""
        if self.promises_memory:
            return {}
        learned = {task.name for task in self.learned}
        model = {
            name: parameter
            for name, parameter in self.model.named_parameters()
            if name.startswith("encoder.") and self._is_shared(name.removeprefix("encoder."))
        }
        ahead = [name for name in self.model.heads if name not in learned]
        return model | {n: t for name in ahead for n, t in self.model.head_state(name).items()}

    def _is_shared(self, name: str) -> bool:
        """Whether learning changes the encoder's parameter ``name`` for all tasks."""
        return self.model.encoder.reads(name) and self.trains(name) and not self.owns(name)

    def restore_shared(self, tasks: Sequence[Task], shared: Mapping[str, torch.Tensor]) -> None:
        """Take the `shared_state` of a stream of ``tasks``, after its learned tasks.

        Raises:
            KeyError, ValueError: a tensor that is not there, or has another shape.
        """
        for task in tasks:
            if f"heads.{task.name}.weight" in shared:
                self.model.add_head(task)
        parameters = dict(self.model.named_parameters())
        _copy(shared, {name: parameters[name] for name in shared})

    def training_state(self) -> dict[str, torch.Tensor]:
        """Return what only learning the next task needs, by name.

        Here: the pretrained values of what tasks own, and the parts of the encoder that no
        prediction reads. So a learner that keeps the pretrained encoder counts it whole.
        """
        encoder = self.model.encoder
        idle = {
            f"encoder.{name}": parameter
            for name, parameter in encoder.named_parameters()
            if not encoder.reads(name)
        }
        first = {f"first.{n}": t for n, t in self.bank.first.items() if n in encoder.pretrained}
        return {**idle, **first}

    def stored_states(self, tasks: Sequence[Task]) -> list[dict[str, torch.Tensor]]:
        """Return all that must be stored to serve ``tasks`` and to learn the next one."""
        return [*(self.served_state(task.name) for task in tasks), self.training_state()]

    def buffer(self) -> ReplayMemory | None:
        """Return the remembered examples, if the method keeps any."""
        return None


def _copy(stored: Mapping[str, torch.Tensor], into: Mapping[str, torch.Tensor]) -> None:
    """Copy stored tensors into those of the same names, in place."""
    with torch.no_grad():
        for name, tensor in into.items():
            if tensor.shape != stored[name].shape:
                shapes = tuple(stored[name].shape), tuple(tensor.shape)
                raise ValueError(f"{name} has shape {shapes[0]}, expected {shapes[1]}")
            tensor.copy_(stored[name])
