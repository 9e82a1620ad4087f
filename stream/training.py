"""The one training loop: every learner learns every task through `fit`."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch

from stream.config import TrainingConfig
from stream.errors import TrainingDivergedError
from stream.flops import FlopMeter
from stream.seeding import torch_randomness
from stream.tasks.batches import Batch
from stream.tasks.task import Task

CUDA_CHECK_STEPS = 25  # reading a loss waits for the GPU, so there they are read in groups


@dataclass(frozen=True)
class Epoch:
    """One pass over a task: its index from 0, how many there are, and the run's schedule."""

    index: int
    count: int
    training: TrainingConfig

    @property
    def batch_size(self) -> int:
        """Rows of the new task in each batch."""
        return self.training.batch_size


class Workload(NamedTuple):
    """The work of learning one task, known before it starts; ``steps`` are those of all epochs."""

    epochs: int
    steps: int
    examples: int


@dataclass(frozen=True)
class FitReport:
    """What learning one task took."""

    steps: int
    epochs: int
    examples: int
    seconds: float
    losses: list[float] = field(repr=False)


class Trainable(Protocol):
    """What the loop asks of a learner; the hooks are described in `stream.learners.base`."""

    lr: float
    head_lr: float | None
    seed: int

    @property
    def model(self) -> torch.nn.Module: ...  # noqa: D102

    def workload(self, task: Task, training: TrainingConfig) -> Workload: ...  # noqa: D102
    def begin_task(self, task: Task) -> None: ...  # noqa: D102
    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]: ...  # noqa: D102
    def loss(self, batch: Batch) -> torch.Tensor: ...  # noqa: D102
    def after_backward(self) -> None: ...  # noqa: D102
    def after_step(self, batch: Batch) -> None: ...  # noqa: D102
    def end_task(self, task: Task) -> None: ...  # noqa: D102
    def trained_parameters(self) -> Mapping[str, torch.nn.Parameter]: ...  # noqa: D102


def planned_work(rows: int, training: TrainingConfig) -> Workload:
    """Return the epochs, steps and examples that ``rows`` training rows get."""
    steps = -(-rows // training.batch_size)  # of one epoch
    epochs = max(training.epochs, -(-training.min_steps // steps))
    return Workload(epochs, epochs * steps, epochs * rows)


def warmup_then_linear(step: int, steps: int, warmup: float) -> float:
    """Return the learning rate at ``step`` (from 0) as a fraction of its peak.

    Rises linearly over the first ``warmup`` of the steps, then falls linearly to 0 (Houlsby et al.
    2019, section 3.1). Step 0 already learns, and the last step is the last above 0.
    """
    rising = int(warmup * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    return (steps - step) / (steps - rising)


def optimizer_for(learner: Trainable, weight_decay: float) -> torch.optim.AdamW:
    """Return AdamW over what the learner trains; heads may have a learning rate of their own.

    Weights decay, biases and LayerNorms do not (as in adapter-bert).
    """
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in learner.trained_parameters().items():
        lr = learner.head_lr if learner.head_lr and name.startswith("heads.") else learner.lr
        decay = weight_decay if parameter.ndim >= 2 else 0.0
        groups.setdefault((lr, decay), []).append(parameter)
    options = [{"params": p, "lr": lr, "weight_decay": d} for (lr, d), p in groups.items()]
    # A learner that trains nothing for this task: AdamW wants a group, which may be empty.
    return torch.optim.AdamW(options or [{"params": []}], eps=1e-6, foreach=True)


def fit(
    learner: Trainable,
    task: Task,
    training: TrainingConfig,
    device: torch.device,
    on_step: Callable[[int, int, int], None] = lambda step, steps, examples: None,
    meter: FlopMeter | None = None,
) -> FitReport:
    """Let the learner learn one task.

    Args:
        learner: any learner.
        task: the task; only its training split is read here.
        training: the schedule.
        device: where the batches go.
        on_step: called after every step with (steps done, steps in all, examples of the step).
        meter: counts the operations of every step, where given.

    Raises:
        TrainingDivergedError: a loss that is not finite.
    """
    started = time.perf_counter()
    learner.begin_task(task)
    learner.model.train()
    parameters = learner.trained_parameters()
    optimizer = optimizer_for(learner, training.weight_decay)
    epochs, steps, _ = learner.workload(task, training)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_then_linear(min(step, steps - 1), steps, training.warmup)
    )
    losses = _LossLog(task.name, device)
    examples = 0
    for index in range(epochs):
        epoch = Epoch(index, epochs, training)
        with torch_randomness(learner.seed, "dropout", task.name, index):
            for host_batch in learner.training_batches(task, epoch):
                batch = host_batch.to(device)
                optimizer.zero_grad(set_to_none=True)
                with meter.step(batch) if meter is not None else nullcontext():
                    loss = learner.loss(batch)
                    loss.backward()
                learner.after_backward()
                torch.nn.utils.clip_grad_norm_(parameters.values(), training.clip_norm)
                losses.add(loss.detach(), float(schedule.get_last_lr()[0]))
                optimizer.step()
                schedule.step()
                learner.after_step(batch)
                examples += len(batch)
                on_step(len(losses), steps, len(batch))
    losses.check()
    learner.end_task(task)
    return FitReport(len(losses), epochs, examples, time.perf_counter() - started, losses.values)


class _LossLog:
    """The losses of a task, checked to be finite."""

    def __init__(self, task: str, device: torch.device):
        self._task = task
        self._every = CUDA_CHECK_STEPS if device.type == "cuda" else 1
        self._pending: list[tuple[torch.Tensor, float]] = []
        self.values: list[float] = []

    def __len__(self) -> int:
        return len(self.values) + len(self._pending)

    def add(self, loss: torch.Tensor, lr: float) -> None:
        """Note the loss of a step, before its gradient is applied."""
        self._pending.append((loss, lr))
        if len(self._pending) >= self._every:
            self.check()

    def check(self) -> None:
        """Read the noted losses; stop at the first that is not finite."""
        if not self._pending:
            return
        values = torch.stack([loss for loss, _ in self._pending]).tolist()
        for value, (_, lr) in zip(values, self._pending, strict=True):
            if not math.isfinite(value):
                raise TrainingDivergedError(
                    f"loss {value} while learning task {self._task!r} at step "
                    f"{len(self.values) + 1} with learning rate {lr:.3g}; try a smaller learner.lr"
                )
            self.values.append(value)
        self._pending.clear()
