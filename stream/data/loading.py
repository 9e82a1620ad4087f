"""Loading: one task's splits as text, with the account of every row, from any source."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stream.config.data import FilesData, GeneratedData, HubData
from stream.config.task import PARQUET_SPLITS, SPLITS, SourceColumns, TaskSpec
from stream.data.prepare.rows import account_rows
from stream.data.prepare.splits import carve, places, undivided_part
from stream.data.sources import generated
from stream.data.sources.files import read_files
from stream.data.sources.hub import read_hub
from stream.data.table import Account, SourceTable
from stream.data.task import Rows
from stream.errors import UserError, require


@dataclass
class LoadedTask:
    """One task as text: rows, their lines in the source, and an account, by split."""

    rows: dict[str, Rows]
    lines: dict[str, np.ndarray]
    accounts: dict[str, Account]

    def drop_from_train(self, mask: np.ndarray, reason: str) -> None:
        """Take the rows where ``mask`` [N] is true out of train, and account for them."""
        kept = np.flatnonzero(~mask)
        account = self.accounts["train"]
        account.drop(reason, self.lines["train"][mask].tolist())
        account.kept = len(kept)
        account.check()
        self.rows["train"] = self.rows["train"].take(kept)
        self.lines["train"] = self.lines["train"][kept]


def load_task(data: Any, name: str, spec: TaskSpec, cache: Path) -> LoadedTask:
    """Read every split of a task from its source.

    Raises:
        UserError: whatever is missing or wrong, in one line.
    """
    loaded = _LOADERS[type(data)](data, name, spec, cache)
    for split in SPLITS:
        account = loaded.accounts[split]
        require(
            account.kept > 0,
            f"task {name!r}: split {split!r} is empty: {account.read} rows read from "
            f"{account.where}, dropped: {account.dropped or 'none'}",
        )
    return loaded


def _load_generated(data: GeneratedData, name: str, spec: TaskSpec, cache: Path) -> LoadedTask:
    """Write the task's generated twin."""
    del cache
    rows = {split: generated.read_split(data, name, spec, split) for split in SPLITS}
    lines = {split: np.arange(1, len(r) + 1) for split, r in rows.items()}
    accounts = {s: Account("generated", read=len(r), kept=len(r)) for s, r in rows.items()}
    return LoadedTask(rows, lines, accounts)


def _load_files(data: FilesData, name: str, spec: TaskSpec, cache: Path) -> LoadedTask:
    """Read the task's files below the root."""
    del cache
    root = Path(data.root).expanduser()
    require(root.is_dir(), f"data.root={data.root!r} is not a folder (looked in {root.resolve()})")
    files = spec.files
    if spec.original.text and not (root / files.folder).exists():
        files = spec.original
    folder = root / files.folder
    splits = files.splits or PARQUET_SPLITS
    try:
        tables = {part: read_files(folder, file, files.dialect) for part, file in splits.items()}
    except UserError as error:
        raise UserError(f"task {name!r}: {error}") from error
    return divide(name, spec, files, tables)


def _load_hub(data: HubData, name: str, spec: TaskSpec, cache: Path) -> LoadedTask:
    """Read the task from the hub or its cache."""
    tables = read_hub(name, spec.hub, cache / "hub", offline=data.offline)
    return divide(name, spec, spec.hub, tables)


_LOADERS: Mapping[type, Callable[[Any, str, TaskSpec, Path], LoadedTask]] = {
    GeneratedData: _load_generated,
    FilesData: _load_files,
    HubData: _load_hub,
}


def divide(
    name: str, spec: TaskSpec, columns: SourceColumns, tables: Mapping[str, SourceTable]
) -> LoadedTask:
    """Account for every part of a source, and carve the splits that it lacks."""
    loaded = LoadedTask({}, {}, {})
    undivided = undivided_part(name, dict.fromkeys(tables, ""))
    for part, table in tables.items():
        _check_size(name, columns, part, table)
        rows, lines, account = account_rows(name, spec, columns, table)
        if part != undivided:
            loaded.rows[part], loaded.lines[part], loaded.accounts[part] = rows, lines, account
            continue
        where = places(rows, _groups(columns, table, lines))
        for split, indices in carve(list(tables), where).items():
            loaded.rows[split] = rows.take(indices)
            loaded.lines[split] = lines[indices]
            loaded.accounts[split] = _part_of(account, split, indices)
    return loaded


def _part_of(account: Account, split: str, indices: np.ndarray) -> Account:
    """Return the account of a carved split; what was dropped before carving stays with train."""
    if split == "train":
        rest = account.read - account.kept
        return replace(account, read=rest + len(indices), kept=len(indices))
    where = f"{account.where}, a tenth by hash of the text"
    return Account(where, account.dialect, len(indices), len(indices))


def _groups(columns: SourceColumns, table: SourceTable, lines: np.ndarray) -> list[str] | None:
    """Return the group of each kept row, if the task's YAML names a group column."""
    if columns.group is None:
        return None
    if columns.group not in table.table.column_names:
        raise UserError(f"{table.where} has no group column {columns.group!r}")
    kept = np.isin(table.lines, lines)
    values = table.table.column(columns.group).to_pylist()
    return [str(value) for value, is_kept in zip(values, kept, strict=True) if is_kept]


def _check_size(name: str, columns: SourceColumns, part: str, table: SourceTable) -> None:
    """Refuse a part with another number of rows than the task's YAML expects."""
    expected = columns.rows.get(part)
    found = table.table.num_rows + len(table.ragged)
    require(
        expected is None or found == expected,
        f"task {name!r}: {table.where} has {found} rows, expected {expected}; change or remove "
        f"rows.{part} in the task's YAML if that is right",
    )
