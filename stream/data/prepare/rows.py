"""Row accounting: every row of a source is kept, or dropped for a reason that is counted.

N rows of a source table; read = kept + dropped, always.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from stream.config.task import DROPPABLE, SourceColumns, TaskSpec
from stream.data.spans.tokens import answers_in, unpacked
from stream.data.table import Account, SourceTable
from stream.data.task import Rows
from stream.errors import UserError, require

pc: Any = pyarrow.compute  # its functions are made at import, out of a type checker's sight
KEPT, NO_TEXT, NO_LABEL, UNKNOWN, EXCLUDED, DUPLICATE = range(6)
REASONS = {
    NO_TEXT: "no_text",
    NO_LABEL: "no_label",
    UNKNOWN: "unknown_label",
    EXCLUDED: "excluded_label",
    DUPLICATE: "duplicate",
}


def account_rows(
    name: str, spec: TaskSpec, columns: SourceColumns, source: SourceTable
) -> tuple[Rows, np.ndarray, Account]:
    """Turn a source table into the rows of a task, with their account.

    Returns:
        The rows kept, their lines (int64), and the account.

    Raises:
        UserError: a missing column, or rows with an unknown label or a wrong number of fields
            that the task's YAML does not allow to drop; names lines and values.
    """
    table = source.table if columns.start is None else unpacked(source)
    where = source.where
    columns = _resolve(columns, table.column_names)
    require(len(columns.text) > 0, f"task {name!r}: its YAML names no column of text for {where}")
    for column in filter(None, [*columns.text, columns.label, columns.start]):
        require(
            column in table.column_names,
            f"task {name!r}: {where} has no column {column!r}; it has {table.column_names}",
        )
    for column in columns.text:
        require(
            column not in source.provenance.get("json_text", "").split(", "),
            f"task {name!r}: {where}: column {column!r} holds values of several types, not text",
        )
    account = Account(where, source.dialect, provenance=dict(source.provenance))
    account.read = table.num_rows + len(source.ragged)
    _ragged(name, columns, source, account)
    texts = [_texts(table.column(column), column, where) for column in columns.text]
    if columns.start is None:
        labels, state, seen = _labels(spec, columns, table.column(columns.label))
    else:
        labels, state, seen = _answers(table, columns.label, columns.start, texts[-1])
    rows = Rows(tuple(zip(*texts, strict=True)), labels)
    blank = np.array([not any(text.strip() for text in row) for row in rows.texts], bool)
    state[blank] = NO_TEXT
    _refuse_unknown(name, spec, columns, source, state, seen)
    _duplicates(rows, state, account, drop="duplicate" in columns.drop)
    for code, reason in REASONS.items():
        account.drop(reason, source.lines[state == code].tolist())
    kept = np.flatnonzero(state == KEPT)
    account.kept = len(kept)
    account.check()
    return rows.select(kept), source.lines[kept], account


def _ragged(name: str, columns: SourceColumns, source: SourceTable, account: Account) -> None:
    """Count rows with a wrong number of fields; an error unless they may be dropped."""
    if source.ragged:
        first = source.ragged[0]
        require(
            "ragged" in columns.drop,
            f"task {name!r}: {source.where} line {first.line} has {first.found} fields instead of "
            f"{first.expected} ({len(source.ragged)} such lines); mend them, fix the dialect, or "
            "say drop: [ragged] in the task's YAML",
        )
    account.drop("ragged", [row.line for row in source.ragged])


def _texts(column: pa.ChunkedArray, name: str, where: str) -> list[str]:
    """Return a text column as strings; a missing text is empty."""
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
    require(is_text, f"{where}: column {name!r} holds {kind}, not text")
    return ["" if value is None else value for value in column.to_pylist()]


def _labels(
    spec: TaskSpec, columns: SourceColumns, column: pa.ChunkedArray
) -> tuple[np.ndarray, np.ndarray, dict[int, Any]]:
    """Return labels, the state of each row, and the unknown values seen, by row.

    Distinct values are looked up once, then spread over the rows.
    """
    encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values: list[Any] = encoded.dictionary.to_pylist()
    codes = np.asarray(encoded.indices, dtype=np.int64)
    looked_up = [_look_up(spec, columns, value) for value in values] or [(0.0, NO_LABEL)]
    kind = np.int64 if spec.labels is not None else np.float64
    labels = np.array([label for label, _ in looked_up], kind)[codes]
    state = np.array([outcome for _, outcome in looked_up], np.int64)[codes]
    unknown = {int(row): values[codes[row]] for row in np.flatnonzero(state == UNKNOWN)[:1000]}
    return labels, state, unknown


def _answers(
    table: pa.Table, label: str, start: str, contexts: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, dict[int, Any]]:
    """Return the answers of each row, its state, and those that are none, by row."""
    texts, starts = table.column(label).to_pylist(), table.column(start).to_pylist()
    values = list(zip(texts, starts, strict=True))
    found = [answers_in(context, *row) for context, row in zip(contexts, values, strict=True)]
    states = [UNKNOWN if row is None else KEPT if row else NO_LABEL for row in found]
    state = np.array(states, np.int64)
    unknown = {int(row): values[row] for row in np.flatnonzero(state == UNKNOWN)[:1000]}
    return np.fromiter(found, object, len(found)), state, unknown


def _look_up(spec: TaskSpec, columns: SourceColumns, value: Any) -> tuple[float, int]:
    """Return (label, KEPT) of a source's value, or (0, why there is none).

    Exact names only: a number is an index into the task's labels unless ``values`` maps it; True
    and 1.0 are not 1.
    """
    if value is None or value == "":
        return 0, NO_LABEL
    key = str(value)
    if key in columns.exclude:
        return 0, EXCLUDED
    if spec.labels is None:
        return _score(spec, columns.values.get(key, value))
    name = columns.values.get(key)
    if name is None and isinstance(value, str):
        name = value if value in spec.labels else _by_pattern(columns.values, value)
    if name is not None:
        return (spec.labels.index(name), KEPT) if name in spec.labels else (0, UNKNOWN)
    by_index = columns.numbers_are_indices and not columns.values
    if not by_index or type(value) is not int or not 0 <= value < len(spec.labels):
        return 0, UNKNOWN
    return value, KEPT


def _by_pattern(values: Mapping[str, str], value: str) -> str | None:
    """Return what the first matching pattern with a ``*`` says."""
    for pattern, name in values.items():
        if "*" in pattern and fnmatchcase(value, pattern):
            return name
    return None


def _resolve(columns: SourceColumns, names: Sequence[str]) -> SourceColumns:
    """Return the columns with a label pattern replaced by the one name that it matches."""
    matches = [name for name in names if fnmatchcase(name, columns.label)]
    is_pattern = "*" in columns.label and columns.label not in names and len(matches) == 1
    return replace(columns, label=matches[0]) if is_pattern else columns


def _score(spec: TaskSpec, value: Any) -> tuple[float, int]:
    """Return a regression label within the task's range."""
    low, high = spec.score_range or (0.0, 0.0)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0, UNKNOWN
    good = low <= number <= high and not isinstance(value, bool)
    return (number, KEPT) if good else (0, UNKNOWN)


