"""Decide from a whole file which characters enclose its fields or escape others.

Python's strict csv reader counts the rows and fields of each reading that is possible.
"""

import csv
import io
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stream.config.source import DialectSpec
from stream.data.sources import dialect
from stream.data.sources.dialect import Dialect
from stream.errors import UserError, require

MAX_RAGGED = 0.02  # share of rows with a wrong number of fields if quote characters are text
MAX_QUOTED = 0.2  # share of lines with a field in quotes if quote characters are text
MAX_ENCLOSED = 0.8  # share of all fields that are in quotes if quote characters are text
IN_PROSE = ",; "  # delimiters that texts contain, so that their fields need quotes


@dataclass(frozen=True)
class Audit:
    """What Python's csv reader found in a file.

    Attributes:
        data: what was read: comment lines are empty, and a character that is no escape although
            it looks like one is itself escaped.
        lines: the line on which each row starts, int64 [N]; empty lines are not rows.
        widths: the number of fields of each row, int64 [N].
        multiline: the line of the first row that continues after a line end, or 0.
        fault: the line and the message of the error that ended the reading, or None.
        comments: how many lines are comments.
    """

    data: bytes
    lines: np.ndarray
    widths: np.ndarray
    multiline: int
    fault: tuple[int, str] | None
    comments: int = 0

    @property
    def width(self) -> int:
        """The most common number of fields; 0 without rows."""
        return int(np.bincount(self.widths).argmax()) if len(self.widths) else 0

    def regular(self) -> float:
        """Return the share of rows with the most common number of fields; 0 if that is one."""
        return float((self.widths == self.width).mean()) if self.width > 1 else 0.0

    def is_clean(self) -> bool:
        """Return whether the whole file was read, and all rows have the same number of fields."""
        return self.fault is None and self.regular() == 1


def audit(data: bytes, form: Dialect) -> Audit:
    """Read UTF-8 text with Python's strict csv reader, without storing the rows."""
    data, comments = _without_comments(data, form) if form.comment else (data, 0)
    if form.escape is not None:
        data = _escapes_made_explicit(data, form.escape, form)
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    reader = form.reader(stream, strict=True)
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
    starts, counts = np.array(lines, np.int64), np.array(widths, np.int64)
    return Audit(data, starts, counts, multiline, fault, comments)


def _without_comments(data: bytes, form: Dialect) -> tuple[bytes, int]:
    """Return the data with comment lines emptied, and their number.

    A line inside a quoted field is no comment.
    """
    mark, kept, is_start, number = str(form.comment), io.StringIO(newline=""), True, 0

    def lines() -> Iterator[str]:
        nonlocal is_start, number
        for line in io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline=""):
            is_comment = is_start and line.startswith(mark)
            kept.write(line[len(line.rstrip("\r\n")) :] if is_comment else line)
            number += is_comment
            if not is_comment:
                is_start = False
                yield line

    with dialect.wide_fields():
        for _ in form.reader(lines()):
            is_start = True
    return kept.getvalue().encode(), number


def _escapes_made_explicit(data: bytes, escape: str, form: Dialect) -> bytes:
    """Return the data with each escape character doubled that no special character follows.

    Parsers drop it there, although writers only put it before special characters: of a backslash
    and an n they would leave the n.
    """
    special = re.escape("".join(filter(None, (form.delimiter, form.quote or '"', escape))).encode())
    mark = re.escape(escape.encode())
    doubled = escape.encode() * 2
    pattern = rb"%b([%b\r\n])|%b" % (mark, special, mark)
    return re.sub(pattern, lambda found: found[0] if found[1] else doubled, data)


def settle(data: bytes, delimiter: str, spec: DialectSpec, where: str) -> tuple[Dialect, Audit]:
    """Decide from the whole file which characters enclose fields or escape, if any.

    Quotes are text if every line is a row of the same width without quoting, few fields have
    quotes on both sides, and quoting either breaks, or joins lines, or is needed nowhere. If the
    delimiter is rare in prose, many fields may have quotes, but not most of all columns. A
    backslash escapes, or an apostrophe encloses, if that alone makes all rows regular, or if
    apostrophes enclose a field in every row.

    Args:
        data: the file as UTF-8.
        delimiter: one character.
        spec: the known parts of the dialect.
        where: the file's path, for messages.

    Returns:
        The dialect, and the audit with it.

    Raises:
        UserError: the quotes are broken although they must enclose fields, or both readings are
            equally plausible.
    """
    form = Dialect(delimiter, spec.quote or '"', spec.escape, spec.comment)
    if spec.quoting is False:
        form = replace(form, quote=None)
        return form, audit(data, form)
    quoted = audit(data, form)
    plain_form = replace(form, quote=None)
    plain = None
    if spec.quoting is None and str(form.quote).encode() in data:
        is_torn = form.delimiter not in IN_PROSE and bool(quoted.fault or quoted.multiline)
        plain = audit(data, plain_form) if is_torn or _lines_may_be_rows(data, form) else None
    are_right = quoted.is_clean(), plain is not None and plain.regular() >= 1 - MAX_RAGGED
    escaping = _escaping_forms(data, form, spec, quoted)
    for other in (*escaping, *_apostrophe_forms(data, form, spec, are_right)):
        tried = audit(data, other)
        joins_rows = quoted.is_clean() and len(tried.lines) < len(quoted.lines)
        if tried.is_clean() and not joins_rows:
            return other, tried
    if plain is not None and _are_text(data, form, quoted, plain, where):
        return plain_form, plain
    if quoted.fault:
        line, what = quoted.fault
        raise UserError(
            f"{where}: line {line}: the quotes of the row that starts here are broken ({what}); "
            "correct it, or set quoting to false if quotes are text, or quote or escape in the "
            "dialect"
        )
    return form, quoted


