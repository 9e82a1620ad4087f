"""The `hub` source: data sets of the Hugging Face hub, fetched once and then read from the cache.

The first load records the commit and the hash of the rows in the cache folder. Later loads read the
recorded rows and need no network. If the hub can be reached, they report when it has a new commit.
"""

import functools
import hashlib
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from stream.config.source import HubSource
from stream.data.sources.hub_record import (
    HubRecord,
    SplitRecord,
    bytes_below,
    read_arrow,
    read_hub_record,
    within,
    write_hub_record,
)
from stream.data.table import SourceTable
from stream.errors import UserError, require

ANSWER_S = 8.0  # time limit for the hub's answer at a first load, in seconds
CHECK_S = 4.0  # time limit for asking whether the hub has a new commit, in seconds
STALL_S = 120.0  # a download without a new byte for so many seconds has failed
PARQUET_BRANCH = "refs/convert/parquet"  # where the hub's bot puts data sets as Parquet
ALTERNATIVES = (
    "use data=files (your copy of the files) or data=generated (no download); "
    "after one load with a network, data=hub works without"
)

EXPLANATIONS = {  # a pattern for an error's class names and text: what the error means
    "scripts are no longer supported": (
        "this data set is a loading script, which this program does not run; "
        f"set revision {PARQUET_BRANCH}, the hub's own Parquet copy"
    ),
    "GatedRepo|gated dataset": (
        f"gated: accept its terms on its page and run `hf auth login`, or {ALTERNATIVES}"
    ),
    "RevisionNotFound": "no such revision on the hub (null is the main branch)",
    "(Repository|Dataset)NotFound": (
        f"no such data set on the hub, or it is private; {ALTERNATIVES}"
    ),
}


def read_hub(
    task: str, source: HubSource, cache: Path, *, offline: bool = False
) -> dict[str, SourceTable]:
    """Return the rows of each split, with label names instead of label numbers.

    Reads the recorded commit. Logs a warning if the hub has another commit now, or if the rows
    differ from the recorded ones.

    Args:
        task: the task's name, for messages and for the name of the record.
        source: which data set, configuration, revision and splits.
        cache: the folder of the records and the data.
        offline: True never uses the network.

    Returns:
        The rows by the task's own split names.

    Raises:
        UserError: the task has no hub id; there is no network and no earlier load; the data set,
            configuration or split does not exist; or only a script can read the data.
    """
    repository = _known_id(task, source)
    offline = offline or is_offline()
    path = record_path(task, source, cache)
    before = read_hub_record(path)
    files = before.files(cache) if before else None
    require(
        files is not None or not offline,
        f"task {task!r}: {repository} is not in {cache}, and this run is offline; {ALTERNATIVES}",
    )
    if before and not offline:
        _warn(task, changes(task, source, cache))
    try:
        commit = before.commit if before else _commit_now(source, ANSWER_S)
        files = files or _fetch(source, commit, cache, again=before is not None)
    except Exception as error:  # network errors have the classes of many libraries
        raise _explained(task, source, error) from error
    tables = {name: read_arrow(paths) for name, paths in files.items()}
    splits = {
        name: SplitRecord.of(source.splits[name], files[name], table, cache)
        for name, table in tables.items()
    }
    now = HubRecord(repository, source.config, source.revision, commit, splits)
    differences = before.difference(now) if before else []
    _warn(task, differences)
    if before is None or (before.splits != splits and not differences):
        write_hub_record(path, now)
    return {name: now.source_table(name, table) for name, table in tables.items()}


def changes(task: str, source: HubSource, cache: Path) -> list[str]:
    """Return one line if the hub has another commit than the recorded one, otherwise none.

    Also returns none if there is no record, or if the hub does not answer.

    Args:
        task: the task's name.
        source: which data set, configuration, revision and splits.
        cache: the folder of the records and the data.
    """
    record = read_hub_record(record_path(task, source, cache))
    if record is None or is_offline() or not _hub_answers():
        return []
    try:
        now = _commit_now(source, CHECK_S)
    except Exception as error:  # noqa: BLE001 - network errors have the classes of many libraries
        return [f"the hub does not say whether {record.id} has changed ({_short(error)})"]
    if now == record.commit:
        return []
    return [
        f"{record.id} is now at commit {now[:12]}; this run keeps {record.commit[:12]}, recorded "
        f"{record.recorded} (to use the new commit, delete {record_path(task, source, cache)})"
    ]


