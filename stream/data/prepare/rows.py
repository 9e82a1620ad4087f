"""Row accounting: every row of a source is either kept, or dropped for a reason that is counted.

N is the number of rows of a source table. Always, read = kept + dropped.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from stream.config.source import DROPPABLE, SourceColumns
from stream.config.task import TaskSpec
from stream.data.prepare.label_names import by_pattern, resolved, with_label_names
from stream.data.spans.tokens import answers_in, unpacked
from stream.data.table import Account, SourceTable
from stream.data.task import Rows
from stream.errors import UserError, require

pc: Any = pyarrow.compute  # a type checker does not see functions that are created at import
# Line breaks, quotes and (of UTF-16) characters; a quote may still be doubled as in CSV.
ESCAPE = re.compile(r'\\(?:r\\n|n|""?)|((?:\\u[0-9a-fA-F]{4})+)')
# The outcome of a row: kept, or dropped for one of the reasons below.
KEEP, NO_TEXT, NO_LABEL, UNKNOWN, EXCLUDED, DUPLICATE = range(6)
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
    """Turn a source table into the rows of a task, and account for every row.

    Args:
        name: the task's name, for messages.
        spec: the task's specification.
        columns: what the columns of the source mean.
        source: the table.

    Returns:
        The rows that are kept, their lines in the source (int64), and the account.

    Raises:
        UserError: a column is missing, or the task's YAML does not allow to drop rows with an
            unknown label or a wrong number of fields; the message names lines and values.
    """
    table = source.table if columns.start is None else unpacked(source)
    where = source.where
    columns = with_label_names(name, spec, resolved(columns, replace(source, table=table)), source)
    require(len(columns.text) > 0, f"task {name!r}: its YAML names no column of text for {where}")
    hint = f"; {len(source.ragged)} lines have more or fewer fields (set skip in the dialect to "
    hint = f"{hint}leave out lines above the table)" if source.ragged else ""
    used = [column for of_field in columns.text_columns for column in of_field]
    for column in filter(None, [*used, columns.label, columns.start]):
        require(
            column in table.column_names,
            f"task {name!r}: {where} has no column {column!r}; it has {table.column_names}{hint}",
        )
    for column in used:
        require(
            column not in source.provenance.get("json_text", "").split(", "),
            f"task {name!r}: {where}: column {column!r} holds values of several types, not text",
        )
    account = Account(where, source.dialect, provenance=dict(source.provenance))
    account.read = table.num_rows + len(source.ragged)
    _account_ragged(name, columns, source, account)
    texts = [_field(table, of_field, columns, where) for of_field in columns.text_columns]
    if columns.start is None:
        labels, outcome, seen = _labels(spec, columns, table.column(columns.label))
    else:
        labels, outcome, seen = _answers(table, columns.label, columns.start, texts[-1])
    rows = Rows(tuple(zip(*texts, strict=True)), labels)
    blank = np.array([not any(text.strip() for text in row) for row in rows.texts], bool)
    outcome[blank] = NO_TEXT
    _check_unknown(name, spec, columns, source, outcome, seen)
    _count_duplicates(rows, outcome, account, drop="duplicate" in columns.drop)
    for code, reason in REASONS.items():
        account.drop(reason, source.lines[outcome == code].tolist())
    kept = np.flatnonzero(outcome == KEEP)
    account.kept = len(kept)
    account.check()
    return rows.select(kept), source.lines[kept], account


def _account_ragged(
    name: str, columns: SourceColumns, source: SourceTable, account: Account
) -> None:
    """Count rows with a wrong number of fields; raise UserError unless they may be dropped."""
    if source.ragged:
        first = source.ragged[0]
        require(
            "ragged" in columns.drop,
            f"task {name!r}: {source.where} line {first.line} has {first.found} fields instead of "
            f"{first.expected} ({len(source.ragged)} such lines); correct them, fix the "
            "dialect (skip: lines above the table; comment: lines that are no rows), or say "
            "drop: [ragged] in the task's YAML",
        )
    account.drop("ragged", [row.line for row in source.ragged])


def _field(table: pa.Table, names: Sequence[str], columns: SourceColumns, where: str) -> list[str]:
    """Return a text field as strings: one column, or several joined by a blank where not empty."""
    texts = [_texts(table.column(name), name, where) for name in names]
    if columns.unescape:
        texts = [[ESCAPE.sub(_unescaped, text) for text in column] for column in texts]
    if len(texts) == 1:
        return texts[0]
    return [" ".join(text for text in row if text.strip()) for row in zip(*texts, strict=True)]


def _unescaped(found: re.Match) -> str:
    """Return what an escape in a text stands for."""
    if found[1]:
        units = bytes.fromhex(found[1].replace(r"\u", ""))
        return units.decode("utf-16-be", "replace")
    return '"' if '"' in found[0] else "\n"


def _texts(column: pa.ChunkedArray, name: str, where: str) -> list[str]:
    """Return a text column as strings; a missing text becomes ""."""
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
    what = "bytes that are not UTF-8" if "binary" in str(kind) else str(kind)
    require(is_text, f"{where}: column {name!r} holds {what}, not text")
    return ["" if value is None else value for value in column.to_pylist()]


def _labels(
    spec: TaskSpec, columns: SourceColumns, column: pa.ChunkedArray
) -> tuple[np.ndarray, np.ndarray, dict[int, Any]]:
    """Return the label and the outcome of each row, and the unknown values by row.

    Each distinct value is looked up once.
    """
    encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values: list[Any] = encoded.dictionary.to_pylist()
    codes = np.asarray(encoded.indices, dtype=np.int64)
    if not columns.values and not any(
        key in (spec.labels or ()) for v in values for key in spellings(v)
    ):
        values = _without_gaps(values)
    looked_up = [_look_up(spec, columns, value) for value in values] or [(0.0, NO_LABEL)]
    kind = np.int64 if spec.labels is not None else np.float64
    labels = np.array([label for label, _ in looked_up], kind)[codes]
    outcome = np.array([reason for _, reason in looked_up], np.int64)[codes]
    unknown = {int(row): values[codes[row]] for row in np.flatnonzero(outcome == UNKNOWN)[:1000]}
    return labels, outcome, unknown


def _without_gaps(values: list[Any]) -> list[Any]:
    """Return integers that became floats because some values are missing, as pandas does it."""
    present = [value for value in values if not is_missing(value)]
    are_whole = all(type(value) is float and value.is_integer() for value in present)
    if len(present) == len(values) or not are_whole:
        return values
    return [None if is_missing(value) else int(value) for value in values]


def is_missing(value: Any) -> bool:
    """Return whether a label is none: null, an empty text, or NaN."""
    return value is None or value == "" or value != value  # noqa: PLR0124 - NaN is not itself


def _answers(
    table: pa.Table, label: str, start: str, contexts: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, dict[int, Any]]:
    """Return the answers and the outcome of each row, and the invalid values by row."""
    texts, starts = table.column(label).to_pylist(), table.column(start).to_pylist()
    values = list(zip(texts, starts, strict=True))
    answers = [answers_in(context, *row) for context, row in zip(contexts, values, strict=True)]
    outcomes = [UNKNOWN if row is None else KEEP if row else NO_LABEL for row in answers]
    outcome = np.array(outcomes, np.int64)
    unknown = {int(row): values[row] for row in np.flatnonzero(outcome == UNKNOWN)[:1000]}
    return np.fromiter(answers, object, len(answers)), outcome, unknown


def _look_up(spec: TaskSpec, columns: SourceColumns, value: Any) -> tuple[float, int]:
    """Return (label, KEEP) for a value of the source, or (0, the reason for dropping its row).

    Names must match exactly. An integer that ``values`` does not map is an index into the task's
    labels (not on the hub); True and 1.0 are not the integer 1. NaN is no value.
    """
    if is_missing(value):
        return 0, NO_LABEL
    keys = spellings(value)
    if any(key in columns.exclude for key in keys):
        return 0, EXCLUDED
    name = next((columns.values[key] for key in keys if key in columns.values), None)
    if spec.labels is None:
        return _score(spec, value if name is None else name)
    if name is None and type(value) is not int:
        name = next((key for key in keys if key in spec.labels), None)
    if name is None and isinstance(value, str):
        name = by_pattern(columns.values, value)
    if name is not None:
        return (spec.labels.index(name), KEEP) if name in spec.labels else (0, UNKNOWN)
    by_index = columns.numbers_are_indices and not columns.values
    if not by_index or type(value) is not int or not 0 <= value < len(spec.labels):
        return 0, UNKNOWN
    return value, KEEP


def spellings(value: Any) -> list[str]:
    """Return how a value may be written in a task's YAML, such as ``1.0`` or ``1``."""
    keys = [str(value)]
    if isinstance(value, bool):
        keys.append(str(value).lower())
    elif isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        keys.append(str(int(value)))
    return keys


