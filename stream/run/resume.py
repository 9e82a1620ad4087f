"""Going on with a run: its stored configuration, with changes that cannot change a result."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

from stream.config.compose import restore
from stream.config.run import SCORE_NEUTRAL, RunConfig
from stream.data.build import DATA
from stream.errors import UserError, first_line, require, understood
from stream.learners import LEARNERS
from stream.report.tracking import TRACKERS
from stream.run_folder import FILE_NAME, LOCK


def read_record(path: Path) -> dict[str, Any]:
    """Read results.json.

    Raises:
        UserError: it is not there, or no record of a run that is understood here.
    """
    try:
        results = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"no run at {path.parent}: {first_line(error)}") from error
    known = isinstance(results, dict) and str(results.get("learner")) in LEARNERS
    known = known and str(results.get("source")) in DATA
    known = known and isinstance(results.get("config"), dict)
    require(known, f"{path} is no record of a run with a learner that is known here")
    return results


def _no_constant(name: str) -> None:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(f"{name} stands where a number or null is meant")


def recorded_config(results: Mapping[str, Any]) -> RunConfig:
    """Return the configuration that a run recorded.

    Raises:
        UserError: values that this version does not understand.
    """
    with understood("the recorded configuration"):
        values = results["config"]
        tracker = values["tracking"]["name"]
        groups = {
            "learner": LEARNERS[results["learner"]],
            "data": DATA[results["source"]],
            "tracking": TRACKERS[tracker] if tracker in TRACKERS else TRACKERS["none"],
        }
        return restore(values, groups)


def resumed_config(folder: Path, asked: RunConfig, given: Iterable[str]) -> RunConfig:
    """Return the configuration with which the run in ``folder`` goes on.

    Args:
        folder: the run folder.
        asked: what the command line composed, defaults included.
        given: the settings that the command line names; only these count.

    Raises:
        UserError: a setting that would change results, with both values.
    """
    results = read_record(folder / FILE_NAME)
    stored = recorded_config(results)
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
        longer or results["status"] != "complete",
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
    value: Any = asdict(config)
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if key == "learner":
        value = {"name": config.learner.name, **value}
    return json.loads(json.dumps(value))


def _check_extension(stored: RunConfig, asked: RunConfig) -> None:
    """Refuse a list of tasks that does not begin with the stored one."""
    old, new = list(stored.task), list(asked.task)
    require(
        new[: len(old)] == old and stored.order == "given",
        f"the tasks of a run can only be extended: they were {', '.join(old)} "
        f"(order={stored.order}), now {', '.join(new)}",
    )
    specs = ((name, asdict(stored.task[name]), asdict(asked.task[name])) for name in old)
    changed = [name for name, before, now in specs if before != now]
    require(not changed, f"the YAML of these tasks changed since the run: {', '.join(changed)}")


def first_difference(
    old: Any, new: Any, path: str = "", free: Sequence[str] = (), absent: Any = None
) -> str | None:
    """Return the first setting that differs, with both values; None where nothing does.

    ``free`` are top-level names that do not count; a key that is not there counts as ``absent``.
    """
    return next(_differences(old, new, path, free, absent), None)


def _differences(old: Any, new: Any, path: str, free: Sequence[str], absent: Any) -> Iterator[str]:
    """Yield every setting that differs."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in free:
                inner = f"{path}.{key}".lstrip(".")
                pair = old.get(key, absent), new.get(key, absent)
                yield from _differences(*pair, inner, (), absent)
    elif old != new:
        yield f"{path} was {old}, now {new}"


def unfinished_run(root: Path, config: RunConfig) -> Path | None:
    """Return the newest unfinished run of this configuration below ``root``; None without one."""
    wanted = json.loads(json.dumps(asdict(config)))
    found = []
    for path in root.rglob(FILE_NAME):
        try:
            results = read_record(path)
        except UserError:
            continue  # not a run of this program; whoever reads it by name is told
        same = first_difference(results["config"], wanted, free=SCORE_NEUTRAL) is None
        if results["status"] == "partial" and same:
            found.append(path)
    return max(found, key=lambda path: path.stat().st_mtime).parent if found else None


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside the block; the system frees it when the process dies.

    Raises:
        UserError: another process writes to the folder.
    """
    with (folder / LOCK).open("a", encoding="utf-8") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except OSError as error:
            raise UserError(f"another process is writing to {folder}") from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
