"""What the training loop keeps while one task is learned, from the start or from where it stood."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice

import torch

from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.task import Task
from stream.distributed.world import World
from stream.errors import TrainingDivergedError
from stream.learners.base import Learner
from stream.learners.workload import Epoch
from stream.training.flops import FlopMeter
from stream.training.schedule import warmup_then_linear
from stream.training.snapshot import (
    FitSnapshot,
    capture,
    learner_state,
    load_randomness,
    load_tensors,
    randomness,
)

CUDA_CHECK_STEPS = 25  # reading a loss waits for the GPU, so there they are read in groups


@dataclass(frozen=True)
class FitReport:
    """What learning one task took.

    Attributes:
        refused: why steps that should have been captured were executed eagerly; empty if none was.
    """

    steps: int
    examples: int
    seconds: float
    losses: list[float] = field(repr=False)
    refused: str = ""


@dataclass(frozen=True)
class Step:
    """What the loop tells after a step.

    Attributes:
        number: steps done.
        total: steps in all.
        examples: examples of this step.
        save: returns the state to go on from, a copy.
    """

    number: int
    total: int
    examples: int
    save: Callable[[], FitSnapshot]


class FitState:
    """What the loop keeps while one task is learned, from the start or from where it stood."""

    def __init__(
        self,
        learner: Learner,
        task: Task,
        training: TrainingConfig,
        optimizer: torch.optim.AdamW,
        meter: FlopMeter | None,
        resumed: FitSnapshot | None,
    ):
        self._learner = learner
        self._task = task
        self._training = training
        self._device = learner.model.device
        self._meter = meter
        self._work = learner.workload(task, training)
        self._parameters = learner.trained_parameters()
        self.optimizer = optimizer
        self._lr = 0.0
        self._state = resumed or FitSnapshot()
        self._resumes = resumed is not None
        if resumed is not None:
            load_tensors(resumed.tensors, self._parameters, self.optimizer)
            learner.load_fit_state(learner_state(resumed.tensors))
            if meter is not None:
                meter.total = resumed.flops
        self._losses = _LossLog(task.name, self._device, self._state.losses)
        self._started = time.perf_counter() - self._state.seconds
        self._paused_at: float | None = None

    def epochs(self) -> Iterator[Epoch]:
        """Yield the passes that are left."""
        for index in range(self._state.epoch, self._work.epochs):
            yield Epoch(index, self._work.epochs, self._training)

    def batches(self, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of a pass that are left."""
        batches = self._learner.training_batches(self._task, epoch)
        if self._resumes:
            self._resumes = False
            load_randomness(self._state.tensors, self._device, World.now().rank)
            return islice(batches, self._state.batch, None)
        self._state.epoch, self._state.batch = epoch.index, 0
        return batches

    def set_learning_rate(self) -> None:
        """Give every group its learning rate for the next step."""
        done, steps = len(self._losses), self._work.steps
        fraction = warmup_then_linear(done, steps, self._training.warmup)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):  # a captured step reads it where it is
                group["lr"].fill_(group["peak_lr"] * fraction)
            else:
                group["lr"] = group["peak_lr"] * fraction
        self._lr = self.optimizer.param_groups[0]["peak_lr"] * fraction

    def clip_gradients(self) -> None:
        """Scale all gradients together to the largest norm allowed."""
        torch.nn.utils.clip_grad_norm_(self._parameters.values(), self._training.clip_norm)

    def note(self, loss: torch.Tensor, batch: Batch) -> None:
        """Note the loss of a step."""
        self._losses.add(loss, self._lr)
        self._state.batch += 1
        self._state.examples += len(batch)

    def progress(self, examples: int) -> Step:
        """Return what to tell after a step."""
        return Step(len(self._losses), self._work.steps, examples, self.save)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take no time for what happens inside the block: it is no part of learning."""
        self._paused_at = time.perf_counter()
        try:
            yield
        finally:
            self._started += time.perf_counter() - self._paused_at
            self._paused_at = None

    def _seconds(self) -> float:
        """Return the time of learning so far, earlier attempts' too."""
        now = time.perf_counter() if self._paused_at is None else self._paused_at
        return now - self._started

    def save(self) -> FitSnapshot:
        """Return a copy of all that going on from here needs; tensors on the first rank alone."""
        self._losses.check()
        world = World.now()
        drawn = world.of_all(randomness(self._device))
        tensors = {}
        if world.is_first:
            learner = self._learner.fit_state()
            tensors = capture(self._parameters, self.optimizer, learner, drawn)
        return replace(
            self._state,
            seconds=self._seconds(),
            flops=0 if self._meter is None else self._meter.total,
            losses=list(self._losses.values),
            tensors=tensors,
        )

    def report(self, refused: str) -> FitReport:
        """Return what learning the task took, and why steps were not captured if they should be."""
        self._losses.check()
        steps, examples = len(self._losses), self._state.examples
        return FitReport(steps, examples, self._seconds(), self._losses.values, refused)


class _LossLog:
    """The losses of a task, checked to be finite."""

    def __init__(self, task: str, device: torch.device, earlier: list[float]):
        self._task = task
        self._every = CUDA_CHECK_STEPS if device.type == "cuda" else 1
        self._pending: list[tuple[torch.Tensor, float]] = []
        self.values = list(earlier)

    def __len__(self) -> int:
        return len(self.values) + len(self._pending)

    def add(self, loss: torch.Tensor, lr: float) -> None:
        """Note the loss of a step."""
        self._pending.append((loss, lr))
        if len(self._pending) >= self._every:
            self.check()

    def check(self) -> None:
        """Read the noted losses, means over ranks; stop at the first that is not finite."""
        if not self._pending:
            return
        values = World.now().mean(torch.stack([loss for loss, _ in self._pending])).tolist()
        for value, (_, lr) in zip(values, self._pending, strict=True):
            if not math.isfinite(value):
                raise TrainingDivergedError(
                    f"loss {value} while learning task {self._task!r} at step "
                    f"{len(self.values) + 1} with learning rate {lr:.3g}; try a smaller learner.lr"
                )
            self.values.append(value)
        self._pending.clear()
