"""Keeps a run: checkpoints after every task and within tasks, and going on from them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stream.atomic_io import JsonText, object_text
from stream.config.run import CheckpointConfig
from stream.data.task import Task
from stream.errors import UserError, first_line, require
from stream.run.checkpoint import BrokenCheckpointError, Checkpoint, CheckpointStore
from stream.run.interrupt import StopRequest
from stream.run.live_record import Record, versions
from stream.run.resume import read_record
from stream.run.setup import Parts
from stream.run_folder import FILE_NAME
from stream.training.fit_state import Step
from stream.training.snapshot import FitSnapshot

LOG = logging.getLogger(__name__)


@dataclass
class CheckpointManager:
    """The checkpoints of one run in progress."""

    folder: Path
    config: CheckpointConfig
    parts: Parts
    record: Record
    stop: StopRequest

    def __post_init__(self) -> None:
        """Start without a checkpoint."""
        self._store = CheckpointStore(self.folder)
        self._stored: dict[str, str] = {}  # digests of groups that will not change

    def after_step(self, index: int, step: Step) -> None:
        """Save within task ``index`` when it is time, or when the run was asked to stop.

        Raises:
            Interrupted: the run was asked to stop, and is saved.
        """
        every = self.config.every
        stopping = self.stop.signum is not None
        if stopping or (every is not None and step.number % every == 0):
            self.save(self.record.texts(self.record.as_json()), step.save(), index)
        self.check_stop()

    def check_stop(self) -> None:
        """Stop here if that was asked for.

        Raises:
            Interrupted: the signal.
        """
        self.stop.check(saved=self.config.enabled)

    def save(
        self,
        results: Mapping[str, JsonText],
        training: FitSnapshot | None = None,
        index: int | None = None,
    ) -> None:
        """Write a checkpoint: of whole tasks, or from within task ``index``.

        ``results`` are the record's `texts` of now.
        """
        if not self.config.enabled:
            return
        learner = self.parts.learner
        groups = {
            name: learner.task_state(task.name)
            for task in learner.learned
            if (name := group_of(task)) not in self._stored
        }
        groups["shared"] = learner.shared_state()
        state: dict[str, Any] = {"results": object_text(results), "training": None}
        if training is not None:
            groups["training"] = training.tensors
            state["training"] = {"task": index, **training.numbers()}
        written = self._store.write(groups, state, unchanged=self._stored)
        if learner.tags.parameter_isolation:
            self._stored = {n: d for n, d in written.items() if n.startswith("task/")}

    def added_tasks(self) -> list[Task]:
        """Return the tasks that the last whole checkpoint does not know."""
        found = self._store.latest()
        if found is None:
            return []
        return [t for t in self.parts.tasks if t.name not in found.state["results"]["order"]]

    def restore(self) -> FitSnapshot | None:
        """Go back to the last whole checkpoint.

        Returns:
            Where learning the next task stood; None where it had not begun.

        Raises:
            UserError: tasks were learned and there is no checkpoint of them, or none that fits.
        """
        found = self._store.latest()
        if found is None:
            rows = read_record(self.folder / FILE_NAME)["ledger"]["tasks"]
            require(
                not rows, f"{self.folder} kept no checkpoint, and its {len(rows)} rows are done"
            )
            return None
        self._check_data(found.state["results"])
        self._warn_of_versions(found.state["results"]["versions"])
        self.record.restore(found.state["results"])
        done = self.parts.tasks[: self.record.matrix.rows_done()]
        load_tasks(self._store, found, self.parts, done)
        # Tasks that were added had theirs first, for their baseline.
        self.parts.learner.model.sort_heads([task.name for task in self.parts.tasks])
        if self.parts.learner.tags.parameter_isolation:
            self._stored = {n: d for n, d in found.groups.items() if n.startswith("task/")}
        training = found.state["training"]
        if training is None:
            return None
        numbers = {key: value for key, value in training.items() if key != "task"}
        return FitSnapshot(**numbers, tensors=self._store.load(found, "training"))

    def _warn_of_versions(self, then: Mapping[str, str]) -> None:
        """Say where bit-equality with an unbroken run is not promised."""
        now = versions()
        changed = [f"{k} {then.get(k)} -> {now[k]}" for k in now if then.get(k) != now[k]]
        if changed:
            LOG.warning("results may differ in their last bits: %s", ", ".join(changed))

    def _check_data(self, results: Mapping[str, Any]) -> None:
        """Refuse to go on where rows of a task are not those that the run has seen."""
        now = {task.name: dict(task.hashes) for task in self.parts.tasks}
        then = results["data"]["hashes"]
        changed = [name for name in then if now.get(name) != then[name]]
        require(
            not changed,
            f"the data changed since {self.folder} was written, in: {', '.join(changed)} "
            "(a task that is added may take texts that it holds out from earlier ones: leaks)",
        )


def group_of(task: Task) -> str:
    """Return the name of the group of what a task owns."""
    return f"task/{task.name}"


def load_tasks(
    store: CheckpointStore,
    checkpoint: Checkpoint,
    parts: Parts,
    tasks: Sequence[Task],
    *,
    serve_only: bool = False,
) -> None:
    """Give a learner that has just begun what it had learned of ``tasks``.

    With ``serve_only`` no row of them is needed, and nothing more can be learned.

    Raises:
        UserError: a task that was not learned, or tensors that do not fit the learner.
    """
    learner = parts.learner
    try:
        for task in tasks:
            if group_of(task) not in checkpoint.groups:
                raise UserError(f"task {task.name!r} was not learned in this run")
            owned = store.load(checkpoint, group_of(task))
            if serve_only:
                learner.load_task_state(task, owned, serve_only=True)
            else:
                learner.load_task_state(task, owned)
        learner.load_shared_state(store.load(checkpoint, "shared"))
    except BrokenCheckpointError as error:
        raise UserError(first_line(error)) from error
    except (KeyError, ValueError) as error:
        raise UserError(f"the checkpoint does not fit this learner: {first_line(error)}") from error
