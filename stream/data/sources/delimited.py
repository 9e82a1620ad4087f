"""Rows of delimited text and of JSON, each with the line on which it starts.

Delimited text is read twice: by Python's strict csv reader, which knows lines and faults but whose
rows are dropped at once, and by pyarrow, which builds the columns without Python objects. Where the
two differ in the number of rows, that is an error.
"""

import csv
import io
import json
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from stream.config.task import DialectSpec
from stream.data.sources import dialect
from stream.data.table import Ragged, SourceTable
from stream.errors import UserError, require

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


def audit(data: bytes, delimiter: str, *, quoting: bool) -> Audit:
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
    data: bytes, delimiter: str, spec: DialectSpec, where: str
) -> tuple[bool, Audit]:
    """Decide whether quote characters enclose fields, over the whole file.

    They are text if every line by itself is a row of the same width, few fields are enclosed on
    both sides, and enclosing breaks, makes rows run over line ends, or serves no purpose anywhere.

    Raises:
        UserError: the quotes break where they must enclose, or both readings are as good.
    """
    if spec.quoting is False:
        return False, audit(data, delimiter, quoting=False)
    quoted = audit(data, delimiter, quoting=True)
    if spec.quoting is None and b'"' in data and _lines_may_be_rows(data, delimiter):
        plain = audit(data, delimiter, quoting=False)
        if quoted.fault and plain.regular() >= 1 - FEW_RAGGED:
            return False, plain
        if plain.regular() == 1 and (quoted.spans or not _serves(data, delimiter)):
            require(
                not quoted.spans or delimiter in "\t|",
                f"{where}: line {quoted.spans}: a quoted field runs over a line end, but every "
                "line is a whole row if quotes are text; set quoting to true or false",
            )
            return False, plain
    if quoted.fault:
        line, what = quoted.fault
        raise UserError(
            f"{where}: line {line}: the quotes of the row that starts here are broken ({what}); "
            "mend it, or set quoting to false if quotes are text"
        )
    return True, quoted


def _lines_may_be_rows(data: bytes, delimiter: str) -> bool:
    """Tell from a sample whether lines are rows, few of which have a field within quotes."""
    rows = dialect.sample_rows(dialect.sample_of(data), delimiter, quoting=False)
    wrapped = sum(any(len(c) > 1 and c[0] == c[-1] == '"' for c in row) for row in rows)
    commonest = max(Counter(len(row) for row in rows).values(), default=0)
    return wrapped <= FEW_WRAPPED * len(rows) and commonest >= (1 - FEW_RAGGED) * len(rows)


def _serves(data: bytes, delimiter: str) -> bool:
    """Tell whether a quote that opens a field has others doubled behind it, or encloses nothing."""
    char = re.escape(delimiter.encode())
    opened = rb'(?:^|[\r\n]|%b)"(?:[^"\r\n]*""|"(?=[\r\n]|%b|$))' % (char, char)
    return re.search(opened, data) is not None


def read_delimited(data: bytes, encoding: str, fixed: DialectSpec, where: str) -> SourceTable:
    """Read UTF-8 text of delimited fields; ``encoding`` is what it was in, for the record."""
    sample = dialect.sample_of(data)
    delimiter = dialect.choose_delimiter(sample, fixed, where)
    quoting, seen = settle_quoting(data, delimiter, fixed, where)
    require(len(seen.lines) > 0, f"{where}: empty, it has no rows")
    rows = dialect.sample_rows(sample, delimiter, quoting=quoting)
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
    names_of = {char: word for word, char in dialect.DELIMITERS.items()}
    quotes = "quoted" if quoting else "quotes are text"
    words = [encoding, names_of.get(delimiter, repr(delimiter)), quotes]
    words.append("header" if header else "no header")
    lines = seen.lines[good][int(header) :]
    return SourceTable(table.slice(int(header)), where, lines, ragged, ", ".join(words))


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


JSON_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


def read_json(data: bytes, encoding: str, where: str, *, lines: bool) -> SourceTable:
    """Read JSON Lines, or (unless ``lines``) what may also be an array of objects.

    A column of one type (strings, whole or all numbers, booleans) has that type, with nulls also
    for absent keys. Any other column, of mixed types or of lists and objects, holds each value as
    its JSON text, so that 1, "1" and true stay apart; ``provenance["json_text"]`` names it.
    """
    whole = not lines and data.lstrip().startswith(b"[")
    starts, columns = array("q"), dict[str, list]()
    for start, item in _json_rows(data, where, whole=whole):
        require(isinstance(item, dict), f"{where}: line {start}: not an object: {str(item)[:60]}")
        for name, value in item.items():
            column = columns.setdefault(name, [])
            column.extend([None] * (len(starts) - len(column)))
            column.append(value)
        starts.append(start)
    require(len(columns) > 0, f"{where}: empty, it has no rows")
    arrays, texts = {}, []
    for old, name in zip(list(columns), dialect.unique_names(list(columns)), strict=True):
        values = columns.pop(old)
        values.extend([None] * (len(starts) - len(values)))
        arrays[name], is_text = _json_column(values, f"{where}: column {name!r}")
        texts.extend([name] * is_text)
    nested = not lines and len(starts) == 1 and set(texts) == set(arrays)
    require(not nested, f"{where}: one JSON object of columns or lists; rows are needed")
    words = f"{encoding}, {'JSON array' if whole else 'JSON Lines'}"
    facts = {"json_text": ", ".join(texts)} if texts else {}
    return SourceTable(pa.table(arrays), where, np.array(starts, np.int64), (), words, facts)


def _json_rows(data: bytes, where: str, *, whole: bool) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line (or item of the array) and what it holds."""
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    line = 0
    try:
        if whole:
            yield from enumerate(json.load(stream, object_pairs_hook=_object), start=1)
            return
        for line, text in enumerate(stream, start=1):
            if text.strip():
                yield line, json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        at = f"line {line}: " if line else ""
        raise UserError(f"{where}: {at}not JSON as it should be: {error}") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object, with nothing lost to a repeated key."""
    item = dict(pairs)
    if len(item) < len(pairs):
        raise ValueError(f"a key stands twice in {[key for key, _ in pairs]}")
    return item


def _json_column(values: list, where: str) -> tuple[pa.Array, bool]:
    """Return a column, and whether it holds JSON texts."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.nulls(len(values)), False
    kind = JSON_TYPES.get(float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else 0)
    try:
        with suppress(OverflowError, pa.ArrowInvalid):  # a whole number with too many digits
            if kind is not None:
                return pa.array(values, kind), False
        texts = [None if v is None else json.dumps(v, ensure_ascii=False) for v in values]
        return pa.array(texts, pa.string()), True
    except UnicodeEncodeError as error:
        raise UserError(f"{where}: a text holds half a surrogate pair ({error})") from error
