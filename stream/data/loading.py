"""Load tasks as text from their source, whichever source the run uses."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stream.config.data import FilesData, GeneratedData, HubData
from stream.config.parts import whole_of
from stream.config.paths import from_home
from stream.config.source import PARQUET_SPLITS, SPLITS, FilesSource
from stream.config.task import TaskSpec
from stream.data.prepare.cutting import part_of
from stream.data.prepare.splits import prepare_splits
from stream.data.sources import generated
from stream.data.sources.files import read_files
from stream.data.sources.finding import Found, find_files
from stream.data.sources.hub import read_hub
from stream.data.table import Account
from stream.data.task import LoadedTask
from stream.errors import UserError, require


def load_tasks(
    data: Any, tasks: Mapping[str, TaskSpec], cache: Path, notify: Callable[[str, int], None]
) -> dict[str, LoadedTask]:
    """Read every task from its source; a set that is cut into parts is read once.

    Args:
        data: the settings of the source: `GeneratedData`, `FilesData` or `HubData`.
        tasks: the tasks by name.
        cache: the user's cache folder.
        notify: called with the name and the number (from 1) of each task before it is read.

    Returns:
        The tasks as text, by name; no split is empty.

    Raises:
        UserError: something is missing or wrong; says what and where in one line.
    """
    loaded: dict[str, LoadedTask] = {}
    wholes: dict[str, LoadedTask] = {}
    for number, (name, spec) in enumerate(tasks.items(), 1):
        notify(name, number)
        of = spec.part.of
        if of is None:
            loaded[name] = load_task(data, name, spec, cache)
            continue
        if of not in wholes:
            wholes[of] = load_task(data, of, whole_of(spec), cache)
        loaded[name] = part_of(wholes[of], spec)
        _check_splits(name, loaded[name])
    return loaded


def load_task(data: Any, name: str, spec: TaskSpec, cache: Path) -> LoadedTask:
    """Read every split of a task from its source.

    Args:
        data: the settings of the source: `GeneratedData`, `FilesData` or `HubData`.
        name: the task's name.
        spec: the task's specification.
        cache: the user's cache folder.

    Returns:
        The task as text; no split is empty.

    Raises:
        UserError: something is missing or wrong; says what and where in one line.
    """
    loaded = _LOADERS[type(data)](data, name, spec, cache)
    _check_splits(name, loaded)
    return loaded


def _check_splits(name: str, loaded: LoadedTask) -> None:
    """Raise UserError if a split of a task is empty."""
    for split in SPLITS:
        account = loaded.accounts[split]
        require(
            account.kept > 0,
            f"task {name!r}: split {split!r} is empty: {account.read} rows read from "
            f"{account.where}, dropped: {account.dropped or 'none'}",
        )


def _load_generated(data: GeneratedData, name: str, spec: TaskSpec, cache: Path) -> LoadedTask:
    """Generate the miniature version of the task."""
    del cache
    rows = {split: generated.read_split(data, name, spec, split) for split in SPLITS}
    lines = {split: np.arange(1, len(r) + 1) for split, r in rows.items()}
    accounts = {s: Account("generated", read=len(r), kept=len(r)) for s, r in rows.items()}
    return LoadedTask(rows, lines, accounts)


def _load_files(data: FilesData, name: str, spec: TaskSpec, cache: Path) -> LoadedTask:
    """Read the task's files below ``data.root``."""
    del cache
    files, folder = _located(data, spec)
    splits = files.splits or PARQUET_SPLITS
    try:
        tables = {part: read_files(folder, file, files.dialect) for part, file in splits.items()}
    except UserError as error:
        raise UserError(f"task {name!r}: {error}") from error
    return prepare_splits(name, spec, files, tables)


def _located(data: FilesData, spec: TaskSpec) -> tuple[FilesSource, Path]:
    """Return which form of a task's files is there, and their folder.

    Raises:
        UserError: ``data.root`` is not there.
    """
    root = from_home(data.root or ".")  # absolute folders need none
    require(root.is_dir(), f"data.root={data.root!r} is not a folder (looked in {root.resolve()})")
    files = spec.files
    if spec.original.text and not (root / from_home(files.folder)).exists():
        files = spec.original
    return files, root / from_home(files.folder)


def files_read(data: Any, tasks: Mapping[str, TaskSpec]) -> list[Found] | None:
    """Return the files that `load_tasks` reads now, of each table of each task.

    Args:
        data: the settings of the source: `GeneratedData`, `FilesData` or `HubData`.
        tasks: the tasks by name.

    Returns:
        What is read, in order; None where more than files decides what the rows are.

    Raises:
        UserError: a file is missing.
    """
    if isinstance(data, GeneratedData):
        return []
    if not isinstance(data, FilesData):
        return None
    found = []
    for spec in tasks.values():
        files, folder = _located(data, spec)
        splits = files.splits or PARQUET_SPLITS
        found.extend(find_files(folder, file) for file in splits.values())
    return found


def _load_hub(data: HubData, name: str, spec: TaskSpec, cache: Path) -> LoadedTask:
    """Read the task from the Hugging Face hub, or from the cache of an earlier load."""
    tables = read_hub(name, spec.hub, cache / "hub", offline=data.offline)
    return prepare_splits(name, spec, spec.hub, tables)


_LOADERS: Mapping[type, Callable[[Any, str, TaskSpec, Path], LoadedTask]] = {
    GeneratedData: _load_generated,
    FilesData: _load_files,
    HubData: _load_hub,
}
