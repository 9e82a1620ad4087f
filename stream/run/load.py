"""Opens a finished run again: its configuration, data and weights, ready to serve its tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stream.config.run import RunConfig
from stream.data.build import data_hash
from stream.data.task import Task
from stream.errors import UserError, require, understood, unknown
from stream.run.checkpoint import Checkpoint, CheckpointStore
from stream.run.checkpoint_manager import group_of, load_tasks
from stream.run.resume import read_record, recorded_config
from stream.run.setup import Parts, assemble
from stream.run_folder import FILE_NAME


@dataclass(frozen=True)
class LoadedRun:
    """A run as it was: its record, configuration and parts, and the tasks asked for."""

    results: dict[str, Any]
    config: RunConfig
    parts: Parts
    tasks: list[Task]


@dataclass(frozen=True)
class ServedTasks:
    """A learner that serves tasks without their data: configuration, parts, learned tasks."""

    config: RunConfig
    parts: Parts
    tasks: dict[str, Task]


def serve_run(folder: Path, device: str = "auto") -> ServedTasks:
    """Load a run's encoder and all that it has learned, to serve it; its data are not read.

    Raises:
        UserError: no run there, or none that kept a checkpoint.
    """
    results = read_record(folder / FILE_NAME)
    config = replace(recorded_config(results), device=device)
    with understood(folder / FILE_NAME):
        tasks = [Task(name, config.task[name], {}, {}) for name in results["order"]]
    parts = assemble(config, tasks=tasks)
    store, found = _served_checkpoint(folder, parts)
    learned = [task for task in tasks if group_of(task) in found.groups]
    load_tasks(store, found, parts, learned, serve_only=True)
    return ServedTasks(config, parts, {task.name: task for task in learned})


def reopen(
    folder: Path, names: Sequence[str], device: str = "auto", *, same_data: bool = True
) -> LoadedRun:
    """Open a run and load the weights of some of its tasks.

    Args:
        folder: a run folder with its checkpoint.
        names: the tasks to load.
        device: where to serve them.
        same_data: refuse data that are not those of the run.

    Raises:
        UserError: no such run, task or weights, or data that are not those of the run.
    """
    results = read_record(folder / FILE_NAME)
    config = replace(recorded_config(results), device=device)
    with understood(folder / FILE_NAME):
        order, then = list(results["order"]), results["data"]["hash"]
    for name in names:
        if name not in order:
            raise unknown("task of this run", name, order)
    parts = assemble(config)
    now = data_hash(parts.tasks)
    same = now == then or not same_data
    require(same, f"the data changed since the run {folder}: hash {now}, recorded {then}")
    tasks = [task for task in parts.tasks if task.name in names]
    last = max(order.index(name) for name in names) + 1
    needed = (
        parts.tasks[:last] if parts.learner.tags.reads_past_tasks else tasks
    )  # what they were built on
    load_tasks(*_served_checkpoint(folder, parts), parts, needed)
    return LoadedRun(results, config, parts, tasks)


def _served_checkpoint(folder: Path, parts: Parts) -> tuple[CheckpointStore, Checkpoint]:
    """Return a run's store and the newest generation in it that is whole.

    Raises:
        UserError: the run kept none, or one of weights that all tasks share and that were on their
            way to the next task.
    """
    store = CheckpointStore(folder)
    found = store.latest()
    if found is None:
        raise UserError(f"{folder} has no checkpoint: the run kept none")
    halfway = is_halfway(found, parameter_isolation=parts.learner.tags.parameter_isolation)
    require(
        not halfway,
        f"{folder} was stopped while its {parts.learner.name} learned a task, and what serves the "
        f"others changes meanwhile; go on first: resume={folder}",
    )
    return store, found


def is_halfway(checkpoint: Checkpoint, *, parameter_isolation: bool) -> bool:
    """Return whether the weights that serve learned tasks are those of no finished row."""
    return checkpoint.state["training"] is not None and not parameter_isolation
