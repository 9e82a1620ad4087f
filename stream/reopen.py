"""Opens a finished run again: its configuration, data and weights, ready to serve its tasks."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stream.assembly import Parts, assemble
from stream.composition import restore
from stream.config import RunConfig
from stream.errors import UserError, first_line, require, unknown
from stream.learners import LEARNERS
from stream.results import FILE_NAME
from stream.tasks.sequence import DATA, data_hash
from stream.tasks.task import Task
from stream.tracking import TRACKERS
from stream.weights import load_task


@dataclass(frozen=True)
class Reopened:
    """A run as it was: its record, configuration and parts, and the tasks asked for."""

    results: dict[str, Any]
    config: RunConfig
    parts: Parts
    tasks: list[Task]


def reopen(folder: Path, names: Sequence[str], device: str = "auto") -> Reopened:
    """Open a run and load the weights of some of its tasks.

    Args:
        folder: a run folder whose run kept its weights (``save_weights=true``).
        names: the tasks to load.
        device: where to serve them.

    Raises:
        UserError: no such run, task or weights, or data that are not those of the run.
    """
    results = _read(folder / FILE_NAME)
    groups = {
        "learner": LEARNERS[results["learner"]],
        "data": DATA[results["source"]],
        "tracking": TRACKERS["none"],
    }
    recorded = {key: value for key, value in results["config"].items() if key != "tracking"}
    config = replace(restore(recorded, groups), device=device)
    for name in names:
        if name not in results["order"]:
            raise unknown("task of this run", name, results["order"])
    parts = assemble(config)
    now, then = data_hash(parts.tasks), results["data"]["hash"]
    require(now == then, f"the data changed since the run {folder}: hash {now}, recorded {then}")
    tasks = [task for task in parts.tasks if task.name in names]
    for task in tasks:
        load_task(parts.learner, task, folder, parts.device)
    return Reopened(results, config, parts, tasks)


def _read(path: Path) -> dict[str, Any]:
    """Read a record."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"no run at {path.parent}: {first_line(error)}") from error
    known = isinstance(results, dict) and results.get("learner") in LEARNERS
    require(known, f"{path} is no record of a run with a learner that is known here")
    return results
