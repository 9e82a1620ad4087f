"""Find what stands above the table in a text file: a ``sep=`` line, comments, a title."""

import csv
import re
from dataclasses import replace

from stream.config.source import DialectSpec
from stream.data.sources import dialect
from stream.errors import require
from stream.formatting import count

SEPARATOR_LINE = re.compile(r'"?sep=([^\w\r\n"]{1,3})"?[\r\n]*', re.IGNORECASE)  # as Excel reads it
MAX_TITLE_ROWS = 10
LINE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


def clear_top(data: bytes, spec: DialectSpec, where: str) -> tuple[bytes, DialectSpec, list[str]]:
    """Empty the lines above the table; their line ends stay, so that lines keep their numbers.

    Args:
        data: the file as UTF-8.
        spec: the known parts of the dialect; ``skip`` may be set.
        where: the file's path, for messages.

    Returns:
        The data, the dialect with the delimiter that a ``sep=`` line names, and what was found, in
        words.

    Raises:
        UserError: there are fewer lines than ``skip``.
    """
    words = []
    if spec.skip:
        lines = [found[0] for _, found in zip(range(spec.skip), LINE.finditer(data), strict=False)]
        require(
            len(lines) == spec.skip,
            f"{where}: has {count(len(lines), 'line')}, dialect.skip is {spec.skip}",
        )
        data = _emptied(data, range(spec.skip))
        words.append(f"{count(spec.skip, 'line')} skipped")
    sample = dialect.sample_of(data)
    first = next((at for at, line in enumerate(sample) if line.strip("\r\n")), None)
    match = first is not None and SEPARATOR_LINE.fullmatch(sample[first])
    if first is not None and match:
        data = _emptied(data, [first])
        sample[first] = ""
        spec = replace(spec, delimiter=spec.delimiter or match[1])
        words.append("sep= line")
    comments = [] if spec.comment else _comments(sample, spec, where)
    if comments:
        words.append(count(len(comments), "comment line"))
    return _emptied(data, comments), spec, words


def _emptied(data: bytes, numbers: "range | list[int]") -> bytes:
    """Return the data without the content of the lines with these numbers, counted from 0."""
    if not numbers:
        return data
    end, kept = 0, []
    for number, found in zip(range(numbers[-1] + 1), LINE.finditer(data), strict=False):
        end = found.end()
        line = found[0]
        kept.append(line[len(line.rstrip(b"\r\n")) :] if number in numbers else line)
    return b"".join(kept) + data[end:]


def _comments(sample: list[str], spec: DialectSpec, where: str) -> list[int]:
    """Return which lines at the top begin with ``#`` and are comments, not a header or rows.

    They are comments if the line after them is certainly a header, or if all of them have another
    number of fields than the rows.
    """
    top = 0
    while top < len(sample) and (not sample[top].strip() or sample[top].startswith("#")):
        top += 1
    marked = [at for at in range(top) if sample[at].startswith("#")]
    rest = sample[top:]
    goes_on = any(sample[at].rstrip("\r\n").endswith("\\") for at in marked)  # an escaped line end
    if not marked or not rest or goes_on:
        return []
    delimiter = dialect.choose_delimiter(rest, spec, where)
    char = dialect.stand_in(delimiter, "".join(sample), where)
    quote = None if spec.quoting is False else spec.quote or '"'
    form = dialect.Dialect(char, quote, spec.escape)
    rows = dialect.sample_rows([line.replace(delimiter, char) for line in rest], form)
    try:
        lines = [sample[at].replace(delimiter, char) for at in marked]
        widths = {len(row) for line in lines for row in form.reader([line], strict=True)}
    except csv.Error:  # a row of several lines
        return []
    is_header = spec.header is not False and dialect.header_evidence(rows) > 1
    return marked if is_header or len(rows[0]) not in widths else []


def title_rows(rows: list[list[str]], width: int) -> int:
    """Return how many of the first rows are a title above a header.

    The header is the first row with two names that columns often have, or the first row with more
    than one value if that is certainly a header.

    Args:
        rows: the first rows of the file.
        width: the number of fields of most rows.
    """
    if len(rows[0]) == width and dialect.header_evidence(rows) > 1:
        return 0
    top = rows[: MAX_TITLE_ROWS + 1]
    named = [at for at, row in enumerate(top) if dialect.num_known(row) > 1]
    filled = [at for at, row in enumerate(top) if sum(bool(cell.strip()) for cell in row) > 1]
    at = next(iter([*named, *filled]), 0)
    is_header = len(rows[at]) == width and dialect.header_evidence(rows[at:]) > 1
    return at if is_header and not any(map(dialect.num_known, rows[:at])) else 0