def _refuse_unknown(
    name: str,
    spec: TaskSpec,
    columns: SourceColumns,
    source: SourceTable,
    state: np.ndarray,
    seen: Mapping[int, Any],
) -> None:
    """Stop at unknown labels, unless they may be dropped."""
    rows = np.flatnonzero(state == UNKNOWN)
    if not len(rows) or "unknown_label" in columns.drop:
        return
    values = sorted({repr(seen[int(row)]) for row in rows if int(row) in seen})
    raise UserError(
        f"task {name!r}: {source.where} line {source.lines[rows[0]]} has label "
        f"{seen[int(rows[0])]!r}, which is not one of the task's ({spec.wanted}); "
        f"{len(rows)} rows hold {', '.join(values[:10])}{' ...' if len(values) > 10 else ''}. "
        "Map them with values:, exclude them with exclude:, or say drop: [unknown_label] in the "
        "task's YAML"
    )


def _duplicates(rows: Rows, state: np.ndarray, account: Account, *, drop: bool) -> None:
    """Count texts that stand twice in a split, with the same label or with another one."""
    kept = np.flatnonzero(state == KEPT)
    _, first, group = np.unique(rows.keys[kept], return_index=True, return_inverse=True)
    is_later = first[group] != np.arange(len(kept))
    is_same = rows.labels[kept] == rows.labels[kept][first[group]]
    account.repeated = int((is_later & is_same).sum())
    account.contradicting = int((is_later & ~is_same).sum())
    if drop:
        state[kept[is_later & is_same]] = DUPLICATE


assert set(REASONS.values()) | {"ragged"} >= set(DROPPABLE)
