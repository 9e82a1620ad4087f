"""What a learner keeps: the half of `Learner` that says which tensors serve, stay and come back."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch

from stream.data.task import Task
from stream.learners._shared.replay_buffer import ReplayBuffer
from stream.models.heads import TaskModel
from stream.models.task_parameters import TaskParameters

Tensors = dict[str, torch.Tensor]
KEPT = "kept."


class Keeping:
    """ServedTasks, stored and restored state, by the names of tensors in the model."""

    parameter_isolation: ClassVar[bool]
    model: TaskModel
    bank: TaskParameters
    learned: list[Task]
    _read: Mapping[str, torch.nn.Parameter]

    # What a method says.

    def trains(self, name: str) -> bool:
        """Whether learning changes the encoder's parameter ``name``."""
        raise NotImplementedError

    def owns(self, name: str) -> bool:
        """Whether each task has its own copy of the encoder's parameter ``name``."""
        return self.parameter_isolation and self.trains(name)

    def kept_state(self) -> Tensors:
        """Return what only learning the next task needs and no rows could give again, by name."""
        return {}

    def restore_kept(self, kept: Mapping[str, torch.Tensor]) -> None:
        """Take `kept_state`, after the learned tasks are there."""

    def running_state(self) -> Tensors:
        """Return what going on within a task needs besides parameters and moments, by name."""
        return {}

    def restore_running(self, running: Mapping[str, torch.Tensor]) -> None:
        """Take `running_state`, after `begin_task`."""

    def buffer(self) -> ReplayBuffer | None:
        """Return the remembered examples, if the method keeps any."""
        return None

    # What follows from it.

    def trained_parameters(self) -> dict[str, torch.nn.Parameter]:
        """Return what the optimizer may change now, by name."""
        return {n: p for n, p in self.model.named_parameters() if p.requires_grad}

    def num_trained(self, task: Task) -> int:
        """Return how many parameters learning ``task``, the last one, could change."""
        del task
        return sum(parameter.numel() for parameter in self.trained_parameters().values())

    def served_state(self, task: str) -> Tensors:
        """Return exactly the tensors that a prediction for ``task`` reads, by name.

        Raises:
            KeyError: ``task`` was not learned.
        """
        private = self.bank.tensors(task)
        if private is None:
            raise KeyError(f"task {task!r} was not learned")
        state = {n: self.bank.base(n, p) for n, p in self._read.items()} | private
        return {**{f"encoder.{n}": t for n, t in state.items()}, **self.model.head_state(task)}

    def owned_state(self, task: str) -> Tensors:
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
        head = self.model.head_state(task.name)
        private = {n.removeprefix("encoder."): t for n, t in owned.items() if n not in head}
        if missing := head.keys() - owned.keys():
            raise KeyError(f"{sorted(missing)[0]} is missing")
        copy_named(owned, head)
        self.bank.take(task.name, private)
        self.learned.append(task)

    def shared_state(self) -> Tensors:
        """Return what learning changed and no single task owns, by its name in the model."""
        kept = {f"{KEPT}{name}": tensor for name, tensor in self.kept_state().items()}
        if self.parameter_isolation:
            return kept
        learned = {task.name for task in self.learned}
        model = {
            name: parameter
            for name, parameter in self.model.named_parameters()
            if name.startswith("encoder.") and self._is_shared(name.removeprefix("encoder."))
        }
        ahead = [name for name in self.model.heads if name not in learned]
        return (
            model | kept | {n: t for name in ahead for n, t in self.model.head_state(name).items()}
        )

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
        copy_named(shared, {n: parameters[n] for n in shared if not n.startswith(KEPT)})
        kept = {n.removeprefix(KEPT): t for n, t in shared.items() if n.startswith(KEPT)}
        self.restore_kept({name: tensor.to(self.model.device) for name, tensor in kept.items()})

    def training_state(self) -> Tensors:
        """Return what only learning the next task needs, by name.

        Here: the pretrained values of what tasks own, the parts of the encoder that no prediction
        reads, and `kept_state`. So a learner that keeps the pretrained encoder counts it whole.
        """
        encoder = self.model.encoder
        idle = {
            f"encoder.{name}": parameter
            for name, parameter in encoder.named_parameters()
            if not encoder.reads(name)
        }
        first = {f"first.{n}": t for n, t in self.bank.first.items() if n in encoder.pretrained}
        return {**idle, **first, **self.kept_state()}

    def stored_states(self, tasks: Sequence[Task]) -> list[Tensors]:
        """Return all that must be stored to serve ``tasks`` and to learn the next one."""
        return [*(self.served_state(task.name) for task in tasks), self.training_state()]


def copy_named(stored: Mapping[str, torch.Tensor], into: Mapping[str, torch.Tensor]) -> None:
    """Copy stored tensors into those of the same names, in place.

    Raises:
        ValueError: a tensor of another shape.
    """
    with torch.no_grad():
        for name, tensor in into.items():
            if tensor.shape != stored[name].shape:
                shapes = tuple(stored[name].shape), tuple(tensor.shape)
                raise ValueError(f"{name} has shape {shapes[0]}, expected {shapes[1]}")
            tensor.copy_(stored[name])
