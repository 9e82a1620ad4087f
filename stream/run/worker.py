"""What a worker does for a run: it learns a task, tries a candidate, measures cells, draws figures.

A worker builds the run's encoder and learner once and keeps no task: what a task has learned goes
to the first process as bytes, and comes back as such where it is measured. So nothing of one task
can reach another one, and each is in memory once.
"""

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import msgspec

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.models.encoder import load_encoder
from stream.record.matrix import Cell
from stream.record.selection import CandidateRecord
from stream.report.drawing import Files
from stream.run.bench import Bench
from stream.run.fitting import Fitted, Trial, fit_task
from stream.run.packed import PackedPosition, packed, unpacked
from stream.run.selecting import Selecting
from stream.run.setup import attached, gpu_name, pick_device, pick_precision, read_backbone
from stream.training.fit_state import Step
from stream.workers.engine import Shared, Worker

TOLD_S = 0.1  # how often a worker says how far it is


class Setup(NamedTuple):
    """All that a worker needs to build what the run has.

    Attributes:
        config: the whole configuration.
        tasks: the stream, without accounts of its rows.
        vocabulary_size: tokens of the tokenizer.
        leading: special tokens that it puts in front of a text.
        pad_id: the token that fills up batches.
    """

    config: RunConfig
    tasks: Sequence[Task]
    vocabulary_size: int
    leading: int | None
    pad_id: int


class Unit(NamedTuple):
    """A piece of learning: a task, and with ``select`` one candidate of it (their places)."""

    task: int
    candidate: int | None = None


class Progress(NamedTuple):
    """What a worker tells while it learns: a unit, steps done and in all, examples since before."""

    unit: Unit
    step: int
    steps: int
    examples: int


class Position(NamedTuple):
    """Where learning a unit stands: told every ``checkpoint.every`` steps, returned at a stop."""

    unit: Unit
    at: PackedPosition


class Learned(msgspec.Struct):
    """What came of a unit.

    Attributes:
        fitted: what learning took; None of a candidate.
        cell: the task, measured right after; None of a candidate, which may not be the best.
        tried: how the candidate did.
        losses: of the candidate's steps.
    """

    fitted: Fitted | None = None
    cell: Cell | None = None
    tried: CandidateRecord | None = None
    losses: list[float] = []


class Result(NamedTuple):
    """What came of a unit, and what it has learned of the task, `packed`; None if it failed."""

    learned: Learned
    state: bytes | None


class Served(NamedTuple):
    """What is measured: a task, what it has learned (None: nothing), and by which settings."""

    task: int
    state: Shared | None
    settings: dict[str, Any]


class Device(NamedTuple):
    """Where workers compute: the device by its type and, if chosen, number; precision; the GPU."""

    name: str
    precision: str
    gpu: str | None


class _StopError(Exception):
    """The worker was asked to stop; it carries where learning stands."""

    def __init__(self, at: PackedPosition):
        super().__init__()
        self.at = at


def device_of(worker: Worker, device: str, precision: str) -> Device:
    """Return where this worker computes.

    Args:
        worker: this one.
        device: the setting ``device``.
        precision: the setting ``backbone.precision``.

    Raises:
        UserError: it has no such device.
    """
    del worker
    found = pick_device(device)
    return Device(str(found), pick_precision(precision, found), gpu_name(found))


def how(worker: Worker, setup: Shared) -> str:
    """Say how the run's tasks are learned here.

    Raises:
        UserError: it cannot be done as asked for.
    """
    return bench_of(worker, setup).how()


def bench_of(worker: Worker, setup: Shared) -> Bench:
    """Return the run's learner and tasks, which are built once in each worker.

    Raises:
        UserError: as `stream.run.setup.build_run`.
    """
    if worker.kept.get("setup") != setup:
        worker.kept.clear()
        worker.kept.update(bench=_built(setup.get()), setup=setup)
    bench: Bench = worker.kept["bench"]
    return bench


