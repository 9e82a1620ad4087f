"""Detect how delimited text is written: its delimiter and its header."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from stream.config.source import DialectSpec
from stream.errors import require

SAMPLE_BYTES = 1 << 20
SAMPLE_ROWS = 2000
MAX_TORN = 0.2  # share of rows with a field that a quote opens and nothing closes

DELIMITERS = {"tab": "\t", "pipe": "|", "semicolon": ";", "comma": ","}  # rarest in prose first
LONG_DELIMITERS = (" ||| ", "|||", "||", "|~|", "::")  # tried first: they contain shorter ones
NAMES_OF = {char: name for name, char in DELIMITERS.items()} | {" ": "space"}
STAND_INS = "\x1f\x1e\x1d\x1c" + "".join(map(chr, (*range(1, 9), *range(14, 28))))
COMMON_NAMES = frozenset(  # words of which the names of columns are often made
    re.findall(
        r"\w+",
        "text label labels class category sentence target id idx index review comment message "
        "tweet title sentiment content question answer v y score rating body headline topic "
        "premise hypothesis gold annotation phrase utterance document description mood "
        "emotion intent stance polarity summary abstract passage query post subject author "
        "user date url lang language split source domain name",
    )
)
NAME_LIKE = re.compile(r"[^\W\d][\w.:/#()\-]{0,39}(?: [\w.:/#()\-]+){0,4}\??")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """How rows of delimited text are parsed.

    Attributes:
        delimiter: one ASCII character.
        quote: the character that encloses fields; None if quote characters are text.
        escape: the character that makes a special character after it text, or None.
        comment: lines that begin with this text are no rows, or None.
    """

    delimiter: str
    quote: str | None = '"'
    escape: str | None = None
    comment: str | None = None

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        """Return Python's csv reader of some lines."""
        quoting = csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=self.escape,
            quoting=quoting,
            strict=strict,
        )


def refuse_settings(spec: DialectSpec, allowed: tuple[str, ...], kind: str, where: str) -> None:
    """Raise UserError if a part of the dialect is set that a format does not have.

    Args:
        spec: the settings.
        allowed: the names of those that the format has.
        kind: the format, for the message.
        where: the file's path, for the message.
    """
    for field in fields(spec):
        value = getattr(spec, field.name)
        without_effect = value is not None and field.name not in allowed
        require(not without_effect, f"{where}: {kind} has no {field.name}, yet {value!r} is set")


