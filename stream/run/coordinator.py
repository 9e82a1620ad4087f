"""A run with workers: tasks are learned and measured by any of them, rows are made in order.

The first process hands out units of learning (a task, or a candidate of one), as many as there are
workers. When all tasks up to one are learned, the cells of its row that will be measured are handed
out too. The loop of the run asks for a learned task and for cells in the order of the stream, and
commits each row as it does without workers.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

from stream.data.task import Task
from stream.errors import require
from stream.record.matrix import Cell
from stream.record.run_record import RunRecord
from stream.record.selection import CandidateRecord, SelectionRecord
from stream.report.drawing import NAMES, Files
from stream.report.progress import Display
from stream.run.ahead import Ahead
from stream.run.choosing import note_candidate, take_best
from stream.run.interrupt import StopRequest
from stream.run.learning import note_learned
from stream.run.packed import PackedPosition, Tensors, packed, unpacked
from stream.run.run import Run
from stream.run.selecting import Selecting
from stream.run.worker import (
    Position,
    Progress,
    Result,
    Served,
    Setup,
    Unit,
    draw,
    get_ready_to_draw,
    how,
    learn,
    measure,
)
from stream.training.snapshot import FitSnapshot
from stream.workers.engine import Engine

WAIT_S = 0.1  # how often the first process looks for signals and progress
AHEAD = 4  # tasks a worker that may be learned before the row of the first of them is made


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
        self._places = {task.name: index for index, task in enumerate(run.tasks)}
        self._ahead = Ahead(folder, enabled=config.checkpoint.enabled)
        self._setup = engine.share(_setup(run))
        self._row: int | None = None  # the task whose row is made; None before the first
        self._taken = 0  # so many tasks of the stream has the run's own learner
        self._here = 0  # so many are learned, all before them too
        self._waiting: list[Unit] = []  # the next one is the last
        self._lock = RLock()  # of what is handed out: a unit that ends makes room for another
        self._learning: dict[Unit, Future[Result | Position]] = {}
        self._positions: dict[Unit, PackedPosition] = {}
        self._cells: dict[tuple[int | None, str], tuple[Future[list[Cell]], int]] = {}
        self._served: dict[int, Served] = {}
        self._steps: dict[Unit, int] = {}
        # Each of them builds its learner now, whichever of these jobs it gets.
        self._ready = [
            engine.submit(f"preparing worker {number + 1}", how, self._setup)
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
        self._here = self._taken = self._run.num_done
        tasks = range(self._here, len(self._run.tasks))
        units = [unit for index in tasks for unit in self._units_of(index)]
        if position is not None and units:
            self._positions[units[0]] = PackedPosition.of(position)
        for unit, found in self._ahead.read():
            if unit in units and isinstance(found, Position):
                self._positions[unit] = found.at
            elif unit in units:
                self._learning[unit] = _done(found)
        self._waiting = [unit for unit in reversed(units) if unit not in self._learning]
        if self._drawers is not None:
            for number in range(self._drawers.slots):
                self._drawers.submit(f"preparing drawer {number + 1}", get_ready_to_draw)
        return self.learn

    def _units_of(self, index: int) -> list[Unit]:
        """Return the units of a task; candidates that were tried by an earlier run are none."""
        learner = self._run.learner
        if not isinstance(learner, Selecting):
            return [Unit(index)]
        tried = len(self._tried_before(index))
        return [Unit(index, place) for place in range(tried, len(learner.candidates))]

    def _tried_before(self, index: int) -> list[CandidateRecord]:
        """Return the candidates of a task that the run's record has."""
        found = self._run.record.selection.get(self._run.tasks[index].name)
        return [] if found is None else found.candidates

    # The loop of the run asks for what is learned and measured.

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
        self._forget(index)
        self._row, task, units = index, run.tasks[index], self._units_of(index)
        results = [self._result_of(unit) for unit in units]
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
        self._taken = index + 1

    def measure(self, task: Task) -> Cell:
        """Return the cell of a task in the row that is made, or before it untrained.

        Raises:
            TrainingDivergedError: logits that are not finite.
            Interrupted: the run was asked to stop; what workers know is saved.
        """
        key = self._row, task.name
        if key not in self._cells:
            index = self._places[task.name]
            # The scores of the untrained learner are asked for in order, to the end of the stream.
            ends = len(self._run.tasks) if self._row is None else index + 1
            self._hand_out_cells(self._row, range(index, ends))
        cells, place = self._cells.pop(key)
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

    def _forget(self, index: int) -> None:
        """Keep nothing of what was learned before a task: its row is saved."""
        for unit in [unit for unit in self._learning if unit.task < index]:
            with self._lock:
                del self._learning[unit]
            self._positions.pop(unit, None)
            self._ahead.drop(unit)

    def _result_of(self, unit: Unit) -> Result:
        """Wait for what came of a unit."""
        self._wait(lambda: unit in self._learning)
        found: Result = self._result(self._learning[unit])
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
            self._take_in()
            self._hand_out()
            self._show()
            if self._stop.signum is not None:
                self._save_and_stop()
            if ready():
                return
            jobs: list[Future[Any]] = [
                *self._learning.values(),
                *(f for f, _ in self._cells.values()),
                *others,
            ]
            wait([job for job in jobs if not job.done()], WAIT_S, FIRST_COMPLETED)

    # Handing out.

    def _hand_out(self) -> None:
        """Give the workers more to learn, in the order of the stream."""
        with self._lock:
            while self._waiting:
                unit = self._waiting[-1]
                busy = sum(not future.done() for future in self._learning.values())
                is_far = unit.task > self._taken + AHEAD * self._engine.slots
                if busy >= self._engine.slots or is_far:
                    return
                self._waiting.pop()
                name, position = self._run.tasks[unit.task].name, self._positions.get(unit)
                future = self._engine.submit(f"learning {name}", learn, self._setup, unit, position)
                self._learning[unit] = future
                future.add_done_callback(self._go_on)

    def _go_on(self, ended: Future[Result | Position]) -> None:
        """Hand out another unit at once where one has ended well."""
        if _failed(ended):
            with self._lock:
                self._waiting.clear()  # its error is raised when its row is due
        else:
            self._hand_out()

    def _hand_out_cells(self, row: int | None, tasks: Iterable[int]) -> None:
        """Have the cells of some tasks in a row measured, or (None) untrained."""
        places = list(tasks)
        for first in range(min(len(places), self._engine.slots)):
            part = places[first :: self._engine.slots]
            served = [self._serves(place, row) for place in part]
            cells = self._engine.submit(f"scoring {len(part)} tasks", measure, self._setup, served)
            for number, place in enumerate(part):
                self._cells[row, self._run.tasks[place].name] = cells, number

    def _serves(self, place: int, row: int | None) -> Served:
        """Return what serves a task in a row."""
        if row is None or place > row:
            return Served(place, None, {})
        if place not in self._served:
            state, settings = self._state(place)
            self._served[place] = Served(place, self._engine.share(state), settings)
        return self._served[place]

    def _state(self, index: int) -> tuple[bytes, dict[str, Any]]:
        """Return what a task has learned, and by which settings of its own."""
        learner, name = self._run.learner, self._run.tasks[index].name
        tried = self._tried_before(index)
        if index < self._taken:
            chosen = self._run.record.selection[name].chosen if tried else None
            settings = {} if chosen is None else tried[chosen].settings
            return packed(learner.task_state(name)), settings
        results = self._results(index)
        if not isinstance(learner, Selecting):
            return results[0].state or b"", {}
        found = [*tried, *(r.learned.tried for r in results if r.learned.tried is not None)]
        best = SelectionRecord(candidates=found).best or 0
        before = best < len(tried)
        state = packed(learner.best) if before else results[best - len(tried)].state
        return state or b"", found[best].settings

    def _results(self, index: int) -> list[Result]:
        """Return what came of the units of a task, all of which have ended well."""
        found = [self._learning[unit].result() for unit in self._units_of(index)]
        return [result for result in found if isinstance(result, Result)]

    # Taking in.

    def _hear(self) -> None:
        """Take what workers told: show how far they are, and keep where they stand."""
        for message in self._engine.messages():
            if isinstance(message, Position) and message.unit.task >= self._taken:
                self._positions[message.unit] = message.at
                self._ahead.write(message.unit, message)
            elif isinstance(message, Progress):
                new = max(message.step - self._steps.get(message.unit, 0), 0)
                self._steps[message.unit] = message.step
                self._display.steps(message.unit.task, new, message.examples)

    def _take_in(self) -> None:
        """See which tasks are learned, all before them too; hand out the cells of their rows."""
        while self._here < len(self._run.tasks) and self._is_learned(self._here):
            index, self._here = self._here, self._here + 1
            measured = self._measured(index)
            own = self._results(index)[-1].learned.cell
            if own is None:
                measured.append(index)
            else:
                self._cells[index, self._run.tasks[index].name] = _done([own]), 0
            self._hand_out_cells(index, measured)

    def _is_learned(self, index: int) -> bool:
        """Whether all units of a task have ended, and it can be served."""
        found = [self._learning.get(unit) for unit in self._units_of(index)]
        if not all(
            future is not None and future.done() and not _failed(future) for future in found
        ):
            return False
        tried = [result.learned.tried for result in self._results(index)]
        before = self._tried_before(index)
        return any(c is None or c.score is not None for c in [*before, *tried])

    def _measured(self, index: int) -> list[int]:
        """Return the other tasks that will be measured after one."""
        settings, last = self._run.config.evaluation, len(self._run.tasks) - 1
        again = settings.reuse == "off" or (settings.reuse == "verify" and index == last)
        ahead = range(index + 1, last + 1) if settings.unseen else ()
        return [*(range(index) if again else ()), *ahead]

    def _show(self) -> None:
        """Show which tasks are learned at the moment."""
        with self._lock:
            units = [unit for unit, future in self._learning.items() if not future.done()]
        if units:
            indices = sorted({unit.task for unit in units})
            self._display.learning_several([self._run.tasks[index] for index in indices])

    def _save_and_stop(self) -> None:
        """Have the workers return what they have, keep it, and stop.

        Raises:
            Interrupted: always.
        """
        with self._lock:
            self._waiting.clear()
        self._engine.stop()
        wait(self._learning.values())
        for unit, future in self._learning.items():
            if unit.task >= self._run.num_done and not _failed(future):
                self._ahead.write(unit, future.result())
        self._stop.check()


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


def _done(result: Any) -> Future[Any]:
    """Return a job that has ended."""
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def _failed(future: Future[Any]) -> bool:
    """Whether a job has ended without a result."""
    return future.cancelled() or future.exception() is not None