def _built(setup: Setup) -> Bench:
    """Build the run's learner."""
    config = setup.config
    device = pick_device(config.device)
    precision = pick_precision(config.backbone.precision, device)
    encoder = load_encoder(
        read_backbone(config), vocabulary_size=setup.vocabulary_size, leading=setup.leading
    )
    encoder.to(device)
    learner = attached(config, encoder, setup.tasks, setup.pad_id, precision)
    return Bench(config, setup.tasks, learner, device)


def learn(
    worker: Worker, setup: Shared, unit: Unit, position: PackedPosition | None = None
) -> Result | Position:
    """Learn a unit, or what is left of it; return where it stands if asked to stop.

    Args:
        worker: this one.
        setup: the run's `Setup`.
        unit: what is learned.
        position: where an earlier attempt stood; None from its start.

    Raises:
        TrainingDivergedError: a loss that is not finite; of a candidate it is in its record.
    """
    bench = bench_of(worker, setup)
    tells = _Tells(worker, unit, bench.config.checkpoint.every)
    worker.kept.pop("setup")  # what an error leaves behind is built anew
    try:
        result = _learned(bench, unit, tells, position)
    except _StopError as stopped:
        return Position(unit, stopped.at)
    worker.kept["setup"] = setup
    return result


def _learned(bench: Bench, unit: Unit, tells: "_Tells", position: PackedPosition | None) -> Result:
    """Learn a unit, and forget it."""
    task, start = bench.tasks[unit.task], None if position is None else position.snapshot()
    if unit.candidate is None:
        fitted = fit_task(bench, unit.task, tells.step, start)
        state = packed(bench.learner.task_state(task.name))
        cell = bench.measure_here(task, bench.config.evaluation.split)
        bench.learner.forget(task)
        return Result(Learned(fitted, cell), state)
    trial = Trial(bench, unit.task, bench.config.candidates[unit.candidate])
    trial.learn(tells.step, start)
    failed = trial.record.score is None
    state = None if failed else packed(trial.learner.task_state(task.name))
    trial.close()
    return Result(Learned(tried=trial.record, losses=trial.losses), state)


class _Tells:
    """Tells the first process how far learning a unit is, and looks whether it should stop."""

    def __init__(self, worker: Worker, unit: Unit, every: int | None):
        self._worker, self._unit, self._every = worker, unit, every
        self._examples, self._told = 0, 0.0

    def step(self, step: Step) -> None:
        """Hear of a step.

        Raises:
            _StopError: the worker was asked to stop.
        """
        self._examples += step.examples
        now = time.monotonic()
        if now - self._told >= TOLD_S or step.number == step.total:
            self._worker.tell(Progress(self._unit, step.number, step.total, self._examples))
            self._examples, self._told = 0, now
        if self._worker.stopping():
            raise _StopError(PackedPosition.of(step.save()))
        if self._every is not None and step.number % self._every == 0:
            self._worker.tell(Position(self._unit, PackedPosition.of(step.save())))


def measure(worker: Worker, setup: Shared, served: Sequence[Served]) -> list[Cell]:
    """Measure tasks, each with what it has learned; nothing is kept.

    Args:
        worker: this one.
        setup: the run's `Setup`.
        served: the tasks.

    Raises:
        TrainingDivergedError: logits that are not finite.
    """
    bench = bench_of(worker, setup)
    return [_measured(bench, each) for each in served]


def _measured(bench: Bench, served: Served) -> Cell:
    """Measure one task."""
    task, learner, split = bench.tasks[served.task], bench.learner, bench.config.evaluation.split
    if served.state is None:
        return bench.measure_here(task, split)
    state = unpacked(served.state.get())
    if isinstance(learner, Selecting):
        learner.keep(state)
        learner.take(task, served.settings)
    else:
        learner.load_task_state(task, state)
    try:
        return bench.measure_here(task, split)
    finally:
        learner.forget(task)


def get_ready_to_draw(worker: Worker) -> None:
    """Import what draws."""
    del worker
    import_module("stream.report.plots")


def draw(worker: Worker, record: Shared, name: str) -> Files:
    """Return a figure of a run as the contents of its files."""
    from stream.report.plots import drawn  # with matplotlib

    del worker
    return drawn(record.get(), name)