def _are_text(data: bytes, form: Dialect, quoted: Audit, plain: Audit, where: str) -> bool:
    """Return whether quotes are text in a file whose lines may all be rows.

    Args:
        data: the file as UTF-8.
        form: the dialect with quotes that enclose fields.
        quoted: the audit with that dialect.
        plain: the audit with quotes as text.
        where: the file's path, for messages.

    Raises:
        UserError: both readings are equally plausible.
    """
    is_needed = _is_needed(data, form)
    if _lines_may_be_rows(data, form):
        if quoted.fault and plain.regular() >= 1 - MAX_RAGGED:
            return True
        are_text = plain.regular() == 1 and (quoted.multiline > 0 or not is_needed)
        is_sure = form.delimiter not in IN_PROSE
    else:
        are_text = plain.regular() == 1 and bool(quoted.fault or quoted.multiline)
        is_sure = _share_enclosed(data, form) <= MAX_ENCLOSED and not is_needed
        are_text = are_text and (is_sure or not quoted.fault)
    require(
        not are_text or not quoted.multiline or is_sure,
        f"{where}: line {quoted.multiline}: a quoted field runs over a line end, but every "
        "line is a whole row if quotes are text; set quoting to true or false",
    )
    return are_text


def _escaping_forms(
    data: bytes, form: Dialect, spec: DialectSpec, quoted: Audit
) -> Iterator[Dialect]:
    """Yield the dialects with backslashes that escape which are right if they fit a file.

    Args:
        data: the file as UTF-8.
        form: the dialect with the usual quotes.
        spec: the known parts of the dialect.
        quoted: the audit with ``form``.
    """
    has_quotes, *has_others = [
        f"\\{char}".encode() in data for char in (form.quote, form.delimiter, "\n", "\r")
    ]
    opened, _ = _opened(data, form)
    if spec.escape is not None or not (has_quotes or any(has_others)):
        return
    if quoted.is_clean():
        char, quote = (re.escape(str(c).encode()) for c in (form.delimiter, form.quote))
        other = rb"[^%b%b\r\n\\]" % (char, quote)
        bare = rb"(?:^|[\r\n]|%b)(?:%b|\\)*%b(?:\\\\)*\\%b" % (char, other, other, quote)
        in_one_line = opened and not quoted.multiline
        if has_quotes and in_one_line and re.search(bare, data):  # in a field without quotes
            yield replace(form, escape="\\")
        return
    escaping = replace(form, escape="\\")
    if not has_quotes and spec.quoting is None and _lines_may_be_rows(data, escaping):
        yield replace(escaping, quote=None)
    yield escaping


def _apostrophe_forms(
    data: bytes, form: Dialect, spec: DialectSpec, are_right: tuple[bool, bool]
) -> Iterator[Dialect]:
    """Yield the dialects with fields in apostrophes which are right if they fit a file.

    Args:
        data: the file as UTF-8.
        form: the dialect with the usual quotes.
        spec: the known parts of the dialect.
        are_right: whether the usual quotes, and quotes as text, fit the file.
    """
    form = replace(form, quote="'")
    opened, lines = _opened(data, form)
    if spec.quote is not None or spec.quoting is not None or not opened:
        return
    sample = "".join(dialect.sample_of(data))
    closed = len(re.findall(rf"'(?={re.escape(form.delimiter)}|[\r\n]|$)", sample))
    enclosed = min(opened, closed)
    is_needed = enclosed > 0 and _is_needed(data, form)
    if enclosed >= lines - 1 or is_needed or not any(are_right):
        yield form
        if spec.escape is None:
            yield replace(form, escape="\\")


def _opened(data: bytes, form: Dialect) -> tuple[int, int]:
    """Return how many fields a quote character begins in a sample, and its number of lines."""
    sample = dialect.sample_of(data)
    number = dialect.opens_fields("".join(sample), form.delimiter, str(form.quote))
    return number, len(sample)


def _lines_may_be_rows(data: bytes, form: Dialect) -> bool:
    """Return whether, in a sample, lines look like rows and few have a field in quotes."""
    rows = dialect.sample_rows(dialect.sample_of(data), replace(form, quote=None))
    quote = form.quote
    quoted = sum(any(len(c) > 1 and c[0] == c[-1] == quote for c in row) for row in rows)
    most_common = max(Counter(len(row) for row in rows).values(), default=0)
    return quoted <= MAX_QUOTED * len(rows) and most_common >= (1 - MAX_RAGGED) * len(rows)


def _share_enclosed(data: bytes, form: Dialect) -> float:
    """Return the share of fields with quotes on both sides in a sample of lines."""
    rows = dialect.sample_rows(dialect.sample_of(data), replace(form, quote=None))
    cells = [cell for row in rows for cell in row]
    enclosed = sum(len(cell) > 1 and cell[0] == cell[-1] == form.quote for cell in cells)
    return enclosed / max(len(cells), 1)


def _is_needed(data: bytes, form: Dialect) -> bool:
    """Return whether a field that begins with a quote contains doubled quotes or is empty."""
    char, quote = re.escape(form.delimiter.encode()), re.escape(str(form.quote).encode())
    opened = rb"(?:^|[\r\n]|%b)%b(?:[^%b\r\n]*%b%b|%b(?=[\r\n]|%b|$))"
    return re.search(opened % (char, *[quote] * 5, char), data) is not None