@contextmanager
def wide_fields() -> Iterator[None]:
    """Lift the csv module's limit of 131,072 characters per field inside the block."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def sample_of(data: bytes) -> list[str]:
    """Return the first lines, about 1 MB, with their line ends."""
    text = data[:SAMPLE_BYTES].decode("utf-8", "ignore")
    lines = re.findall(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+", text)
    return lines if len(data) <= SAMPLE_BYTES or len(lines) == 1 else lines[:-1]


def sample_rows(sample: Iterable[str], dialect: Dialect) -> list[list[str]]:
    """Return the first rows of a sample, without empty lines."""
    with wide_fields():
        return list(islice(filter(None, dialect.reader(sample)), SAMPLE_ROWS))


def stand_in(delimiter: str, text: str | bytes, where: str) -> str:
    """Return the delimiter if it is one ASCII character, else one that is nowhere in the text.

    The parsers take single characters only, so a longer delimiter is replaced by its stand-in
    before they read, and put back into texts that contain it.

    Args:
        delimiter: as it is in the file.
        text: the file.
        where: the file's path, for messages.

    Raises:
        UserError: the text has every control character that could stand in.
    """
    if len(delimiter) == 1 and delimiter.isascii():
        return delimiter
    used = set(text) if isinstance(text, str) else set(map(chr, set(text)))
    free = [char for char in STAND_INS if char not in used]
    require(len(free) > 0, f"{where}: too many control characters to use {delimiter!r}")
    return free[0]


def choose_delimiter(sample: list[str], spec: DialectSpec, where: str) -> str:
    """Return the delimiter that gives the most rows the same number of fields, at least two.

    Of equal candidates, one that tears no quoted fields is chosen, then the one that is rarest in
    prose. If no candidate splits the rows, it is the comma: the file has one column.

    Args:
        sample: the first lines of the file.
        spec: the known parts of the dialect; a delimiter that is set is only checked.
        where: the file's path, for messages.

    Raises:
        UserError: the delimiter that is set cannot be used.
    """
    if spec.delimiter is not None:
        by_name = {name: char for char, name in NAMES_OF.items()}
        delimiter = by_name.get(spec.delimiter, spec.delimiter)
        valid = f"valid: one ASCII character that is no quote or line end, or {[*by_name]}"
        require(
            bool(delimiter) and not set(delimiter) & set('"\r\n\0'),
            f"{where}: delimiter {spec.delimiter!r} cannot be used; {valid}, or a longer text",
        )
        return delimiter
    text = "".join(sample)
    best, chosen = (0.0, False), ","
    for delimiter in (*LONG_DELIMITERS, *DELIMITERS.values()):
        if delimiter not in text:
            continue
        char = stand_in(delimiter, text, where)
        for quote, escape in _quotings(text, char, spec):
            lines = sample if char == delimiter else [x.replace(delimiter, char) for x in sample]
            rows = sample_rows(lines, Dialect(char, quote, escape))
            widths = Counter(len(row) for row in rows)
            width, count = widths.most_common(1)[0] if widths else (0, 0)
            fit = (count / len(rows), not _is_torn(rows, quote)) if width > 1 else (0.0, False)
            if fit > best:
                best, chosen = fit, delimiter
    return " " if best[0] < 1 and _is_spaced(sample) else chosen


def _quotings(
    text: str, delimiter: str, spec: DialectSpec
) -> Iterator[tuple[str | None, str | None]]:
    """Yield the pairs of quote and escape character that the start of a file may have."""
    quote = spec.quote or '"'
    if spec.quoting is not False:
        yield quote, spec.escape
        if spec.escape is None and (f"\\{quote}" in text or f"\\{delimiter}" in text):
            yield quote, "\\"
        if spec.quote is None and opens_fields(text, delimiter, "'"):
            yield "'", spec.escape
            if spec.escape is None and "\\'" in text:
                yield "'", "\\"
    if spec.quoting is not True:
        yield None, spec.escape


def opens_fields(text: str, delimiter: str, quote: str) -> int:
    """Return how many fields begin with a quote character."""
    return len(re.findall(rf"(?:^|[\r\n]|{re.escape(delimiter)}){re.escape(quote)}", text))


def _is_torn(rows: list[list[str]], quote: str | None) -> bool:
    """Return whether many rows have a field with a quote on its left side only."""
    others = [char for char in "\"'" if char != quote]
    torn = sum(any(c[:1] in others and (len(c) < 2 or c[-1] != c[0]) for c in r if c) for r in rows)
    return torn > MAX_TORN * len(rows)


def _is_spaced(sample: list[str]) -> bool:
    """Return whether single spaces separate fields, which are quoted, as R writes them."""
    widths = [len(row) for row in sample_rows(sample, Dialect(" "))]
    if opens_fields("".join(sample), " ", '"') < len(widths):
        return False
    return bool(widths) and {*widths[1:]} <= {widths[-1]} and 1 < widths[-1] <= widths[0] + 1


def has_header(rows: list[list[str]]) -> bool:
    """Return whether the first row names the columns, judged by it and by the rows after it."""
    return header_evidence(rows) > 0


def header_evidence(rows: list[list[str]]) -> int:
    """Return 2 if the first row certainly names the columns, 1 if it looks as if, else 0."""
    first = [cell.strip() for cell in rows[0]]
    columns = list(zip(*(row for row in rows[1:] if len(row) == len(first)), strict=True))
    known = num_known(first)
    if known > 1:
        return 2
    pairs = list(zip(first, columns, strict=False))
    are_names = [bool(NAME_LIKE.fullmatch(cell)) for cell in first if cell]
    if any(cell and cell in set(column) for cell, column in pairs):
        # A value that occurs again, such as a label, unless another cell names its column.
        is_named = any(num_known([cell]) and cell not in set(column) for cell, column in pairs)
        return 2 if is_named and all(are_names) else 0
    if known or any(NUMBER.fullmatch(cell) for cell in first):
        return 2 if known else 0
    if any(cell and all(map(NUMBER.fullmatch, column)) for cell, column in pairs):
        return 2  # a word above a column of numbers
    names = [cell for cell in first if cell]
    return int(len(set(names)) == len(names) > 0 and all(are_names))


def num_known(cells: Iterable[str]) -> int:
    """Return how many cells are made of words that names of columns often have."""
    named = (cell.casefold() for cell in cells if not re.search(r"\s\d", cell))
    words = (re.findall(r"[^\W\d_]+", cell) for cell in named)
    return sum(bool(of_cell) and COMMON_NAMES.issuperset(of_cell) for of_cell in words)


def twins(cells: Iterable[str]) -> tuple[str, ...]:
    """Return in words which names stand twice: a task that names one of them reads the first."""
    found = Counter(cell.strip() for cell in cells if cell.strip())
    twice = [name for name, number in found.items() if number > 1]
    return (f"several columns called {', '.join(map(repr, twice))}",) if twice else ()


def unique_names(cells: list[str]) -> list[str]:
    """Return unique column names: an empty one becomes ``column_N``, a second ``a`` ``a_2``."""
    names: list[str] = []
    taken = {cell.strip() for cell in cells}
    for position, cell in enumerate(cells, start=1):
        name = cell.strip() or f"column_{position}"
        stem, count = name, 1
        while name in names or (name in taken and count > 1):
            count += 1
            name = f"{stem}_{count}"
        names.append(name)
    return names