def record_path(task: str, source: HubSource, cache: Path) -> Path:
    """Return the file that records a task's load; other source settings have another file."""
    settings = [source.id, source.config, source.revision, sorted(source.splits.items())]
    key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]
    return cache / "records" / f"{task}-{key}.json"


def is_offline() -> bool:
    """Return whether the environment forbids access to the hub."""
    names = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"} for name in names)


def _known_id(task: str, source: HubSource) -> str:
    """Return the hub's id of a task; raise UserError if none is known."""
    if source.id is None:
        why = f"no hub id is known{f' ({source.missing})' if source.missing else ''}"
        raise UserError(f"task {task!r}: {why}; use data=files or data=generated")
    require(bool(source.splits), f"task {task!r}: hub.splits is empty; e.g. {{train: train}}")
    return source.id


@functools.cache
def _hub_answers() -> bool:
    """Whether the hub answers at all; asked once a process, so that 26 tasks wait once."""
    from huggingface_hub import constants, get_session

    try:
        within(CHECK_S, lambda: get_session().head(constants.ENDPOINT, timeout=CHECK_S))
    except Exception as error:  # noqa: BLE001 - network errors have the classes of many libraries
        logging.getLogger("stream").info("the hub does not answer (%s)", _short(error))
        return False
    return True


def _commit_now(source: HubSource, seconds: float) -> str:
    """Return the commit that a revision currently refers to."""
    from huggingface_hub import HfApi

    repository, revision = str(source.id), source.revision

    def ask() -> str | None:
        return HfApi().dataset_info(repository, revision=revision, timeout=seconds).sha

    return str(within(seconds, ask))


def _fetch(source: HubSource, commit: str, cache: Path, *, again: bool) -> dict[str, list[Path]]:
    """Download and convert with `datasets`; return the Arrow files of each of the task's splits."""
    import datasets  # here, because the import takes seconds
    from huggingface_hub import constants

    logging.getLogger("stream").info("fetching %s %s from the hub", source.id, source.config or "")
    how: dict[str, Any] = {"name": source.config}
    if source.revision == PARQUET_BRANCH:  # one folder per configuration, which no README declares
        folder = f"{source.config}/" if source.config else ""
        how = {"data_files": {hub: f"{folder}{hub}/*.parquet" for hub in source.splits.values()}}
    repository = f"hf://datasets/{source.id}"  # an id alone could be a local folder
    how["revision"] = commit
    how["cache_dir"] = str(cache / "datasets" / commit[:12] / (source.config or "default"))
    if again:  # rebuild the Arrow files that were lost
        how["download_mode"] = "reuse_cache_if_exists"
    folders = (Path(how["cache_dir"]), Path(constants.HF_HUB_CACHE))
    loaded = within(
        STALL_S, lambda: datasets.load_dataset(repository, **how), lambda: bytes_below(*folders)
    )
    for hub in source.splits.values():
        require(
            hub in loaded and loaded[hub].num_rows > 0,
            f"no rows in a split {hub!r}; its splits: {', '.join(loaded)}",
        )
    return {
        ours: [Path(file["filename"]) for file in loaded[hub].cache_files]
        for ours, hub in source.splits.items()
    }


def _warn(task: str, lines: list[str]) -> None:
    """Log differences as warnings."""
    for line in lines:
        logging.getLogger("stream").warning("task %r: %s", task, line)


def _short(error: Exception) -> str:
    """Return an error as one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _explained(task: str, source: HubSource, error: Exception) -> UserError:
    """Return an error of the hub as a UserError of one line that says what to do."""
    kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
    said = f"{kinds} {error}"
    why = next((why for mark, why in EXPLANATIONS.items() if re.search(mark, said)), None)
    if isinstance(error, UserError):
        why = str(error)
    where = f"task {task!r}: {source.id} {source.config or ''} at {source.revision or 'main'}"
    return UserError(f"{where}: {why or f'{_short(error)}; {ALTERNATIVES}'}")
