"""The folder of each job of a sweep, named by what is run.

Its name ends with a hash of all that decides the job's results. So a sweep that is started again
with more values, in any order, finds the jobs of the earlier start. The words before the hash are
for people.
"""

import copy
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import cast

from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from stream.cli.outcomes import Plan
from stream.config.composition import to_objects
from stream.config.run import SCORE_NEUTRAL
from stream.errors import UserError
from stream.files.run_folder import FILE_NAME
from stream.record.run_record import RunRecord
from stream.run.settings import as_values, deciding_digest, deciding_values

HASH_LETTERS = 10
WORDS_LETTERS = 80
IN_EVERY_NAME = ("learner", "seed")


def job_folder(root: DictConfig) -> str:
    """Return the name of a job's folder: that of the same job where it is there, or a new one.

    Args:
        root: the composition of the job, Hydra's own settings included.
    """
    hydra = root.hydra
    sweep = Path(hydra.sweep.dir)
    swept = Plan.read(sweep, hydra.callbacks.sweep.start).swept
    given = {key: value for key, _, value in (o.partition("=") for o in hydra.overrides.task)}
    words = [str(hydra.runtime.choices.learner), f"s{root.seed}"]
    shown = (key for key in sorted(swept) if key in given and key not in IN_EVERY_NAME)
    words += [f"{key.rpartition('.')[2]}_{given[key]}" for key in shown]
    counted = tuple(sorted(name for name in SCORE_NEUTRAL if name in _names(swept)))
    digest = _digest(root, counted)
    return _found(sweep, digest, counted) or f"{_readable(words)}-{digest[:HASH_LETTERS]}"


def register_job_folder() -> None:
    """Make ``${job_folder:}`` known to the YAML files."""
    OmegaConf.register_new_resolver(
        "job_folder", lambda *, _root_: job_folder(_root_), replace=True
    )


def _names(keys: Sequence[str]) -> set[str]:
    """Return the top-level names of settings."""
    return {key.lstrip("+~").partition(".")[0] for key in keys}


def _digest(root: DictConfig, counted: tuple[str, ...]) -> str:
    """Return the digest of a job's settings; of what was given where these are refused."""
    own = cast("DictConfig", copy.deepcopy(root))
    with read_write(own), open_dict(own):
        del own["hydra"]
    try:
        config = to_objects(own)
    except UserError:  # the job will fail of it, and its folder tells
        return deciding_digest({"given": sorted(root.hydra.overrides.task)})
    return deciding_digest(deciding_values(as_values(config), config.learner.name, counted))


def _readable(words: Sequence[str]) -> str:
    """Return words as the beginning of a file name, cut to a readable length."""
    plain = (re.sub(r"[^A-Za-z0-9.-]+", "_", word) for word in words)
    return "-".join(word.strip("_.-") for word in plain)[:WORDS_LETTERS].rstrip("_.-")


def _found(sweep: Path, digest: str, counted: tuple[str, ...]) -> str | None:
    """Return the folder in a sweep that holds the job with this digest; a finished one first.

    Folders that an older version named by numbers are found by their records.
    """
    named = next(sweep.glob(f"*-{digest[:HASH_LETTERS]}"), None)
    if named is not None:
        return named.name
    same = (r for r in _records(sweep, counted) if r[0] == digest)
    best = min(same, key=lambda found: found[1] != "complete", default=None)
    return None if best is None else best[2]


def _records(sweep: Path, counted: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield digest, status and folder of every run in a sweep."""
    for path in sorted(sweep.glob(f"*/{FILE_NAME}")):
        try:
            yield *_record(path, path.stat().st_mtime_ns, counted), path.parent.name
        except (UserError, OSError):
            continue  # no run of this program; whoever reads it by name is told


@cache
def _record(path: Path, changed: int, counted: tuple[str, ...]) -> tuple[str, str]:
    """Return digest and status of a run; it is read again when its file was changed."""
    del changed
    record = RunRecord.read(path)
    return deciding_digest(deciding_values(record.config, record.learner, counted)), record.status
