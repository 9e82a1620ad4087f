"""Parse delimited text and JSON into rows, each with the line on which it starts.

Delimited text is read twice: by Python's strict csv reader, which reports lines and faults (its
rows are not stored), and by pyarrow, which builds the columns without Python objects. It is an
error if the two readers find different numbers of rows.
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
MAX_RAGGED = 0.02  # share of rows with a wrong number of fields if quote characters are text
MAX_QUOTED = 0.2  # share of lines with a field in quotes if quote characters are text


@dataclass(frozen=True)
class Audit:
    """What Python's csv reader found in a file.

    Attributes:
        lines: the line on which each row starts, int64 [N]; empty lines are not rows.
        widths: the number of fields of each row, int64 [N].
        multiline: the line of the first row that continues after a line end, or 0.
        fault: the line and the message of the error that ended the reading, or None.
    """

    lines: np.ndarray
    widths: np.ndarray
    multiline: int
    fault: tuple[int, str] | None

    def regular(self) -> float:
        """Return the share of rows with the most common number of fields; 0 if that is one."""
        width = np.bincount(self.widths).argmax() if len(self.widths) else 0
        return float((self.widths == width).mean()) if width > 1 else 0.0


def audit(data: bytes, delimiter: str, *, quoting: bool) -> Audit:
    """Read UTF-8 text with Python's strict csv reader, without storing the rows."""
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    quotes = csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE
    reader = csv.reader(stream, delimiter=delimiter, quoting=quotes, strict=True)
    lines, widths, start, multiline, fault = array("q"), array("q"), 1, 0, None
    with dialect.wide_fields():
        try:
            for row in reader:
                if row:
                    lines.append(start)
                    widths.append(len(row))
                    multiline = multiline or start * (reader.line_num > start)
                start = reader.line_num + 1
        except csv.Error as error:
            fault = (start, str(error))
    return Audit(np.array(lines, np.int64), np.array(widths, np.int64), multiline, fault)


def settle_quoting(
    data: bytes, delimiter: str, spec: DialectSpec, where: str
) -> tuple[bool, Audit]:
    """Decide from the whole file whether quote characters enclose fields or are text.

    They are text if every line is a row of the same width without quoting, few fields have quotes
    on both sides, and quoting either breaks, or joins lines, or is needed nowhere.

    Args:
        data: the file as UTF-8.
        delimiter: one character.
        spec: the known parts of the dialect; ``quoting`` may be set.
        where: the file's path, for messages.

    Returns:
        Whether quote characters enclose fields, and the audit with that reading.

    Raises:
        UserError: the quotes are broken although they must enclose fields, or both readings are
            equally plausible.
    """
    if spec.quoting is False:
        return False, audit(data, delimiter, quoting=False)
    quoted = audit(data, delimiter, quoting=True)
    if spec.quoting is None and b'"' in data and _lines_may_be_rows(data, delimiter):
        plain = audit(data, delimiter, quoting=False)
        if quoted.fault and plain.regular() >= 1 - MAX_RAGGED:
            return False, plain
        if plain.regular() == 1 and (quoted.multiline or not _quoting_is_needed(data, delimiter)):
            require(
                not quoted.multiline or delimiter in "\t|",
                f"{where}: line {quoted.multiline}: a quoted field runs over a line end, but every "
                "line is a whole row if quotes are text; set quoting to true or false",
            )
            return False, plain
    if quoted.fault:
        line, what = quoted.fault
        raise UserError(
            f"{where}: line {line}: the quotes of the row that starts here are broken ({what}); "
            "correct it, or set quoting to false if quotes are text"
        )
    return True, quoted


def _lines_may_be_rows(data: bytes, delimiter: str) -> bool:
    """Return whether, in a sample, lines look like rows and few have a field in quotes."""
    rows = dialect.sample_rows(dialect.sample_of(data), delimiter, quoting=False)
    quoted = sum(any(len(c) > 1 and c[0] == c[-1] == '"' for c in row) for row in rows)
    most_common = max(Counter(len(row) for row in rows).values(), default=0)
    return quoted <= MAX_QUOTED * len(rows) and most_common >= (1 - MAX_RAGGED) * len(rows)


def _quoting_is_needed(data: bytes, delimiter: str) -> bool:
    """Return whether a field that begins with a quote contains doubled quotes or is empty."""
    char = re.escape(delimiter.encode())
    opened = rb'(?:^|[\r\n]|%b)"(?:[^"\r\n]*""|"(?=[\r\n]|%b|$))' % (char, char)
    return re.search(opened, data) is not None


