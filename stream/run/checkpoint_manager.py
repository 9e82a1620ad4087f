"""What one run keeps on disk to go on: rows, checkpoints, and what a learner takes back.

A row goes into ``rows.jsonl`` first, then a checkpoint says how much of that file belongs to it: a
row without its checkpoint is cut off where the run goes on, and computed again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from stream.config.run import CheckpointConfig
from stream.data.task import Task
from stream.errors import UserError, first_line, understood
from stream.files.line_log import LineLog
from stream.files.run_folder import ROWS_NAME
from stream.learners.base import Learner
from stream.record.rows import (
    RowRecord,
    Unfinished,
    add_rows,
    add_unfinished,
    decoded,
    row_of,
    rows_of,
    unfinished_of,
)
from stream.record.run_record import RunRecord
from stream.routing.base import Router
from stream.run.checkpoint import BrokenCheckpointError, Checkpoint, CheckpointStore
from stream.run.selecting import Selecting
from stream.training.snapshot import FitSnapshot

OF_TASKS = "task/"  # begins the names of the groups of what a task owns
SHARED, TRAINING = "shared", "training"
ROUTES = "router/"  # begins the names of the groups of what a router keeps of a task
ROUTER = "router"  # what it keeps of all


@dataclass(frozen=True)
class SavedRun:
    """A run as a checkpoint holds it.

    Attributes:
        checkpoint: the files.
        record: what the run had shown.
        rows: of the record, as they were kept; None where they were not.
        training: where learning the next task stood, without its tensors; None between tasks.
    """

    checkpoint: Checkpoint
    record: RunRecord
    rows: list[RowRecord] | None
    training: dict[str, Any] | None

    def holds(self, task: Task) -> bool:
        """Whether the task was learned."""
        return task_group(task) in self.checkpoint.groups

    @property
    def serves(self) -> bool:
        """Whether its weights are those of a finished row.

        Weights that all tasks share are not, while they are on their way to the next task.
        """
        return self.training is None or self.record.memory.promised


class CheckpointManager:
    """The rows and checkpoints of one run."""

    def __init__(self, folder: Path, config: CheckpointConfig):
        """Write to ``folder``, as ``config`` says; nothing is read or written yet."""
        self._folder = folder
        self._config = config
        self._store = CheckpointStore(folder)
        self._rows = LineLog(folder / ROWS_NAME)
        self._fingerprints: dict[str, str] = {}  # as the rows have them
        self._opening = ""  # digest of the record before the first row
        self._digests: dict[str, str] = {}  # of what was loaded and will not change

    def begin(self) -> None:
        """Leave no row of what was there before the first task.

        Raises:
            OSError: the disk cannot be written.
        """
        self._rows.cut()

    def go_on(self, saved: SavedRun) -> None:
        """Leave the rows that a checkpoint knows; those after it are computed again.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        try:
            self._store.go_on(saved.checkpoint)
            lines = self._store.rows(saved.checkpoint)
        except BrokenCheckpointError as error:
            raise UserError(first_line(error)) from error
        self._rows.go_on(lines)
        self._rows.cut()
        if saved.rows is None:
            self._rows.append(map(msgspec.json.encode, rows_of(saved.record)))
        self._fingerprints = dict(saved.record.fingerprints)

    def commit_row(
        self, learner: Learner, record: RunRecord, index: int, router: Router | None = None
    ) -> None:
        """Write the row of a task that was learned and scored, then a checkpoint.

        Args:
            learner: what has learned so far.
            record: it holds the row, which is its last one.
            index: the task's position; rows are committed in order.
            router: what infers tasks; None where they are known.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        known = self._fingerprints
        new = {name: mark for name, mark in record.fingerprints.items() if known.get(name) != mark}
        self._rows.append([msgspec.json.encode(row_of(record, index, new))])
        self._fingerprints |= new
        self.save(learner, record, None, router)

    def save(
        self,
        learner: Learner,
        record: RunRecord,
        within: tuple[int, FitSnapshot | None] | None = None,
        router: Router | None = None,
    ) -> None:
        """Write a checkpoint, unless the configuration wants none.

        Args:
            learner: what has learned so far.
            record: what the run has shown; its rows are committed.
            within: the task that is being learned, and where that stands (None between two of its
                candidates); None between tasks.
            router: what infers tasks; None where they are known.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        if not self._config.enabled:
            return
        if not self._opening:
            self._opening = self._store.write_document(msgspec.json.encode(record.opening()))
        state: dict[str, Any] = {"unfinished": unfinished_of(record), "training": None}
        groups = self._groups(learner, router)
        if within is not None:
            index, snapshot = within
            state["training"] = {"task": index}
            if snapshot is not None:
                groups[TRAINING] = snapshot.tensors
                state["training"] |= snapshot.numbers()
        self._store.finish(self._digests)
        self._digests = {}
        self._store.write(
            groups,
            state,
            final=[name for name in groups if name.startswith(_of_final(learner))],
            document=self._opening,
            rows=self._rows.extent,
        )

    def _groups(
        self, learner: Learner, router: Router | None
    ) -> dict[str, Mapping[str, torch.Tensor]]:
        """Return the groups of tensors that are not on disk for good."""
        known = self._store.final.keys() | self._digests.keys()
        groups: dict[str, Mapping[str, torch.Tensor]] = {
            name: learner.task_state(task.name)
            for task in learner.learned
            if (name := task_group(task)) not in known
        }
        groups[SHARED] = learner.shared_state()
        if router is not None:
            kept = {f"{ROUTES}{task}": tensors for task, tensors in router.tasks.items()}
            groups |= {name: tensors for name, tensors in kept.items() if name not in known}
            groups[ROUTER] = router.shared
        return groups

    def latest(self) -> SavedRun | None:
        """Return the last whole checkpoint; None where there is none at all.

        Raises:
            UserError: there are checkpoints, and none is whole, or of a form not known here.
        """
        found = self._store.latest()
        return None if found is None else self.saved_run(found)

    def saved_run(self, found: Checkpoint) -> SavedRun:
        """Return the run that a whole checkpoint holds.

        Raises:
            UserError: it is of a form not known here.
        """
        where = f"checkpoint {found.generation} of {self._folder}"
        training = found.state["training"]
        if found.rows is None:
            record = RunRecord.from_values(found.state["results"], where)
            return SavedRun(found, record, None, training)
        record, rows = self._saved_record(found, where)
        return SavedRun(found, record, rows, training)

    def _saved_record(self, found: Checkpoint, where: str) -> tuple[RunRecord, list[RowRecord]]:
        """Return the record that a checkpoint stands for, and its rows."""
        rows = decoded(self._store.rows(found), where)
        opening = msgspec.json.decode(self._store.document(found))
        record = RunRecord.opened(opening, where)
        with understood(where):
            add_rows(record, rows)
            add_unfinished(record, msgspec.convert(found.state["unfinished"], Unfinished))
        record.derive()
        return record, rows

    def position(self, saved: SavedRun) -> FitSnapshot | None:
        """Return where learning the next task, or a candidate of it, stood; None at its start.

        Raises:
            UserError: the tensors are missing or were changed.
        """
        if saved.training is None or TRAINING not in saved.checkpoint.groups:
            return None
        numbers = {key: value for key, value in saved.training.items() if key != "task"}
        try:
            tensors = self._store.load(saved.checkpoint, TRAINING)
        except BrokenCheckpointError as error:
            raise UserError(first_line(error)) from error
        return FitSnapshot(**numbers, tensors=tensors)

    def load_tasks(
        self,
        saved: SavedRun,
        learner: Learner,
        tasks: Sequence[Task],
        *,
        serve_only: bool = False,
    ) -> None:
        """Give a learner that has just begun the stream what it had learned of ``tasks``.

        Args:
            saved: what `latest` returned.
            learner: it has begun the stream.
            tasks: those to load, in the order in which they were learned.
            serve_only: no row of the tasks is needed, and nothing more can be learned.

        Raises:
            UserError: a task that was not learned, or tensors that do not fit the learner.
        """
        store, checkpoint = self._store, saved.checkpoint
        if isinstance(learner, Selecting):
            learner.recall(saved.record.selection)
        try:
            for task in tasks:
                if not saved.holds(task):
                    raise UserError(f"task {task.name!r} was not learned in this run")
                owned = store.load(checkpoint, task_group(task))
                learner.load_task_state(task, owned, serve_only=serve_only)
            learner.load_shared_state(store.load(checkpoint, SHARED))
        except BrokenCheckpointError as error:
            raise UserError(first_line(error)) from error
        except UserError:
            raise
        except (KeyError, ValueError) as error:
            reason = first_line(error)
            raise UserError(f"the checkpoint does not fit this learner: {reason}") from error
        fixed = _of_final(learner)
        self._digests = {n: d for n, d in checkpoint.groups.items() if n.startswith(fixed)}

    def load_router(self, saved: SavedRun, router: Router, tasks: Sequence[Task]) -> None:
        """Give a router that knows nothing what it had kept of ``tasks``.

        Args:
            saved: what `latest` returned.
            router: it knows no task.
            tasks: those to load, in the order in which they were learned.

        Raises:
            UserError: the checkpoint holds no such router.
        """
        try:
            for name in [task.name for task in tasks if router.keeps_tasks]:
                router.tasks[name] = self._store.load(saved.checkpoint, f"{ROUTES}{name}")
            router.shared = self._store.load(saved.checkpoint, ROUTER)
        except BrokenCheckpointError as error:
            raise UserError(first_line(error)) from error
        except KeyError as error:
            raise UserError(f"the checkpoint has no router: {first_line(error)}") from error


def _of_final(learner: Learner) -> tuple[str, ...]:
    """Return how the names of groups begin that stay as they are once a task is learned.

    What isolated tasks own, and what a router keeps.
    """
    return (OF_TASKS, ROUTES) if learner.tags.parameter_isolation else (ROUTES,)


def task_group(task: Task) -> str:
    """Return the name of the group of what a task owns."""
    return f"{OF_TASKS}{task.name}"
