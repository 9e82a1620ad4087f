"""Going on with a run: its stored configuration, with changes that cannot change a result."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from stream.config.run import SCORE_NEUTRAL, RunConfig
from stream.errors import UserError, require
from stream.files.run_folder import FILE_NAME, ROWS_NAME
from stream.record.run_record import RunRecord
from stream.run.checkpoint_manager import SavedRun
from stream.run.run import Run
from stream.run.settings import (
    as_values,
    deciding_digest,
    deciding_values,
    first_difference,
    recorded_config,
)

LOG = logging.getLogger(__name__)


def resumed_config(folder: Path, asked: RunConfig, given: Iterable[str]) -> RunConfig:
    """Return the configuration with which the run in ``folder`` goes on.

    Args:
        folder: the run folder.
        asked: what the command line composed, defaults included.
        given: the settings that the command line names; only these count.

    Raises:
        UserError: a setting that would change results, with both values.
    """
    record = RunRecord.read(folder)
    stored = recorded_config(record.config, record.learner, record.source)
    changes: dict[str, Any] = {"resume": asked.resume}
    for key in given:
        name = key.partition(".")[0]
        if name == "task":
            changes["task"] = asked.task
            _check_extension(stored, asked)
        elif name in SCORE_NEUTRAL:
            changes[name] = getattr(asked, name)
        elif name != "hydra":
            difference = first_difference(_part(stored, key), _part(asked, key), key)
            require(difference is None, f"cannot go on with {folder}: {difference}")
    config = replace(stored, **changes)
    longer = len(config.task) > len(stored.task)
    require(
        longer or record.status != "complete",
        f"{folder} is complete; it can only go on with more tasks: 'task=[...]'",
    )
    learner = config.learner
    require(
        not (longer and learner.tags.is_multitask),
        f"learner {learner.name} cannot go on: it sees all",
    )
    return config


def _part(config: RunConfig, key: str) -> Any:
    """Return the value at a dotted key as JSON values; a missing one is None."""
    value: Any = as_values(config)
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if key == "learner":
        value = {"name": config.learner.name, **value}
    return value


def _check_extension(stored: RunConfig, asked: RunConfig) -> None:
    """Raise UserError unless the list of tasks begins with the stored one."""
    old, new = list(stored.task), list(asked.task)
    require(
        new[: len(old)] == old and stored.order == "given",
        f"the tasks of a run can only be extended: they were {', '.join(old)} "
        f"(order={stored.order}), now {', '.join(new)}",
    )
    specs = ((name, asdict(stored.task[name]), asdict(asked.task[name])) for name in old)
    changed = [name for name, before, now in specs if before != now]
    require(not changed, f"the YAML of these tasks changed since the run: {', '.join(changed)}")


def unfinished_run(root: Path, config: RunConfig) -> Path | None:
    """Return the newest unfinished run of this configuration below ``root``; None without one."""
    wanted = deciding_digest(deciding_values(as_values(config), config.learner.name))
    found = []
    for path in root.rglob(FILE_NAME):
        try:
            record = RunRecord.read(path)
        except UserError:
            continue  # not a run of this program; whoever reads it by name is told
        deciding = deciding_values(record.config, record.learner)
        if record.status == "partial" and deciding_digest(deciding) == wanted:
            found.append(path)
    return max(found, key=_last_written).parent if found else None


def _last_written(file: Path) -> float:
    """Return when a results.json, or a row beside it, was written."""
    rows = file.with_name(ROWS_NAME)
    return max(path.stat().st_mtime for path in (file, rows) if path.exists())


def check_unchanged(run: Run, folder: Path, saved: SavedRun | None) -> None:
    """Check that a run can go on from what was saved; warn where its last bits may differ.

    Args:
        run: the run, ready for its first task.
        folder: its folder.
        saved: its last whole checkpoint.

    Raises:
        UserError: tasks were learned and nothing was saved, or the settings or rows of a task are
            not those that the run has seen.
    """
    if saved is None:
        written = RunRecord.read(folder)
        done = len(written.ledger.tasks)
        # A run that is killed after its first row is written and before its checkpoint has both.
        begun = (
            done == 1 and written.status == "partial" and written.config["checkpoint"]["enabled"]
        )
        require(not done or begun, f"{folder} kept no checkpoint, and its {done} rows are done")
        return
    changed_setting = _difference_to_saved(run.config, saved.record)
    require(
        changed_setting is None,
        f"{folder / FILE_NAME} is not that of the checkpoint beside it: {changed_setting}; a run "
        "goes on with the settings it began with: change them back, or start another run",
    )
    now, then = run.record.data.hashes, saved.record.data.hashes
    changed = [name for name in then if now.get(name) != then[name]]
    require(
        not changed,
        f"the data changed since {folder} was written, in: {', '.join(changed)} "
        "(a task that is added may take texts that it holds out from earlier ones: leaks)",
    )
    versions, old = run.record.versions, saved.record.versions
    differing = [f"{k} {old.get(k)} -> {v}" for k, v in versions.items() if old.get(k) != v]
    if differing:
        LOG.warning("results may differ in their last bits: %s", ", ".join(differing))


def _difference_to_saved(config: RunConfig, saved: RunRecord) -> str | None:
    """Return the first setting that decides results and is not as a checkpoint has it.

    Tasks that were added do not count.
    """
    began = recorded_config(saved.config, saved.learner, saved.source)
    kept = {name: spec for name, spec in config.task.items() if name in began.task}
    config = replace(config, task=kept)
    was, now = (deciding_values(as_values(c), c.learner.name) for c in (began, config))
    return first_difference(was, now)


def restore_weights(run: Run, saved: SavedRun) -> None:
    """Give the learner back what it had learned.

    Raises:
        UserError: the tensors do not fit the learner.
    """
    done = run.tasks[: run.num_done]
    run.checkpoints.load_tasks(saved, run.learner, done)
    if run.routing is not None:
        run.checkpoints.load_router(saved, run.routing.router, done)