def read_delimited(data: bytes, encoding: str, spec: DialectSpec, where: str) -> SourceTable:
    """Read delimited text.

    Args:
        data: the file as UTF-8.
        encoding: its original encoding, for the record.
        spec: the known parts of the dialect; the rest is detected.
        where: the file's path, for messages.

    Raises:
        UserError: the file is empty, or its dialect cannot be determined.
    """
    sample = dialect.sample_of(data)
    delimiter = dialect.choose_delimiter(sample, spec, where)
    quoting, audited = settle_quoting(data, delimiter, spec, where)
    require(len(audited.lines) > 0, f"{where}: empty, it has no rows")
    rows = dialect.sample_rows(sample, delimiter, quoting=quoting)
    header = dialect.has_header(rows) if spec.header is None else spec.header
    if header:
        names = dialect.unique_names(rows[0])
    else:
        width = Counter(len(row) for row in rows).most_common(1)[0][0]
        names = [f"column_{number}" for number in range(1, width + 1)]
    table = _columns(data, names, delimiter, (quoting, audited.multiline > 0), where)
    is_regular = audited.widths == len(names)
    require(
        table.num_rows == is_regular.sum(),
        f"{where}: two readers disagree, {table.num_rows} and {is_regular.sum()} rows of "
        f"{len(names)} fields; set the dialect",
    )
    ragged = tuple(
        Ragged(line, len(names), found)
        for line, found in zip(
            audited.lines[~is_regular].tolist(), audited.widths[~is_regular].tolist(), strict=True
        )
    )
    names_of = {char: word for word, char in dialect.DELIMITERS.items()}
    quotes = "quoted" if quoting else "quotes are text"
    words = [encoding, names_of.get(delimiter, repr(delimiter)), quotes]
    words.append("header" if header else "no header")
    lines = audited.lines[is_regular][int(header) :]
    return SourceTable(table.slice(int(header)), where, lines, ragged, ", ".join(words))


def _columns(
    data: bytes, names: list[str], delimiter: str, quotes: tuple[bool, bool], where: str
) -> pa.Table:
    """Return every row with the right number of fields (the header, too) as columns of text."""
    quoting, has_multiline = quotes
    parse = pc.ParseOptions(
        delimiter=delimiter,
        quote_char='"' if quoting else False,
        newlines_in_values=has_multiline,
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
    """Read JSON Lines or an array of objects.

    A column whose values have one type (strings, integers, numbers, booleans) has that type; an
    absent key is null. Any other column (mixed types, lists, objects) contains each value as its
    JSON text, so that 1, "1" and true remain different; ``provenance["json_text"]`` names these
    columns.

    Args:
        data: the file as UTF-8.
        encoding: its original encoding, for the record.
        where: the file's path, for messages.
        lines: True for JSON Lines only; False accepts an array as well.

    Raises:
        UserError: the file is empty or is not JSON in one of these forms.
    """
    is_array = not lines and data.lstrip().startswith(b"[")
    starts, columns = array("q"), dict[str, list]()
    for start, item in _json_rows(data, where, is_array=is_array):
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
    words = f"{encoding}, {'JSON array' if is_array else 'JSON Lines'}"
    facts = {"json_text": ", ".join(texts)} if texts else {}
    return SourceTable(pa.table(arrays), where, np.array(starts, np.int64), (), words, facts)


def _json_rows(data: bytes, where: str, *, is_array: bool) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line (or array item), from 1, and its value."""
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    line = 0
    try:
        if is_array:
            yield from enumerate(json.load(stream, object_pairs_hook=_object), start=1)
            return
        for line, text in enumerate(stream, start=1):
            if text.strip():
                yield line, json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        at = f"line {line}: " if line else ""
        raise UserError(f"{where}: {at}not valid JSON: {error}") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; raise ValueError if a key occurs twice, so that no value is lost."""
    item = dict(pairs)
    if len(item) < len(pairs):
        raise ValueError(f"a key stands twice in {[key for key, _ in pairs]}")
    return item


def _json_column(values: list, where: str) -> tuple[pa.Array, bool]:
    """Return a column, and whether its values are JSON texts."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.nulls(len(values)), False
    kind = JSON_TYPES.get(float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else 0)
    try:
        with suppress(OverflowError, pa.ArrowInvalid):  # an integer with too many digits
            if kind is not None:
                return pa.array(values, kind), False
        texts = [None if v is None else json.dumps(v, ensure_ascii=False) for v in values]
        return pa.array(texts, pa.string()), True
    except UnicodeEncodeError as error:
        raise UserError(f"{where}: a text holds half a surrogate pair ({error})") from error
