"""Parse delimited text into rows, each with the line on which it starts.

The text is read twice: by Python's strict csv reader (in `quoting`), which reports lines and faults
but stores no rows, and by pyarrow, which builds the columns without Python objects. It is an error
if the two readers find different numbers of rows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from stream.config.source import DialectSpec
from stream.data.sources import dialect
from stream.data.sources.dialect import Dialect
from stream.data.sources.preamble import clear_top, title_rows
from stream.data.sources.quoting import Audit, settle
from stream.data.table import Encoding, Ragged, SourceTable
from stream.errors import UserError, require
from stream.formatting import count

pc: Any = pyarrow.compute  # a type checker does not see functions that are created at import
BLOCK_BYTES = 1 << 23
MAX_BLOCK_BYTES = 2**31 - 1
ESCAPED = rb'\\(?:[\\"\'\r\n]|%b)'  # what a backslash stands before if it escapes


@dataclass(frozen=True)
class Layout:
    """Where the rows of a table begin, and what its columns are called.

    Attributes:
        names: the names of the columns.
        first: how many rows stand above the first row of data.
        words: what was found, in words.
        is_numbered: whether the first column has no name, and should count the rows.
        is_closed: whether the last column has no name, and should be empty.
    """

    names: list[str]
    first: int
    words: tuple[str, ...]
    is_numbered: bool = False
    is_closed: bool = False

    def check(self, table: pa.Table, where: str) -> None:
        """Raise UserError unless columns without a name contain what the sample shows."""
        expected = None
        if self.is_numbered:
            expected = 0, pc.cast(pa.array(np.arange(1, table.num_rows + 1)), pa.string())
        elif self.is_closed:
            expected = -1, pa.array([""] * table.num_rows, pa.string())
        if expected and not table.column(expected[0]).combine_chunks().equals(expected[1]):
            raise UserError(
                f"{where}: rows have {len(self.names)} fields, the header {len(self.names) - 1}; "
                "correct it, or set header to false"
            )


def _layout(rows: list[list[str]], widths: np.ndarray, spec: DialectSpec) -> Layout:
    """Find the title, the header and the first row of data.

    Args:
        rows: the first rows of the file.
        widths: the number of fields of every row.
        spec: the known parts of the dialect.
    """
    width = int(np.bincount(widths).argmax())
    titles = title_rows(rows, width) if spec.header is None else 0
    words = (count(titles, "title row"),) if titles else ()
    rows = rows[titles:]
    if not (dialect.has_header(rows) if spec.header is None else spec.header):
        names = [f"column_{number}" for number in range(1, width + 1)]
        return Layout(names, titles, ("no header", *words))
    header, below = rows[0], rows[1:]
    first, words = titles + 1, ("header", *words, *dialect.twins(header))
    if not header[-1].strip() and len(widths) > first and (widths[first:] == len(header) - 1).all():
        header, words = header[:-1], (*words, "a delimiter after the header")
    if len(widths) > first and (widths[first:] == len(header) + 1).all():
        if all(row[0] == str(number) for number, row in enumerate(below, start=1)):
            names = dialect.unique_names(["", *header])
            return Layout(names, first, (*words, "row numbers"), is_numbered=True)
        if not any(row[-1] for row in below):
            names = dialect.unique_names([*header, ""])
            return Layout(names, first, (*words, "a delimiter after each row"), is_closed=True)
    return Layout(dialect.unique_names(header), first, words)


def read_delimited(data: bytes, encoding: Encoding, spec: DialectSpec, where: str) -> SourceTable:
    """Read delimited text.

    Args:
        data: the file as UTF-8.
        encoding: its original encoding.
        spec: the known parts of the dialect; the rest is detected.
        where: the file's path, for messages.

    Raises:
        UserError: the file is empty, or its dialect cannot be determined.
    """
    data, spec, above = clear_top(data, spec, where)
    delimiter = dialect.choose_delimiter(dialect.sample_of(data), spec, where)
    char = dialect.stand_in(delimiter, data, where)
    if char != delimiter:
        data = data.replace(delimiter.encode(), char.encode())
    form, audited = settle(data, char, spec, where)
    del data
    require(len(audited.lines) > 0, f"{where}: empty, it has no rows")
    rows = dialect.sample_rows(dialect.sample_of(audited.data), form)
    rows = [[cell.replace(char, delimiter) for cell in row] for row in rows]
    layout = _layout(rows, audited.widths, spec)
    table = _columns(audited, layout.names, form, where)
    is_regular = audited.widths == len(layout.names)
    require(
        table.num_rows == is_regular.sum(),
        f"{where}: two readers disagree, {table.num_rows} and {is_regular.sum()} rows of "
        f"{len(layout.names)} fields; set the dialect",
    )
    table = table.slice(int(is_regular[: layout.first].sum()))
    lines, widths = audited.lines[layout.first :], audited.widths[layout.first :]
    is_regular = is_regular[layout.first :]
    layout.check(table, where)
    table, words = _final_values(table, (char, delimiter), spec.null_value)
    if form.escape is None and re.search(ESCAPED % re.escape(char.encode()), audited.data):
        words.append("backslashes are text")
    ragged = tuple(
        Ragged(line, len(layout.names), found)
        for line, found in zip(
            lines[~is_regular].tolist(), widths[~is_regular].tolist(), strict=True
        )
    )
    name = dialect.NAMES_OF.get(delimiter, repr(delimiter))
    if form.comment is not None:
        above.append(count(audited.comments, "comment line"))
    said = [str(encoding), name, *_quote_words(form), *layout.words, *above, *words]
    settled = replace(
        spec,
        encoding=encoding.name,
        delimiter=delimiter,
        quoting=form.quote is not None,
        header="header" in layout.words,
        quote=form.quote,
        escape=form.escape,
    )
    return SourceTable(
        table,
        where,
        lines[is_regular],
        ragged,
        ", ".join(said),
        settled=settled,
        encoding=encoding,
    )


def _quote_words(form: Dialect) -> Iterator[str]:
    """Yield how fields are enclosed and escaped, in words."""
    if form.quote is None:
        yield "quotes are text"
    else:
        yield "quoted" if form.quote == '"' else f"quoted with {form.quote}"
    if form.escape is not None:
        yield f"escaped with {form.escape}"


def _final_values(
    table: pa.Table, delimiter: tuple[str, str], null_value: str | None
) -> tuple[pa.Table, list[str]]:
    """Put long delimiters back into texts, and empty the values that stand for no value.

    Args:
        table: columns of text.
        delimiter: its stand-in, and the delimiter itself.
        null_value: the value that stands for no value, if it is set.

    Returns:
        The table, and what was found, in words.
    """
    char, original = delimiter
    words, emptied = [], 0
    for at, name in enumerate(table.column_names):
        column = table.column(at)
        if char != original:
            column = pc.replace_substring(column, char, original)
        if null_value is not None:
            is_null = pc.equal(column, null_value)
            emptied += pc.sum(is_null).as_py() or 0
            column = pc.if_else(is_null, "", column)
        elif not words and pc.any(pc.equal(column, "\\N")).as_py():
            words.append("\\N is text (set null_value if it stands for no value)")
        table = table.set_column(at, name, column)
    if null_value is not None:
        words.append(f"{null_value!r} is no value in {count(emptied, 'field')}")
    return table, words


def _columns(audited: Audit, names: list[str], form: Dialect, where: str) -> pa.Table:
    """Return every row with the right number of fields (the header, too) as columns of text."""
    parse = pyarrow.csv.ParseOptions(
        delimiter=form.delimiter,
        quote_char=form.quote or False,
        escape_char=form.escape or False,
        newlines_in_values=audited.multiline > 0,
        invalid_row_handler=lambda _: "skip",  # counted by the audit
    )
    convert = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    data = audited.data
    for block in (BLOCK_BYTES, min(len(data) + 1, MAX_BLOCK_BYTES)):
        read = pyarrow.csv.ReadOptions(column_names=names, block_size=block)
        try:
            return pyarrow.csv.read_csv(pa.BufferReader(data), read, parse, convert)
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error) or block >= len(data):
                raise UserError(f"{where}: {error}") from error
    raise UserError(f"{where}: a row is longer than {MAX_BLOCK_BYTES} bytes")
