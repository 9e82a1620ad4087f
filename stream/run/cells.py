"""The cells of a run that workers measure: of a row as soon as its tasks are learned.

When all tasks up to one are learned, the cells of its row that will be measured are handed out,
before the loop of the run asks for them. With each goes what serves its task in that row, which
workers do not keep.
"""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from stream.record.matrix import Cell
from stream.record.selection import SelectionRecord
from stream.run.packed import packed
from stream.run.run import Run
from stream.run.selecting import Selecting
from stream.run.units import Units, ended_with
from stream.run.worker import Served, measure
from stream.workers.engine import Engine, Shared


class Cells:
    """The cells of one run that workers measure."""

    def __init__(self, engine: Engine, run: Run, setup: Shared, units: Units):
        """Hand out none yet.

        Args:
            engine: the workers.
            run: the run.
            setup: what workers need of it.
            units: what is learned.
        """
        self._engine, self._run, self._setup, self._units = engine, run, setup, units
        self._places = {task.name: index for index, task in enumerate(run.tasks)}
        self._next_row = 0  # the first whose cells were not handed out
        self._handed_out: dict[tuple[int | None, str], tuple[Future[list[Cell]], int]] = {}
        self._served: dict[int, Served] = {}

    def begin(self) -> None:
        """Go on behind the rows that the run has."""
        self._next_row = self._run.num_done

    def hand_out_rows(self) -> None:
        """See which tasks are learned, all before them too; hand out the cells of their rows."""
        while self._next_row < len(self._run.tasks) and self._units.is_learned(self._next_row):
            index, self._next_row = self._next_row, self._next_row + 1
            measured = self._measured_after(index)
            own = self._units.results(index)[-1].learned.cell
            if own is None:
                measured.append(index)
            else:
                self._handed_out[index, self._run.tasks[index].name] = ended_with([own]), 0
            self._hand_out(index, measured)

    def _measured_after(self, index: int) -> list[int]:
        """Return the other tasks that will be measured after one."""
        settings, last = self._run.config.evaluation, len(self._run.tasks) - 1
        again = settings.reuse == "off" or (settings.reuse == "verify" and index == last)
        ahead = range(index + 1, last + 1) if settings.unseen else ()
        return [*(range(index) if again else ()), *ahead]

    def take(self, row: int | None, task: str) -> tuple[Future[list[Cell]], int]:
        """Return the job that measures a cell, and the cell's place in what comes of it.

        Each cell is returned once; one that was not handed out yet is now.

        Args:
            row: the task that was learned last; None before the first.
            task: the one that is measured.
        """
        if (row, task) not in self._handed_out:
            index = self._places[task]
            # The scores of the untrained learner are asked for in order, to the end of the stream.
            ends = len(self._run.tasks) if row is None else index + 1
            self._hand_out(row, range(index, ends))
        return self._handed_out.pop((row, task))

    def jobs(self) -> list[Future[list[Cell]]]:
        """Return the jobs that measure what was not taken yet."""
        return [job for job, _ in self._handed_out.values()]

    def _hand_out(self, row: int | None, tasks: Iterable[int]) -> None:
        """Have the cells of some tasks in a row measured, or (None) untrained."""
        places = list(tasks)
        for first in range(min(len(places), self._engine.slots)):
            part = places[first :: self._engine.slots]
            served = [self._serves(place, row) for place in part]
            job = self._engine.submit(f"scoring {len(part)} tasks", measure, self._setup, served)
            for number, place in enumerate(part):
                self._handed_out[row, self._run.tasks[place].name] = job, number

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
        tried = self._units.tried_before(index)
        if index < self._units.num_taken:
            chosen = self._run.record.selection[name].chosen if tried else None
            settings = {} if chosen is None else tried[chosen].settings
            return packed(learner.task_state(name)), settings
        results = self._units.results(index)
        if not isinstance(learner, Selecting):
            return results[0].state or b"", {}
        found = [*tried, *(r.learned.tried for r in results if r.learned.tried is not None)]
        best = SelectionRecord(candidates=found).best or 0
        before = best < len(tried)
        state = packed(learner.best) if before else results[best - len(tried)].state
        return state or b"", found[best].settings
