"""Opens a finished run again: its configuration, data and weights, ready to serve its tasks."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.errors import UserError, require, understood, unknown
from stream.files.run_folder import run_folder_of
from stream.record.run_record import RunRecord
from stream.run.checkpoint_manager import SavedRun
from stream.run.run import Run
from stream.run.settings import recorded_config
from stream.run.setup import build_run


def serve_run(folder: Path, device: str = "auto") -> Run:
    """Load a run's encoder and all that it has learned, to serve it; its data are not read.

    The tasks of the run that is returned are the learned ones.

    Raises:
        UserError: no run there, or none that kept a checkpoint.
    """
    folder = run_folder_of(folder)
    record = RunRecord.read(folder)
    config = config_on(device, record)
    with understood(folder):
        tasks = [Task(name, config.task[name], {}, {}) for name in record.order]
    run = build_run(config, folder, tasks=tasks)
    saved = _served(run, folder)
    learned = [task for task in run.tasks if saved.holds(task)]
    run.checkpoints.load_tasks(saved, run.learner, learned, serve_only=True)
    _load_router(saved, run, learned)
    return replace(run, tasks=learned, record=record)


def open_run(folder: Path, names: Sequence[str], device: str = "auto") -> Run:
    """Open a run and load the weights of some of its tasks.

    Args:
        folder: a run folder with its checkpoint.
        names: the tasks to load.
        device: where to serve them.

    Raises:
        UserError: no such run, task or weights, or data that are not those of the run.
    """
    folder = run_folder_of(folder)
    record = RunRecord.read(folder)
    config = config_on(device, record)
    for name in names:
        if name not in record.order:
            raise unknown("task of this run", name, record.order)
    run = build_run(config, folder)
    now, then = run.record.data.hash, record.data.hash
    require(now == then, f"the data changed since the run {folder}: hash {now}, recorded {then}")
    load_weights(run, _served(run, folder), names)
    run.record = record
    return run


def config_on(device: str, record: RunRecord) -> RunConfig:
    """Return the configuration that a run recorded, on another device."""
    return replace(recorded_config(record.config, record.learner, record.source), device=device)


def load_weights(run: Run, saved: SavedRun, names: Sequence[str]) -> None:
    """Load the weights of some tasks, and of those that they were built on.

    Args:
        run: the run, ready for its first task.
        saved: a checkpoint of it that serves.
        names: the tasks.

    Raises:
        UserError: there are no such weights.
    """
    chosen = [task for task in run.tasks if task.name in names]
    if run.learner.tags.reads_past_tasks and chosen:
        chosen = run.tasks[: run.tasks.index(chosen[-1]) + 1]
    run.checkpoints.load_tasks(saved, run.learner, chosen)
    _load_router(saved, run, chosen)


def _load_router(saved: SavedRun, run: Run, tasks: Sequence[Task]) -> None:
    """Load what the run's router, where there is one, kept of some tasks."""
    if run.routing is not None:
        run.checkpoints.load_router(saved, run.routing.router, tasks)


def _served(run: Run, folder: Path) -> SavedRun:
    """Return the newest checkpoint that is whole.

    Raises:
        UserError: the run kept none, or one of weights that all tasks share and that were on their
            way to the next task.
    """
    saved = run.checkpoints.latest()
    if saved is None:
        raise UserError(f"{folder} has no checkpoint: the run kept none")
    require(
        saved.serves,
        f"{folder} was stopped while its {run.learner.name} learned a task, and what serves the "
        f"others changes meanwhile; go on first: resume={folder}",
    )
    return saved
