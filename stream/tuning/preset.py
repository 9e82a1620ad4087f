"""What a search chose, as a file: ``--config-dir FOLDER learner=NAME_tuned`` takes it."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from stream.config.setting import Settings
from stream.files.atomic import write_atomic
from stream.formatting import count
from stream.tuning.record import LearnerRecord, TuneRecord

SUFFIX = "_tuned"
WIDTH = 100


def write_preset(
    folder: Path, name: str, learner: Settings, found: LearnerRecord, search: TuneRecord
) -> str | None:
    """Write the preset of a learner into ``folder/learner``; return its name, None without a best.

    Args:
        folder: the folder of the search.
        name: the learner, or the preset that was searched.
        learner: its settings in the run, which the preset holds too.
        found: what was found.
        search: how.
    """
    if found.best is None:
        return None
    best = found.trials[found.best]
    given = {f.name: getattr(learner, f.name) for f in fields(learner)}
    changed = {f.name: given[f.name] for f in fields(learner) if given[f.name] != f.default}
    base: Any = learner.name  # type: ignore[attr-defined]
    settings = yaml.safe_dump({**changed, **best.settings}, sort_keys=False, width=WIDTH)
    path = folder / "learner" / f"{name}{SUFFIX}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    note = "\n".join(f"# {line}" for line in _note(name, found, search))
    write_atomic(path, f"{note}\ndefaults: [{base}, _self_]\n{settings}".encode())
    return path.stem


def _note(name: str, found: LearnerRecord, search: TuneRecord) -> list[str]:
    """Return how the settings were found, in lines."""
    best = found.trials[found.best or 0]
    tried = ", ".join(f"{key} {values}" for key, values in found.space.items())
    seeds = f"the mean of {count(len(search.seeds), 'seed')}"
    return [
        f"{name}, tuned ({found.engine}, {count(len(found.trials), 'trial')} of at most "
        f"{search.most_trials}).",
        f"{search.objective} {best.score:.4f} on {search.split} rows, {seeds}.",
        f"Searched: {tried}.",
        *(f"{key}: {how}." for key, how in found.ends.items()),
        f"Tasks: {', '.join(search.tasks)}.",
        "All trials: trials.json beside this folder.",
    ]
