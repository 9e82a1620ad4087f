"""Rows of delimited text and of JSON, each with the line on which it starts.

Delimited text is read twice: by Python's strict csv reader, which knows lines and faults but whose
rows are dropped at once, and by pyarrow, which builds the columns without Python objects. Where the
two differ in the number of rows, that is an error.
"""

import csv
import io
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from stream.errors import UserError, require
from stream.tasks import dialect
from stream.tasks.dialect import DialectSpec
from stream.tasks.table import Ragged, SourceTable

BLOCK_BYTES = 1 << 23
MAX_BLOCK_BYTES = 2**31 - 1
FEW_RAGGED = 0.02
FEW_WRAPPED = 0.2


@dataclass(frozen=True)
class Audit:
    """What the csv reader saw.

    Attributes:
        lines: line on which each row starts; empty lines are no rows.
        widths: number of fields of each row.
        spans: the line of the first row that runs over a line end, or 0.
        fault: line and nature of what ended the reading early, or None.
    """

    lines: np.ndarray
    widths: np.ndarray
    spans: int
    fault: tuple[int, str] | None

    def regular(self) -> float:
        """Return the share of rows with the commonest number of fields, 0 if that is one."""
        width = np.bincount(self.widths).argmax() if len(self.widths) else 0
        return float((self.widths == width).mean()) if width > 1 else 0.0


def audit(data: bytes, delimiter: str, quoting: bool) -> Audit:  # noqa: FBT001 - the dialect's
    """Walk through UTF-8 text with Python's strict csv reader."""
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    quotes = csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE
    reader = csv.reader(stream, delimiter=delimiter, quoting=quotes, strict=True)
    lines, widths, start, spans, fault = array("q"), array("q"), 1, 0, None
    with dialect.wide_fields():
        try:
            for row in reader:
                if row:
                    lines.append(start)
                    widths.append(len(row))
                    spans = spans or start * (reader.line_num > start)
                start = reader.line_num + 1
        except csv.Error as error:
            fault = (start, str(error))
    return Audit(np.array(lines, np.int64), np.array(widths, np.int64), spans, fault)


def settle_quoting(
    data: bytes, delimiter: str, fixed: bool | None, where: str
) -> tuple[bool, Audit]:
    """Decide whether quote characters enclose fields, over the whole file.

    They do unless that reading breaks, or makes rows run over line ends, while every line by itself
    is a row of the same width and few fields are enclosed on both sides: then they are text.

    Raises:
        UserError: the quotes break where they must enclose, or both readings are as good.
    """
    if fixed is False:
        return False, audit(data, delimiter, False)
    quoted = audit(data, delimiter, True)
    if quoted.fault is None and (fixed or not quoted.spans):
        return True, quoted
    if fixed is None and not _mostly_wrapped(data, delimiter):
        plain = audit(data, delimiter, False)
        if quoted.fault and plain.regular() >= 1 - FEW_RAGGED:
            return False, plain
        if quoted.spans and plain.regular() == 1:
            require(
                delimiter in "\t|",
                f"{where}: line {quoted.spans}: a quoted field runs over a line end, but every "
                "line is a whole row if quotes are text; set quoting to true or false",
            )
            return False, plain
    if quoted.fault is None:
        return True, quoted
    line, what = quoted.fault
    raise UserError(
        f"{where}: line {line}: the quotes of the row that starts here are broken ({what}); "
        "mend it, or set quoting to false if quotes are text"
    )


def _mostly_wrapped(data: bytes, delimiter: str) -> bool:
    """Tell whether many rows have a field with a quote at both ends."""
    rows = dialect.sample_rows(dialect.sample_of(data), delimiter, quoting=False)
    wrapped = sum(any(len(c) > 1 and c[0] == c[-1] == '"' for c in row) for row in rows)
    return wrapped > FEW_WRAPPED * len(rows)


def read_delimited(data: bytes, encoding: str, fixed: DialectSpec, where: str) -> SourceTable:
    """Read UTF-8 text of delimited fields; ``encoding`` is what it was in, for the record."""
    sample = dialect.sample_of(data)
    delimiter = dialect.choose_delimiter(sample, fixed, where)
    quoting, seen = settle_quoting(data, delimiter, fixed.quoting, where)
    require(len(seen.lines) > 0, f"{where}: empty, it has no rows")
    rows = dialect.sample_rows(sample, delimiter, quoting)
    header = dialect.has_header(rows) if fixed.header is None else fixed.header
    if header:
        names = dialect.unique_names(rows[0])
    else:
        width = Counter(len(row) for row in rows).most_common(1)[0][0]
        names = [f"column_{number}" for number in range(1, width + 1)]
    table = _columns(data, names, delimiter, (quoting, seen.spans > 0), where)
    good = seen.widths == len(names)
    require(
        table.num_rows == good.sum(),
        f"{where}: two readers disagree, {table.num_rows} and {good.sum()} rows of {len(names)} "
        "fields; set the dialect",
    )
    ragged = tuple(
        Ragged(line, len(names), found)
        for line, found in zip(seen.lines[~good].tolist(), seen.widths[~good].tolist(), strict=True)
    )
    words = [
        encoding,
        {char: word for word, char in dialect.DELIMITERS.items()}.get(delimiter, repr(delimiter)),
        "quoted" if quoting else "quotes are text",
        "header" if header else "no header",
    ]
    first = int(header)
    return SourceTable(
        table.slice(first), where, seen.lines[good][first:], ragged, ", ".join(words)
    )


def _columns(
    data: bytes, names: list[str], delimiter: str, quotes: tuple[bool, bool], where: str
) -> pa.Table:
    """Return every row of the right width (the header's too) as columns of text."""
    quoting, spans = quotes
    parse = pc.ParseOptions(
        delimiter=delimiter,
        quote_char='"' if quoting else False,
        newlines_in_values=spans,
        invalid_row_handler=lambda _: "skip",  # counted by the audit
    )
    convert = pc.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    for block in (BLOCK_BYTES, min(len(data) + 1, MAX_BLOCK_BYTES)):
        read = pc.ReadOptions(column_names=names, block_size=block)
        try:
            return pc.read_csv(pa.BufferReader(data), read, parse, convert)
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error) or block >= len(data):
                raise UserError(f"{where}: {error}") from error
    raise UserError(f"{where}: a row is longer than {MAX_BLOCK_BYTES} bytes")