def _score(spec: TaskSpec, value: Any) -> tuple[float, int]:
    """Return (score, KEEP), or (0, UNKNOWN) for a value that is no score in the task's range."""
    low, high = spec.score_range or (0.0, 0.0)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0, UNKNOWN
    is_valid = low <= number <= high and not isinstance(value, bool)
    return (number, KEEP) if is_valid else (0, UNKNOWN)


def _check_unknown(
    name: str,
    spec: TaskSpec,
    columns: SourceColumns,
    source: SourceTable,
    outcome: np.ndarray,
    seen: Mapping[int, Any],
) -> None:
    """Raise UserError for unknown labels, unless their rows may be dropped."""
    rows = np.flatnonzero(outcome == UNKNOWN)
    if not len(rows) or "unknown_label" in columns.drop:
        return
    values = sorted({repr(seen[int(row)]) for row in rows if int(row) in seen})
    raise UserError(
        f"task {name!r}: {source.where} line {source.lines[rows[0]]} has label "
        f"{seen[int(rows[0])]!r}, which is not one of the task's ({spec.valid_labels}); "
        f"{len(rows)} rows hold {', '.join(values[:10])}{' ...' if len(values) > 10 else ''}. "
        "Map them with values:, exclude them with exclude:, or say drop: [unknown_label] in the "
        "task's YAML"
    )


def _count_duplicates(rows: Rows, outcome: np.ndarray, account: Account, *, drop: bool) -> None:
    """Count texts that occur twice in a split, with the same label or with another one."""
    kept = np.flatnonzero(outcome == KEEP)
    same, other = repeats(rows.keys[kept], rows.labels[kept])
    account.repeated, account.contradicting = int(same.sum()), int(other.sum())
    if drop:
        outcome[kept[same]] = DUPLICATE


def repeats(keys: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have the text of an earlier one, bool [N]: with its label, with another.

    Args:
        keys: the `text_key` of each row, uint64 [N].
        labels: the label of each row, [N].
    """
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    is_later = first[group] != np.arange(len(keys))
    is_same = labels == labels[first[group]]
    return is_later & is_same, is_later & ~is_same


assert set(REASONS.values()) | {"ragged"} >= set(DROPPABLE)
