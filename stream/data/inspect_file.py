"""Describe a user's labelled file, warn about likely problems, and write its task YAML."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from stream.config.task import DialectSpec
from stream.data.sources.files import read_table
from stream.data.table import SourceTable
from stream.errors import UserError, require

pc: Any = pyarrow.compute  # a type checker does not see functions that are created at import
LABEL_NAMES = re.compile(
    r"label|class|categor|target|sentiment|stance|tag|topic|^y$", re.IGNORECASE
)
MAX_LABELS = 200  # a column with more different values is not taken for the label
LABELS_SHOWN = 12
FEW_ROWS = 10  # warn about labels with fewer rows


@dataclass(frozen=True)
class Column:
    """What one column contains.

    Attributes:
        name: the column's name.
        kind: its Arrow type.
        distinct: the number of different values.
        blank: the number of rows with no value, or an empty one.
        mean_length: the mean number of characters.
        longest: the largest number of characters.
    """

    name: str
    kind: str
    distinct: int
    blank: int
    mean_length: float
    longest: int


@dataclass(frozen=True)
class Inspection:
    """A file, its columns, and which of them are the text and the label.

    Attributes:
        source: the file's rows.
        columns: all its columns.
        text: the names of the text columns.
        label: the name of the label column.
        counts: the number of rows of each label.
    """

    source: SourceTable
    columns: tuple[Column, ...]
    text: tuple[str, ...]
    label: str
    counts: dict[str, int]

    def lines(self) -> Iterator[str]:
        """Yield the report, line by line."""
        rows = self.source.table.num_rows
        yield f"{self.source.where}: {rows:,} rows, {self.source.dialect}"
        for column in self.columns:
            mark = "text " if column.name in self.text else ""
            mark = "label" if column.name == self.label else mark
            yield (
                f"  {mark:5} {column.name:24} {column.kind:8} {column.distinct:>8,} distinct  "
                f"{column.blank:>6,} blank  length {column.mean_length:.0f} (longest "
                f"{column.longest:,})"
            )
        yield f"labels in {self.label!r}: {len(self.counts)}"
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        for name, count in ranked[:LABELS_SHOWN]:
            yield f"  {count:>8,}  {name!r}"
        if len(ranked) > LABELS_SHOWN:
            yield f"           and {len(ranked) - LABELS_SHOWN} more"
        yield from self.warnings()

    def warnings(self) -> Iterator[str]:
        """Yield a warning for each likely problem."""
        for row in self.source.ragged[:5]:
            yield f"warning: line {row.line} has {row.found} fields instead of {row.expected}"
        by_name = {column.name: column for column in self.columns}
        for name in (*self.text, self.label):
            if by_name[name].blank:
                yield f"warning: {by_name[name].blank:,} rows have nothing in {name!r}"
        for names in _alike(self.counts):
            yield f"warning: labels that differ in case or blanks only: {names}"
        for name in (name for name, count in self.counts.items() if count < FEW_ROWS):
            yield f"warning: label {name!r} has only {self.counts[name]} rows"

    def task_yaml(self, name: str) -> str:
        """Return the task's YAML; all labels are quoted, and numbers are mapped to names."""
        path = Path(self.source.where).resolve()
        is_text = pa.types.is_string(self.source.table.schema.field(self.label).type)
        labels = sorted(self.counts)
        lines = [
            f"{name}:",
            f"  title: {json.dumps(name)}",
            f"  kind: {'single' if len(self.text) == 1 else 'pair'}",
            "  labels:",
            *(f"    - {json.dumps(label, ensure_ascii=False)}" for label in labels),
            "  metric: accuracy",
            f"  source: {json.dumps(str(path))}",
            "  files:",
            f"    folder: {json.dumps(str(path.parent))}",
            f"    splits: {{all: {json.dumps(path.name)}}}",
            f"    text: {json.dumps(list(self.text), ensure_ascii=False)}",
            f"    label: {json.dumps(self.label, ensure_ascii=False)}",
        ]
        if not is_text:
            lines.append("    values:")
            lines += [f"      {json.dumps(label)}: {json.dumps(label)}" for label in labels]
        return "\n".join(lines) + "\n"


def _alike(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that differ only in case or white space."""
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [group for group in folded.values() if len(group) > 1]


def inspect_file(
    path: Path, dialect: DialectSpec, text: tuple[str, ...] = (), label: str | None = None
) -> Inspection:
    """Read a file and describe its columns.

    Args:
        path: a file in any format that the ``files`` source reads.
        dialect: the known parts of a delimited file's dialect.
        text: the text columns; they are guessed if there are none.
        label: the label column; it is guessed if None.

    Raises:
        UserError: the file cannot be read, or has no text and no label column.
    """
    source = read_table(path, dialect)
    require(source.table.num_rows > 0, f"{path} has no rows")
    columns = tuple(_column(source.table, name) for name in source.table.column_names)
    names = [column.name for column in columns]
    for name in (*text, *([label] if label else [])):
        require(name in names, f"{path} has no column {name!r}; it has {names}")
    label = label or _guess_label(columns, source.table.num_rows, text, path)
    text = text or _guess_text(columns, label, path)
    values = source.table.column(label).value_counts().to_pylist()
    counts = {str(v["values"]): v["counts"] for v in values if v["values"] not in (None, "")}
    return Inspection(source, columns, text, label, counts)


def _column(table: pa.Table, name: str) -> Column:
    """Describe one column."""
    column = table.column(name)
    texts = column.cast(pa.string()) if not pa.types.is_nested(column.type) else None
    require(texts is not None, f"column {name!r} holds {column.type}, neither text nor number")
    lengths = pc.fill_null(pc.utf8_length(texts), 0)
    return Column(
        name,
        str(column.type),
        pc.count_distinct(column).as_py(),
        pc.sum(pc.equal(lengths, 0)).as_py() or 0,
        pc.mean(lengths).as_py() or 0.0,
        pc.max(lengths).as_py() or 0,
    )


def _guess_label(columns: tuple[Column, ...], rows: int, text: tuple[str, ...], path: Path) -> str:
    """Return the most likely label column: one with a typical name, then the fewest values."""
    candidates = [
        column
        for column in columns
        if column.name not in text and 2 <= column.distinct <= min(MAX_LABELS, max(rows // 2, 2))
    ]
    if not candidates:
        raise UserError(f"{path}: no column looks like a label; name one with --label COLUMN")
    return min(candidates, key=lambda c: (not LABEL_NAMES.search(c.name), c.distinct)).name


def _guess_text(columns: tuple[Column, ...], label: str, path: Path) -> tuple[str, ...]:
    """Return the most likely text column: the one with the longest texts."""
    candidates = [c for c in columns if c.name != label and "string" in c.kind]
    if not candidates:
        raise UserError(f"{path}: no column looks like text; name one with --text COLUMN")
    return (max(candidates, key=lambda column: column.mean_length).name,)
