"""What methods share whose tasks leave modules in the encoder that later tasks read.

Each task has modules of its own, ``PART.TASK`` in their names, that nothing changes after it was
learned; what serves a task are these and those of earlier tasks. So memory is perfect, and yet
later tasks may gain from earlier ones. Modules are made for the whole stream at once, from names
alone; a task's are drawn for its name.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.data.task import Task
from stream.errors import require
from stream.learners._shared.inserted import draw_into
from stream.learners.base import Learner
from stream.learners.keeping import copy_named
from stream.models.encoder import Encoder
from stream.models.heads import TaskModel
from stream.models.modules.active_tasks import Use
from stream.models.modules.bottleneck import reduced
from stream.models.modules.composition import Composed
from stream.seeding import torch_generator

Tensors = dict[str, torch.Tensor]


@dataclass
class Grown(Learner):
    """Train modules of the task's own that read those of earlier tasks, and a head."""

    parameter_isolation: ClassVar[bool] = True
    reads_past_tasks: ClassVar[bool] = True
    PART: ClassVar[str] = "adapters"

    def grow(self, encoder: Encoder, tasks: Sequence[str]) -> None:
        """Put the modules of every task into the encoder; they read `use`."""
        raise NotImplementedError

    def sources(self, task: str) -> list[str]:
        """Return the tasks whose modules serve ``task``, itself last."""
        names = [learned.name for learned in self.learned]
        earlier = names[: names.index(task)] if task in names else names
        return [*earlier, task]

    def trains(self, name: str) -> bool:
        """What did not come with the encoder."""
        return name not in self._pretrained

    def owns(self, name: str) -> bool:
        """Nothing that is copied in and out: a task's modules stay where they are."""
        del name
        return False

    def _is_of(self, name: str, task: str) -> bool:
        """Whether the encoder's parameter ``name`` is of the modules of ``task``."""
        return f".{self.PART}.{task}." in f".{name}"

    def _is_any(self, name: str) -> bool:
        """Whether the encoder's parameter ``name`` is of any task's modules."""
        return f".{self.PART}." in f".{name}"

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Make the modules of all tasks, each drawn for its task's name."""
        encoder, names = model.encoder, [task.name for task in tasks]
        self._pretrained, self.use = encoder.pretrained, Use()
        self.grow(encoder, names)
        for name in names:
            draw_into(encoder, torch_generator(seed, "adapter", name), f".{self.PART}.{name}.")
        encoder.to(model.device)
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)

    def begin_task(self, task: Task) -> None:
        """Train the task's own modules alone."""
        super().begin_task(task)
        for name, parameter in self._read.items():
            own = self._is_of(name, task.name) or self.owns(name)
            parameter.requires_grad_(own)
        self.use.names, self.use.combined = self.sources(task.name), True

    @contextmanager
    def serving(self, task: Task) -> Iterator[None]:
        """Read the modules that serve ``task`` inside the block."""
        before = self.use.names, self.use.combined
        self.use.names, self.use.combined = self.sources(task.name), self.combines(task.name)
        try:
            with super().serving(task):
                yield
        finally:
            self.use.names, self.use.combined = before

    def combines(self, task: str) -> bool:
        """Whether ``task`` is served by modules of several tasks, or so far by its own alone."""
        del task
        return True

    def served_state(self, task: str) -> Tensors:
        """Return what a prediction for ``task`` reads: nothing of tasks that are no source."""
        read = self.sources(task)
        return {
            name: tensor
            for name, tensor in super().served_state(task).items()
            if not self._is_any(name) or any(self._is_of(name, source) for source in read)
        }

    def owned_state(self, task: str) -> Tensors:
        """Return the task's modules, its head, and what else it owns."""
        own = {f"encoder.{n}": p for n, p in self._read.items() if self._is_of(n, task)}
        return {**own, **super().owned_state(task)}

    def num_trained(self, task: Task) -> int:
        """Return how many parameters learning ``task`` could change: all that it owns."""
        return sum(tensor.numel() for tensor in self.owned_state(task.name).values())

    def adopt(self, task: Task, owned: Mapping[str, torch.Tensor]) -> None:
        """Take a learned task's modules, head, and what else it owns."""
        own = {n: p for n, p in self._read.items() if self._is_of(n, task.name)}
        if missing := sorted(name for name in own if f"encoder.{name}" not in owned):
            raise KeyError(f"encoder.{missing[0]} is missing")
        copy_named({name: owned[f"encoder.{name}"] for name in own}, own)
        rest = {n: t for n, t in owned.items() if n.removeprefix("encoder.") not in own}
        super().adopt(task, rest)


@dataclass
class GrownAdapters(Grown):
    """Adapters of D / ``reduction`` units of every task, in every feed-forward sub-layer."""

    lr: float = 2e-3
    reduction: int = 16
    init_std: float = 0.02

    COMPOSED: ClassVar[type[Composed]]

    def __post_init__(self) -> None:
        """Refuse a reduction that is none."""
        super().__post_init__()
        require(self.reduction >= 1, f"learner.reduction must be at least 1, got {self.reduction}")

    def grow(self, encoder: Encoder, tasks: Sequence[str]) -> None:
        """Put the adapters in, as `pfeiffer` has them, and what composes them."""
        architecture = reduced(encoder.width, self.reduction, self.init_std)
        for place in encoder.sublayers():
            if place.position == "feedforward":
                place.put(self.COMPOSED(place, architecture, tasks, self.use))
