"""From the tables of a source to the three splits of a task.

A source that lacks splits is divided by a hash of each row's normalised text (or of its group).
The hash does not depend on the task, so the same text lands in the same split of every task: the
three political tasks of Houlsby et al. 2019, for example, label the same 5,000 posts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from stream.config.source import SPLITS, SourceColumns
from stream.config.task import TaskSpec
from stream.data.prepare.idle_entries import idle_entries
from stream.data.prepare.label_names import check_numbering
from stream.data.prepare.rows import account_rows
from stream.data.table import Account, SourceTable
from stream.data.task import LoadedTask, Rows
from stream.data.text_key import text_key
from stream.errors import UserError, require

HELD_OUT_FRACTION = 0.1  # per split: 80/10/10, as in Houlsby et al. 2019, Table 3
ALL = "all"


def prepare_splits(
    name: str, spec: TaskSpec, columns: SourceColumns, tables: Mapping[str, SourceTable]
) -> LoadedTask:
    """Account for every row of a source and divide it into train, validation and test.

    Args:
        name: the task's name, for messages.
        spec: the task's specification.
        columns: what the columns of this source mean.
        tables: the source's tables; their names are splits, or ``all`` for an undivided source.

    Returns:
        The task as text, with all three splits.

    Raises:
        UserError: the names are not valid splits, a table does not have the expected number of
            rows or is not there, or a row breaks the rules of the task (see `account_rows`), or an
            entry of ``values`` or ``exclude`` is mistyped.
    """
    loaded = LoadedTask({}, {}, {})
    undivided = part_to_divide(name, tables)
    check_numbering(name, spec, columns, tables)
    idle = [part for part in columns.rows if part not in tables]
    require(
        not idle,
        f"task {name!r}: rows names {', '.join(idle)}, but the source has {', '.join(tables)}",
    )
    for part, table in tables.items():
        _check_size(name, columns, part, table)
        rows, lines, account = account_rows(name, spec, columns, table)
        if part != undivided:
            loaded.rows[part], loaded.lines[part], loaded.accounts[part] = rows, lines, account
            continue
        positions = hash_positions(rows, _groups(columns, table, lines))
        for split, indices in assign_splits(list(tables), positions).items():
            loaded.rows[split] = rows.select(indices)
            loaded.lines[split] = lines[indices]
            loaded.accounts[split] = _account_of_split(account, split, indices)
    loaded.accounts["train"].idle_entries = idle_entries(name, columns, tables)
    return loaded


def part_to_divide(name: str, parts: Iterable[str]) -> str | None:
    """Return the part of a source that must be divided: ``all``, ``train``, or None.

    Raises:
        UserError: ``parts`` holds a name that is no split, or not exactly one of ``train``
            and ``all``.
    """
    parts = set(parts)
    valid = parts <= {*SPLITS, ALL} and ("train" in parts) != (ALL in parts)
    require(
        valid,
        f"task {name!r}: splits must hold train (and validation, test if there are any), or all; "
        f"got {sorted(parts)}",
    )
    if ALL in parts:
        return ALL
    return None if {"validation", "test"} <= parts else "train"


def hash_positions(rows: Rows, groups: Sequence[str] | None) -> np.ndarray:
    """Return each row's position in [0, 1), float64 [N], from the hash of its text or group.

    All rows of one group have the same position.
    """
    if groups is None:
        return rows.keys / 2.0**64
    return np.array([text_key([group]) for group in groups], np.uint64) / 2.0**64


def assign_splits(given: Sequence[str], positions: np.ndarray) -> Mapping[str, np.ndarray]:
    """Return which rows of the undivided part go to which split.

    Args:
        given: the splits that the source has besides that part, such as ``test``.
        positions: of the rows, float64 [N] in [0, 1).

    Returns:
        Row indices by split. Test and validation get a tenth of the rows each, unless the source
        has them; train gets the rest.
    """
    missing = [split for split in ("test", "validation") if split not in given]
    assigned = np.full(len(positions), "train", dtype=object)
    for index, split in enumerate(missing):
        low, high = index * HELD_OUT_FRACTION, (index + 1) * HELD_OUT_FRACTION
        assigned[(positions >= low) & (positions < high)] = split
    return {split: np.flatnonzero(assigned == split) for split in ["train", *missing]}


def _account_of_split(account: Account, split: str, indices: np.ndarray) -> Account:
    """Return the account of a split; rows that were dropped before the division count in train."""
    if split == "train":
        dropped = account.read - account.kept
        return replace(account, read=dropped + len(indices), kept=len(indices))
    where = f"{account.where}, a tenth by hash of the text"
    return Account(where, account.dialect, len(indices), len(indices))


def _groups(columns: SourceColumns, table: SourceTable, lines: np.ndarray) -> list[str] | None:
    """Return the group of each kept row, or None if the task's YAML names no group column."""
    if columns.group is None:
        return None
    if columns.group not in table.table.column_names:
        raise UserError(f"{table.where} has no group column {columns.group!r}")
    kept = np.isin(table.lines, lines)
    values = table.table.column(columns.group).to_pylist()
    return [str(value) for value, is_kept in zip(values, kept, strict=True) if is_kept]


def _check_size(name: str, columns: SourceColumns, part: str, table: SourceTable) -> None:
    """Raise UserError unless the part has as many rows as the task's YAML expects."""
    expected = columns.rows.get(part)
    actual = table.table.num_rows + len(table.ragged)
    require(
        expected is None or actual == expected,
        f"task {name!r}: {table.where} has {actual} rows, expected {expected}; change or remove "
        f"rows.{part} in the task's YAML if that is right",
    )
