"""The units of learning of one run: which wait, which are under way, and what came of the others.

A unit is a task, or a candidate of one. As many as there are workers are under way, in the order of
the stream; where one ends, the engine's own thread hands out the next one. What is known of a unit
is in the run folder, too, if the run stops before its row is saved.
"""

from concurrent.futures import Future, wait
from threading import RLock
from typing import Any

from stream.record.selection import CandidateRecord
from stream.run.ahead import Ahead
from stream.run.packed import PackedPosition
from stream.run.run import Run
from stream.run.selecting import Selecting
from stream.run.worker import Position, Result, Unit, learn
from stream.training.snapshot import FitSnapshot
from stream.workers.engine import Engine, Shared

AHEAD = 4  # tasks a worker that may be learned before the row of the first of them is made


class Units:
    """The units of learning of one run."""

    def __init__(self, engine: Engine, run: Run, setup: Shared, ahead: Ahead):
        """Have none to hand out yet.

        Args:
            engine: the workers.
            run: the run, nothing of which was learned or loaded yet.
            setup: what workers need of it.
            ahead: what is kept of units in its folder.
        """
        self._engine, self._run, self._setup, self._ahead = engine, run, setup, ahead
        self._num_taken = 0
        self._lock = RLock()  # of what is handed out: a unit that ends makes room for another
        self._of: dict[int, list[Unit]] = {}
        self._waiting: list[Unit] = []  # the next one is the last
        self._jobs: dict[Unit, Future[Result | Position]] = {}
        self._positions: dict[Unit, PackedPosition] = {}

    def begin(self, position: FitSnapshot | None) -> None:
        """Have what is left to be learned wait, but for what an earlier run learned ahead.

        Args:
            position: where learning the first unit stood in an earlier run, whose tasks are loaded;
                None at its start.
        """
        self._num_taken = self._run.num_done
        # Once: what the run notes of candidates on its way makes them no less its units.
        tasks = range(self._num_taken, len(self._run.tasks))
        self._of = {index: self._left_of(index) for index in tasks}
        units = [unit for index in tasks for unit in self._of[index]]
        if position is not None and units:
            self._positions[units[0]] = PackedPosition.of(position)
        for unit, found in self._ahead.read():
            if unit in units and isinstance(found, Position):
                self._positions[unit] = found.at
            elif unit in units:
                self._jobs[unit] = ended_with(found)
        self._waiting = [unit for unit in reversed(units) if unit not in self._jobs]

    def of(self, index: int) -> list[Unit]:
        """Return the units of a task; none before `begin`, or where an earlier run learned it."""
        return self._of.get(index, [])

    def _left_of(self, index: int) -> list[Unit]:
        """Return what is left of a task: candidates that were tried by an earlier run are not."""
        learner = self._run.learner
        if not isinstance(learner, Selecting):
            return [Unit(index)]
        tried = len(self.tried_before(index))
        return [Unit(index, place) for place in range(tried, len(learner.candidates))]

    def tried_before(self, index: int) -> list[CandidateRecord]:
        """Return the candidates of a task that the run's record has."""
        found = self._run.record.selection.get(self._run.tasks[index].name)
        return [] if found is None else found.candidates

    # Learning.

    def hand_out(self) -> None:
        """Give the workers more to learn, in the order of the stream."""
        with self._lock:
            while self._waiting:
                unit = self._waiting[-1]
                busy = sum(not job.done() for job in self._jobs.values())
                is_far = unit.task > self._num_taken + AHEAD * self._engine.slots
                if busy >= self._engine.slots or is_far:
                    return
                self._waiting.pop()
                name, position = self._run.tasks[unit.task].name, self._positions.get(unit)
                job = self._engine.submit(f"learning {name}", learn, self._setup, unit, position)
                self._jobs[unit] = job
                job.add_done_callback(self._go_on)

    def _go_on(self, ended: Future[Result | Position]) -> None:
        """Hand out another unit at once where one has ended well."""
        if _failed(ended):
            with self._lock:
                self._waiting.clear()  # its error is raised when its row is due
        else:
            self.hand_out()

    def jobs(self) -> dict[Unit, Future[Result | Position]]:
        """Return what comes of each unit that was handed out or learned ahead, until forgotten."""
        with self._lock:
            return dict(self._jobs)

    def keep_position(self, position: Position) -> None:
        """Keep where learning a unit stands, also in the run folder.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        if position.unit.task >= self._num_taken:
            self._positions[position.unit] = position.at
            self._ahead.write(position.unit, position)

    def stop(self) -> None:
        """Have the workers return what they have, and keep it in the run folder.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        with self._lock:
            self._waiting.clear()
        self._engine.stop()
        jobs = self.jobs()
        wait(jobs.values())
        for unit, job in jobs.items():
            if unit.task >= self._run.num_done and not _failed(job):
                self._ahead.write(unit, job.result())

    # What came of it.

    def is_learned(self, index: int) -> bool:
        """Whether all units of a task have ended, and it can be served."""
        jobs = [self._jobs.get(unit) for unit in self.of(index)]
        ended = [job is not None and job.done() and not _failed(job) for job in jobs]
        if not ended or not all(ended):
            return False
        tried = [result.learned.tried for result in self.results(index)]
        before = self.tried_before(index)
        return any(c is None or c.score is not None for c in [*before, *tried])

    def results(self, index: int) -> list[Result]:
        """Return what came of the units of a task, all of which have ended well."""
        found = [self._jobs[unit].result() for unit in self.of(index)]
        return [result for result in found if isinstance(result, Result)]

    @property
    def num_taken(self) -> int:
        """So many tasks of the stream has the run's own learner."""
        return self._num_taken

    def note_taken(self, index: int) -> None:
        """Note that the run's own learner has a task, and all before it."""
        self._num_taken = index + 1

    def forget_before(self, index: int) -> None:
        """Keep nothing of what was learned before a task: its row is saved."""
        with self._lock:
            before = [unit for unit in self._jobs if unit.task < index]
            for unit in before:
                del self._jobs[unit]
        for unit in before:
            self._positions.pop(unit, None)
            self._ahead.drop(unit)


def ended_with(result: Any) -> Future[Any]:
    """Return a job that has ended with a result."""
    job: Future[Any] = Future()
    job.set_result(result)
    return job


def _failed(job: Future[Any]) -> bool:
    """Whether a job has ended without a result."""
    return job.cancelled() or job.exception() is not None
