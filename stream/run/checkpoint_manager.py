"""The checkpoints of one run: of whole tasks and within tasks, and what a learner takes back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stream.config.run import CheckpointConfig
from stream.data.task import Task
from stream.errors import UserError, first_line
from stream.learners.base import Learner
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
        training: where learning the next task stood, without its tensors; None between tasks.
    """

    checkpoint: Checkpoint
    record: RunRecord
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
    """The checkpoints of one run."""

    def __init__(self, folder: Path, config: CheckpointConfig):
        """Write to ``folder``, as ``config`` says; nothing is read or written yet."""
        self._folder = folder
        self._config = config
        self._store = CheckpointStore(folder)
        self._unchanged: dict[str, str] = {}  # digests of groups that will not change

    def save(
        self,
        learner: Learner,
        record: bytes,
        within: tuple[int, FitSnapshot | None] | None = None,
        router: Router | None = None,
    ) -> None:
        """Write a checkpoint, unless the configuration wants none.

        Args:
            learner: what has learned so far.
            record: the record as JSON, up to date.
            within: the task that is being learned, and where that stands (None between two of its
                candidates); None between tasks.
            router: what infers tasks; None where they are known.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        if not self._config.enabled:
            return
        groups: dict[str, Mapping[str, Any]] = {
            name: learner.task_state(task.name)
            for task in learner.learned
            if (name := task_group(task)) not in self._unchanged
        }
        groups[SHARED] = learner.shared_state()
        if router is not None:
            kept = {f"{ROUTES}{task}": tensors for task, tensors in router.tasks.items()}
            groups |= {name: t for name, t in kept.items() if name not in self._unchanged}
            groups[ROUTER] = router.shared
        state: dict[str, Any] = {"results": msgspec.Raw(record), "training": None}
        if within is not None:
            index, snapshot = within
            state["training"] = {"task": index}
            if snapshot is not None:
                groups[TRAINING] = snapshot.tensors
                state["training"] |= snapshot.numbers()
        self._keep(learner, self._store.write(groups, state, unchanged=self._unchanged))

    def _keep(self, learner: Learner, groups: Mapping[str, str]) -> None:
        """Note the groups that stay as they are: what isolated tasks own, what a router keeps."""
        fixed = (OF_TASKS, ROUTES) if learner.tags.parameter_isolation else (ROUTES,)
        self._unchanged = {n: d for n, d in groups.items() if n.startswith(fixed)}

    def latest(self) -> SavedRun | None:
        """Return the last whole checkpoint; None where there is none at all.

        Raises:
            UserError: there are checkpoints, and none is whole, or of a form not known here.
        """
        found = self._store.latest()
        if found is None:
            return None
        where = f"checkpoint {found.generation} of {self._folder}"
        record = RunRecord.from_values(found.state["results"], where)
        return SavedRun(found, record, found.state["training"])

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
        self._keep(learner, checkpoint.groups)

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


def task_group(task: Task) -> str:
    """Return the name of the group of what a task owns."""
    return f"{OF_TASKS}{task.name}"
