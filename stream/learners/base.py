"""A learner: what follows from the few things that a method says (`stream.learners.hooks`).

First its life on a model: `Learner.attach`, then `start` and `finish` around the learning of each
task, and `serving` it. Then its state by name: what serves a task, what a checkpoint keeps of a
task, of all tasks, and within a task, and what is counted. Both are about the same few things, so
they are one class: what tasks own of the encoder (`stream.learners.ownership`), heads, and tensors
of the method's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from stream.config.shared_head import require_shares_head
from stream.data.task import SHARED_HEAD, Task
from stream.errors import require
from stream.learners.hooks import Hooks, Tensors
from stream.learners.ownership import Ownership
from stream.learners.tags import Tags
from stream.models.modules.active_tasks import ActiveTasks, Sources
from stream.models.modules.fresh import draw_into, drawn_values, fresh_modules
from stream.models.sparse_parameters import SparseTaskParameters
from stream.models.storage import store_unchanged
from stream.models.task_model import TaskModel
from stream.models.task_parameters import TaskParameters, copy_named

__all__ = ["BUFFER", "Learner", "Tags", "Tensors"]  # with what the file of a method begins with

SHARED = "kept."  # before the names of `shared_tensors` in a checkpoint
BUFFER = "buffer."  # before the names of what says which rows are stored, where that must be said


@dataclass
class Learner(Hooks):
    """A method, with all that follows from what it says (`Hooks`)."""

    name: ClassVar[str] = ""
    """The method's name: that of its file, or of its entry point."""

    def __init_subclass__(cls) -> None:
        """Name the method after its file."""
        super().__init_subclass__()
        cls.name = cls.__module__.rpartition(".")[2]

    def attach(self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int) -> None:
        """Take the model for a stream of ``tasks``, of which nothing is learned yet.

        Raises:
            UserError: a task of a kind that the method cannot learn, an encoder that it cannot
                work with, or settings of the encoder that have no effect on it.
        """
        spans = [task.name for task in tasks if task.is_span]
        require(
            self.tags.learns_spans or not spans,
            f"learner {self.name} cannot learn where answers stand: {', '.join(spans)}",
        )
        self.shares_head = any(task.shared is not None for task in tasks)
        """Whether one head answers all tasks."""
        require_sharing(self, wanted=self.shares_head)
        self.model, self.seed, self.pad_id = model, seed, pad_id
        self.learned = []
        self.active = ActiveTasks()
        self.buffer = None
        self.task_tensors = {}
        self.shared_tensors = {}
        self.fit_tensors = {}
        self._stream = tuple(tasks)
        self._newest: str | None = None  # the task that was started or loaded last
        self._insert([task.name for task in tasks])

    def _insert(self, tasks: Sequence[str]) -> None:
        """Have the method insert its modules; draw them, mark what is trained and what tasks own.

        Raises:
            UserError: as `attach`, of the encoder.
        """
        model, encoder = self.model, self.model.encoder
        self.setup(encoder, tasks)
        encoder.to(model.device)
        self._fresh = fresh_modules(encoder)
        for name in sorted(filter(None, self._fresh)):
            draw_into(self._fresh[name], self.seed, name)
        if not self.tags.parameter_isolation:
            draw_into(self._fresh[None], self.seed)
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.reads(name) and self.trains(name))
        trained = {name for name, p in encoder.named_parameters() if p.requires_grad}
        self.ownership = Ownership.of(encoder, self.tags)
        store_unchanged(
            encoder, encoder.pretrained - trained, storage=model.storage, learner=self.name
        )
        require(
            bool(trained) or not encoder.recomputes,
            f"training.gradient_checkpointing=true has no effect with learner={self.name}, which "
            "trains nothing in the encoder",
        )
        self.read_parameters = encoder.read_parameters()
        kind = SparseTaskParameters if self.tags.sparse_differences else TaskParameters
        self.task_parameters: TaskParameters = kind(encoder, self.ownership.copied)

    @property
    def stream_tasks(self) -> Sequence[Task]:
        """The tasks of the stream with their rows, for methods that read all at once."""
        assert self.tags.is_multitask, f"{self.name} is no multi-task method: it sees task by task"
        return self._stream

    def shared_parameters(self) -> dict[str, torch.nn.Parameter]:
        """Return what all tasks share and learning changes, by its name in the encoder.

        A head that all share is among them by its name in the model: the published
        class-incremental forms of EWC, SI and A-GEM treat the classifier as any other weight.
        """
        found = self._shared_of_encoder()
        if SHARED_HEAD in self.model.heads and self.shares_head:
            head = self.model.head(SHARED_HEAD)
            found |= {f"heads.{SHARED_HEAD}.{name}": p for name, p in head.named_parameters()}
        return found

    def _shared_of_encoder(self) -> dict[str, torch.nn.Parameter]:
        """Return the encoder's parameters that all tasks share and learning changes, by name."""
        named = self.model.encoder.named_parameters()
        return {name: parameter for name, parameter in named if name in self.ownership.shared}

    @property
    def has_task_modules(self) -> bool:
        """Whether the encoder holds modules by the names of tasks."""
        return bool(self.ownership.task_of)

    @property
    def serves_together(self) -> bool:
        """Whether a batch may hold several tasks: none of them owns any of the encoder."""
        owns = self.tags.parameter_isolation or self.task_parameters.first
        return not (owns or self.has_task_modules)

    def overrides(self, hook: str) -> bool:
        """Return whether the method fills a hook."""
        return getattr(type(self), hook) is not getattr(Learner, hook)

    # Learning and serving a task.

    def start(self, task: Task) -> None:
        """Get ready to learn ``task``: its head, first values, what is trained; `begin_task`."""
        self.fit_tensors.clear()
        self._newest = task.name
        if self.tags.uses_encoder:
            now = self.model.encoder.read_parameters()
            assert self.read_parameters.keys() == now.keys(), "modules are inserted in `setup`"
            self._take_head(task)
            self.mark_trained(task)
            self.task_parameters.start(task.name, self.initial_values(task.name))
            self.active.show(self.sources(task.name))
        self.begin_task(task)

    def _take_head(self, task: Task) -> None:
        """Have the head that answers ``task`` in the model; isolated ones alone need no other."""
        self.model.add_head(task)
        if self.tags.parameter_isolation:
            self.model.rest_heads(but=task.head_name)

    def mark_trained(self, task: Task) -> None:
        """Let learning ``task`` change the heads and the modules by task that are its own."""
        new = self._stream if self.tags.is_multitask else (task,)
        self.model.learning = frozenset(each.name for each in new)
        for name, head in self.model.heads.items():
            head.requires_grad_(self.trains_head(name, task))
        for name, owner in self.ownership.task_of.items():
            own = owner == task.name or self.tags.is_multitask
            self.read_parameters[name].requires_grad_(own and self.trains(name))

    def initial_values(self, task: str) -> Tensors:
        """Return the values with which ``task`` starts to learn what it owns of the encoder.

        Those before the first task; `Fresh` modules are drawn for the task's name.
        """
        if not self.tags.parameter_isolation:
            return self.task_parameters.first
        return {**self.task_parameters.first, **drawn_values(self._fresh[None], self.seed, task)}

    def finish(self, task: Task) -> None:
        """Keep what serves ``task`` from now on; `end_task`."""
        if self.tags.uses_encoder:
            self.task_parameters.store(task.name)
        self.learned.append(task)
        if self.buffer is not None:
            self.buffer.add(task)
        self.end_task(task)

    @contextmanager
    def serving(self, task: Task) -> Iterator[None]:
        """Serve ``task`` inside the block, learned or not; nothing is changed afterwards."""
        if not self.tags.uses_encoder:
            yield
            return
        with self.model.headed(task), self.active.holding(self._serving_sources(task.name)):
            if self.task_parameters.active == task.name:
                yield
                return
            values = self.task_parameters.values(task.name)
            first = self.initial_values(task.name) if values is None else values
            with self.task_parameters.holding(first):
                yield

    def _serving_sources(self, task: str) -> Sources:
        """Return the tasks whose modules serve ``task``; of a shared head those of the newest."""
        return self.sources(self._newest if self.shares_head and self._newest else task)

    def _head_of(self, task: str) -> str:
        """Return the name of the head that answers the task called ``task``."""
        return SHARED_HEAD if self.shares_head else task

    def trained_parameters(self) -> dict[str, torch.nn.Parameter]:
        """Return what the optimizer may change now, by name."""
        return {n: p for n, p in self.model.named_parameters() if p.requires_grad}

    def num_trained(self, task: Task) -> int:
        """Return how many parameters learning ``task``, the last one, could change."""
        own = self.task_state(task.name) if self.tags.parameter_isolation else {}
        trained = own or self.trained_parameters()
        return sum(tensor.numel() for tensor in trained.values() if tensor.is_floating_point())

    # State: what serves a task, and what a checkpoint keeps of a task, of all, and within a task.

    def served_state(self, task: str) -> Tensors:
        """Return exactly the tensors that a prediction for ``task`` reads, by name.

        Raises:
            KeyError: ``task`` was not learned.
        """
        extra = {f"{task}.{name}": tensor for name, tensor in self._extra(task).items()}
        if not self.tags.uses_encoder:
            return extra
        own = self.task_parameters.tensors(task)
        if own is None:
            raise KeyError(f"task {task!r} was not learned")
        read = self.ownership.modules_of(*self._serving_sources(task).names)
        modules = {name: self.read_parameters[name] for name in read}
        named = {f"encoder.{name}": tensor for name, tensor in {**modules, **own}.items()}
        head = self.model.head_state(self._head_of(task))
        return {**self.common_state(task), **named, **head, **extra}

    def common_state(self, task: str) -> Tensors:
        """Return the part of `served_state` that is of the encoder, and of no task alone."""
        del task  # what serves one task may be of another encoder than what serves the next
        if not self.tags.uses_encoder:
            return {}
        task_of = self.ownership.task_of
        shared = {n: p for n, p in self.read_parameters.items() if n not in task_of}
        return {f"encoder.{n}": t for n, t in self.task_parameters.common(shared).items()}

    def _extra(self, task: str) -> Tensors:
        """Return the task's ``task_tensors``; methods without the encoder have nothing else."""
        if task not in self.task_tensors and not self.tags.uses_encoder:
            raise KeyError(f"task {task!r} was not learned")
        return self.task_tensors.get(task, {})

    def task_state(self, task: str) -> Tensors:
        """Return the part of `served_state` that is this task's alone, by name."""
        extra = self._extra(task)
        if not self.tags.uses_encoder:
            return dict(extra)
        own = {**self.task_modules(task), **(self.task_parameters.tensors(task) or {})}
        named = {f"encoder.{name}": tensor for name, tensor in own.items()}
        return {**named, **self._own_head(task), **extra}

    def _own_head(self, task: str) -> Tensors:
        """Return the tensors of the task's head, if that is the task's alone."""
        return {} if self.shares_head else self.model.head_state(task)

    def task_modules(self, task: str) -> dict[str, torch.nn.Parameter]:
        """Return the parameters of the modules of ``task``; those of multi-task ones are shared."""
        if self.tags.is_multitask:
            return {}
        return {name: self.read_parameters[name] for name in self.ownership.modules_of(task)}

    def load_task_state(
        self, task: Task, tensors: Mapping[str, torch.Tensor], *, serve_only: bool = False
    ) -> None:
        """Take the `task_state` of a learned task.

        Args:
            task: the task.
            tensors: what `task_state` returned.
            serve_only: its rows are not there, and nothing more will be learned.

        Raises:
            KeyError, ValueError: a tensor is missing or has another shape.
        """
        left = dict(tensors)
        if self.tags.uses_encoder:
            if not self.shares_head:
                self._take_head(task)
            modules = {f"encoder.{name}": p for name, p in self.task_modules(task.name).items()}
            whole = {**modules, **self._own_head(task.name)}
            if missing := sorted(whole.keys() - left.keys()):
                raise KeyError(f"{missing[0]} is missing")
            copy_named({name: left.pop(name) for name in whole}, whole)
            own = {name for name in left if name.startswith("encoder.")}
            values = {name.removeprefix("encoder."): left.pop(name) for name in own}
            self.task_parameters.load(task.name, values)
        if left:
            device = self.model.device if self.tags.uses_encoder else torch.device("cpu")
            self.task_tensors[task.name] = {name: t.to(device) for name, t in left.items()}
        self.learned.append(task)
        self._newest = task.name
        if self.buffer is not None and not serve_only:
            self.buffer.restore(task)

    def forget(self, task: Task) -> None:
        """Be again as if ``task``, which was learned or loaded, had never been met.

        For workers, which keep no task; so the learner's tasks are isolated.
        """
        assert self.tags.parameter_isolation, f"tasks of {self.name} share what they learn"
        self.learned = [other for other in self.learned if other.name != task.name]
        self.task_tensors.pop(task.name, None)
        if not self.tags.uses_encoder:
            return
        self.model.forget_head(task.name)
        self.task_parameters.forget(task.name)
        if task.name in self.ownership.task_of.values():
            draw_into(self._fresh[task.name], self.seed, task.name)

    def shared_state(self) -> Tensors:
        """Return what learning changed and no single task owns, by its name in the model."""
        kept = {f"{SHARED}{name}": tensor for name, tensor in self.shared_tensors.items()}
        if self.buffer is not None:
            kept |= {f"{BUFFER}{name}": rows for name, rows in self.buffer.state().items()}
        if self.tags.parameter_isolation:
            return kept
        model = {f"encoder.{name}": p for name, p in self._shared_of_encoder().items()}
        learned = {task.name for task in self.learned}
        ahead = [name for name in self.model.heads if name not in learned]
        heads = {n: t for name in ahead for n, t in self.model.head_state(name).items()}
        return {**model, **kept, **heads}

    def load_shared_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take the `shared_state`, after the learned tasks.

        Raises:
            KeyError, ValueError: a tensor that is not there, or has another shape.
        """
        for task in self._stream:
            rows = tensors.get(f"heads.{task.head_name}.weight")
            if rows is not None and task.shared is not None:
                self.model.meet(task.shared, len(rows))
            elif rows is not None:
                self.model.add_head(task)
        parameters = dict(self.model.named_parameters())
        named = [name for name in tensors if not name.startswith((SHARED, BUFFER))]
        copy_named(tensors, {name: parameters[name] for name in named})
        if self.buffer is not None:
            rows = {n.removeprefix(BUFFER): t for n, t in tensors.items() if n.startswith(BUFFER)}
            self.buffer.load(rows)
        kept = {n.removeprefix(SHARED): t for n, t in tensors.items() if n.startswith(SHARED)}
        self.shared_tensors.clear()
        self.shared_tensors.update({name: t.to(self.model.device) for name, t in kept.items()})

    def fit_state(self) -> Tensors:
        """Return what going on within a task needs besides parameters and moments, by name."""
        return dict(self.fit_tensors)

    def load_fit_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take the `fit_state`, after `start`; tensors that are there already keep their place.

        Raises:
            UserError: a tensor of `begin_task` is missing.
        """
        missing = sorted(self.fit_tensors.keys() - tensors.keys())
        require(
            not missing,
            f"the checkpoint lacks {', '.join(missing[:1])} of learner {self.name}: another "
            "version of the program wrote it",
        )
        copy_named(tensors, self.fit_tensors)
        new = {name: t for name, t in tensors.items() if name not in self.fit_tensors}
        self.fit_tensors.update({name: t.to(self.model.device) for name, t in new.items()})

    def stored_states(self, tasks: Sequence[Task]) -> list[Tensors]:
        """Return all that must be stored to serve ``tasks`` and to learn the next one."""
        return [*(self.served_state(task.name) for task in tasks), self._learning_state()]

    def _learning_state(self) -> Tensors:
        """Return what only learning the next task needs, by name.

        The pretrained values of what tasks own, the parts of the encoder that no prediction reads,
        and ``shared_tensors``.
        """
        if not self.tags.uses_encoder:
            return dict(self.shared_tensors)
        encoder = self.model.encoder
        idle = {
            f"encoder.{name}": parameter
            for name, parameter in encoder.named_parameters()
            if not encoder.reads(name)
        }
        first = self.task_parameters.first if self.tags.keeps_pretrained else {}
        pretrained = {f"first.{n}": t for n, t in first.items() if n in encoder.pretrained}
        return {**idle, **pretrained, **self.shared_tensors}


def require_sharing(learner: Learner, *, wanted: bool) -> None:
    """Let a learner share one head between tasks, or not; nothing keeps logits where it does.

    Raises:
        UserError: it cannot.
    """
    vars(learner).pop("tags", None)  # of an earlier stream
    if not wanted:
        return
    require_shares_head(learner)
    vars(learner)["tags"] = replace(learner.tags, parameter_isolation=False, keeps_logits=False)
