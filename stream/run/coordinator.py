"""A run with workers: tasks are learned and measured by any of them, rows are made in order.

The loop of the run asks for a learned task and for cells in the order of the stream, and commits
each row as it does without workers. While it waits, workers are kept busy with units of learning
and with cells of rows to come.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from stream.data.task import Task
from stream.errors import require
from stream.record.matrix import Cell
from stream.record.run_record import RunRecord
from stream.report.drawing import NAMES, Files
from stream.report.progress import Display
from stream.run.ahead import Ahead
from stream.run.cells import Cells
from stream.run.choosing import note_candidate, take_best
from stream.run.interrupt import StopRequest
from stream.run.learning import note_learned
from stream.run.packed import Tensors, unpacked
from stream.run.run import Run
from stream.run.selecting import Selecting
from stream.run.units import Units
from stream.run.worker import Position, Progress, Result, Setup, Unit, draw, get_ready_to_draw, how
from stream.training.snapshot import FitSnapshot
from stream.workers.engine import Engine

WAIT_S = 0.1  # how often the first process looks for signals and progress

Learns = Callable[[Run, int, FitSnapshot | None, Display, StopRequest], None]
"""Learns a task of a run: the run, the task's position, where it stood, who sees it, a request."""


class Coordinator:
    """What hands out the work of one run, and takes what comes of it in order."""

    def __init__(
        self,
        engine: Engine,
        run: Run,
        folder: Path,
        display: Display,
        stop: StopRequest,
        drawers: Engine | None = None,
    ):
        """Give the workers what they need; nothing is learned yet.

        Args:
            engine: the workers.
            run: the run, nothing of which was learned or loaded yet.
            folder: its folder.
            display: what a person sees.
            stop: looked at while something is waited for.
            drawers: other processes, which draw figures; None has the workers draw them.

        Raises:
            UserError: a learner whose tasks share something.
        """
        config, learner = run.config, run.learner
        require(
            not learner.overrides("sources"),
            f"workers={config.workers.count} needs a learner that serves a task with its own "
            f"modules; {learner.name} does not",
        )
        self._engine, self._run, self._display, self._stop = engine, run, display, stop
        self._drawers = drawers
        setup = engine.share(_setup(run))
        self._units = Units(engine, run, setup, Ahead(folder, enabled=config.checkpoint.enabled))
        self._cells = Cells(engine, run, setup, self._units)
        self._row: int | None = None  # the task whose row is made; None before the first
        self._steps: dict[Unit, int] = {}  # so many were shown
        # Each of them builds its learner now, whichever of these jobs it gets.
        self._ready = [
            engine.submit(f"preparing worker {number + 1}", how, setup)
            for number in range(engine.slots)
        ]
        run.elsewhere = self.measure

    def how(self) -> str:
        """Say how the workers compute.

        Raises:
            UserError: it cannot be done as asked for.
        """
        settings, recorded = self._run.config.workers, self._run.record.device
        # On a CPU they compute as this process would, so nothing is waited for.
        told = self._run.how() if recorded == "cpu" else self._result(self._ready[0])
        return f"{told}; {settings.count} workers ({settings.engine})"

    def begin(self, position: FitSnapshot | None) -> Learns:
        """Prepare what is left to be learned; return what gives the run one task after another.

        Args:
            position: where learning the first unit stood in an earlier run, whose tasks are loaded;
                None at its start.
        """
        self._units.begin(position)
        self._cells.begin()
        if self._drawers is not None:
            for number in range(self._drawers.slots):
                self._drawers.submit(f"preparing drawer {number + 1}", get_ready_to_draw)
        return self.learn

    def learn(
        self,
        run: Run,
        index: int,
        position: FitSnapshot | None,
        display: Display,
        stop: StopRequest,
    ) -> None:
        """Wait until a task is learned, and take it; as `stream.run.learning.learn`.

        Args:
            run: the run.
            index: position of the task.
            position: where it stood, which the workers know already.
            display: what a person sees.
            stop: looked at while waiting.

        Raises:
            TrainingDivergedError: a loss that is not finite.
            WorkerLostError: a worker died of it again and again.
            Interrupted: the run was asked to stop, and is saved.
        """
        del position, stop
        self._units.forget_before(index)
        self._row, task = index, run.tasks[index]
        results = [self._result_of(unit) for unit in self._units.of(index)]
        for learned, state in results:
            if learned.fitted is not None and state is not None:
                run.learner.load_task_state(task, unpacked(state))
                note_learned(run, index, learned.fitted)
            elif learned.tried is not None:
                kept = None if state is None else partial(_of_bytes, state)
                note_candidate(run, task, learned.tried, learned.losses, kept, display)
                display.evaluated(learned.tried.scored_examples)
        if isinstance(run.learner, Selecting):
            take_best(run, task)
        self._units.note_taken(index)

    def measure(self, task: Task) -> Cell:
        """Return the cell of a task in the row that is made, or before it untrained.

        Raises:
            TrainingDivergedError: logits that are not finite.
            Interrupted: the run was asked to stop; what workers know is saved.
        """
        cells, place = self._cells.take(self._row, task.name)
        return self._result(cells)[place]

    def draw(self, record: RunRecord) -> list[Files]:
        """Return the figures of the run, each drawn by another process.

        Raises:
            Interrupted: the run was asked to stop; its rows are saved.
        """
        engine = self._drawers or self._engine
        shared = engine.share(record)
        jobs = [engine.submit(f"drawing {name}", draw, shared, name) for name in NAMES]
        return [self._result(job) for job in jobs]

    def _result_of(self, unit: Unit) -> Result:
        """Wait for what came of a unit."""
        self._wait(lambda: unit in self._units.jobs())
        found: Result = self._result(self._units.jobs()[unit])
        return found

    def _result(self, future: Future[Any]) -> Any:
        """Wait for the result of a job, and return it."""
        self._wait(future.done, future)
        return future.result()

    def _wait(self, ready: Callable[[], bool], *others: Future[Any]) -> None:
        """Go on when something is ready; meanwhile keep the workers busy, and hear signals.

        Args:
            ready: whether it is.
            others: jobs that may make it so, besides units and cells.

        Raises:
            Interrupted: the run was asked to stop.
        """
        while True:
            self._hear()
            self._cells.hand_out_rows()
            self._units.hand_out()
            self._show()
            if self._stop.signum is not None:
                self._units.stop()
                self._stop.check()
            if ready():
                return
            jobs = [*self._units.jobs().values(), *self._cells.jobs(), *others]
            wait([job for job in jobs if not job.done()], WAIT_S, FIRST_COMPLETED)

    def _hear(self) -> None:
        """Take what workers told: show how far they are, and keep where they stand."""
        for message in self._engine.messages():
            if isinstance(message, Position):
                self._units.keep_position(message)
            elif isinstance(message, Progress):
                new = max(message.step - self._steps.get(message.unit, 0), 0)
                self._steps[message.unit] = message.step
                self._display.steps(message.unit.task, new, message.examples)

    def _show(self) -> None:
        """Show which tasks are learned at the moment."""
        units = [unit for unit, job in self._units.jobs().items() if not job.done()]
        if units:
            indices = sorted({unit.task for unit in units})
            self._display.learning_several([self._run.tasks[index] for index in indices])


def _setup(run: Run) -> Setup:
    """Return what workers need of a run: not what its learner has begun with."""
    config, text_encoder = run.config, run.text_encoder
    plain = replace(config, learner=replace(config.learner))
    tasks = [replace(task, accounts={}) for task in run.tasks]
    size, leading = text_encoder.vocabulary_size, text_encoder.leading
    return Setup(plain, tasks, size, leading, text_encoder.pad_id)


def _of_bytes(state: bytes, task: str) -> Tensors:
    """Return what a task has learned."""
    del task
    return unpacked(state)
