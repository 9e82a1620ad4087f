"""Detect how a text file is written: its encoding, its delimiter, its header."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from stream.config.task import DialectSpec
from stream.errors import UserError, require

SAMPLE_BYTES = 1 << 20
SAMPLE_ROWS = 2000
CHUNK_BYTES = 1 << 20
EXCERPT_BYTES = 1 << 16

DELIMITERS = {"tab": "\t", "pipe": "|", "semicolon": ";", "comma": ","}  # rarest in prose first
# The candidates for files that are not UTF-8 and have no byte order mark.
LEGACY = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "koi8_r"),
    *("gb18030", "big5", "cp932", "euc_jp", "euc_kr"),
)
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
COMMON_NAMES = re.compile(
    "text|labels?|class|category|sentence[12]?|target|id|idx|index|review|comment|message|tweet|"
    "title|sentiment|content|question[12]?|answer|v1|v2|y|score|rating|body|headline|topic|"
    "premise|hypothesis|gold_label|annotation"
)
NAME_LIKE = re.compile(r"[^\W\d][\w.:/#()\-]{0,39}(?: [\w.:/#()\-]+){0,4}\??")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def to_utf8(raw: bytes, encoding: str | None, where: str) -> tuple[bytes, str]:
    """Return the text as UTF-8 without byte order mark, and the encoding of ``raw``.

    Args:
        raw: the bytes of the file.
        encoding: its encoding; None detects it.
        where: the file's path, for messages.

    Raises:
        UserError: the encoding is unknown, the file is binary, or bytes are not valid in the
            encoding (the message has the line).
    """
    source = encoding or _detect_encoding(raw, where)
    try:
        codecs.getincrementaldecoder(source)
        "".encode(source)  # LookupError for codecs that are not of text, such as base64
    except (LookupError, AttributeError) as error:
        raise UserError(f"{where}: encoding {source!r} is not one that Python knows") from error
    position = undecodable(raw, source)
    if position is not None:
        line = 1 + len(re.findall(r"\r\n?|\n", raw[:position].decode(source, "ignore")))
        raise UserError(
            f"{where}: line {line}: byte 0x{raw[position]:02x} cannot be read as {source}; "
            "set the encoding that it has (latin-1 takes every byte)"
        )
    if codecs.lookup(source).name == "utf-8" or source == "utf-8-sig":
        return raw.removeprefix(codecs.BOM_UTF8), "utf-8"
    text = io.BytesIO()  # getvalue() does not copy
    for number, piece in enumerate(codecs.iterdecode(_chunks(raw), source)):
        text.write((piece if number else piece.removeprefix("\ufeff")).encode("utf-8"))
    return text.getvalue(), source


def undecodable(raw: bytes, encoding: str) -> int | None:
    """Return the position of the first byte that is not valid in ``encoding``, or None.

    Needs constant memory.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    end = 0
    try:
        for chunk in _chunks(raw):
            end += len(chunk)
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return end - len(error.object) + error.start
    return None


def _chunks(raw: bytes) -> Iterator[bytes]:
    """Yield ``raw`` in pieces of `CHUNK_BYTES`."""
    for start in range(0, len(raw), CHUNK_BYTES):
        yield raw[start : start + CHUNK_BYTES]


def _detect_encoding(raw: bytes, where: str) -> str:
    """Return the encoding: by byte order mark, UTF-8 if that is valid, or by a detector."""
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return encoding
    require(
        b"\0" not in raw[:SAMPLE_BYTES],
        f"{where}: binary, not text (it holds NUL bytes); if it is UTF-16 without a byte order "
        "mark, set encoding to utf-16-le or utf-16-be",
    )
    wrong = undecodable(raw, "utf-8")
    if wrong is None:
        return "utf-8"
    excerpt = _excerpt(raw)
    text = excerpt.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(char > "\x7f" for char in text) - bad
    if good > bad:
        line = 1 + len(re.findall(rb"\r\n?|\n", raw[:wrong]))
        raise UserError(
            f"{where}: line {line}: byte 0x{raw[wrong]:02x} is not UTF-8, which the rest of the "
            "file is; correct it, or set the encoding"
        )
    return guess_legacy(excerpt)


def _excerpt(raw: bytes) -> bytes:
    """Return about 64 kB of lines that contain bytes beyond ASCII."""
    pieces, size, position = [], 0, 0
    beyond = re.compile(rb"[\x80-\xff]")
    while size < EXCERPT_BYTES and (match := beyond.search(raw, position)):
        start = raw.rfind(b"\n", position, match.start()) + 1 or position
        end = raw.find(b"\n", match.start()) + 1 or len(raw)
        start = max(start, match.start() - 500)
        position = min(end, match.start() + 500)
        pieces.append(raw[start:position])
        size += position - start
    return b"".join(pieces)


def guess_legacy(excerpt: bytes) -> str:
    """Return the most likely encoding of bytes that are not UTF-8.

    This is cp1252 (which contains the text of latin-1), unless charset-normalizer finds more
    disorder in it than in another encoding, and the other one gives text in a known language or in
    a script of its own. A few accents in English text are not enough evidence for cp1250 or Mac
    Roman.
    """
    from charset_normalizer import from_bytes  # slow to import, and not needed for UTF-8

    matches = from_bytes(excerpt, cp_isolation=list(LEGACY))
    best = matches.best()
    if best is None:
        return "cp1252"
    for match in matches:
        names = {match.encoding, *match.could_be_from_charset}
        if "cp1252" in names and match.chaos <= best.chaos + 0.02:
            return "cp1252"
    foreign = sum(byte > 0x7F for byte in excerpt) / len(excerpt)
    return best.encoding if best.coherence >= 0.2 or foreign >= 0.3 else "cp1252"


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


def sample_rows(sample: list[str], delimiter: str, *, quoting: bool) -> list[list[str]]:
    """Return the first rows of a sample, without empty lines."""
    quotes = csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE
    with wide_fields():
        rows = filter(None, csv.reader(sample, delimiter=delimiter, quoting=quotes))
        return list(islice(rows, SAMPLE_ROWS))


def choose_delimiter(sample: list[str], spec: DialectSpec, where: str) -> str:
    """Return the delimiter that gives the most rows the same number of fields, at least two.

    Of equal candidates, the one that is rarest in prose is chosen. If no candidate splits the rows,
    it is the comma: the file has one column.

    Args:
        sample: the first lines of the file.
        spec: the known parts of the dialect; a delimiter that is set is only checked.
        where: the file's path, for messages.

    Raises:
        UserError: the delimiter that is set cannot be used.
    """
    if spec.delimiter is not None:
        char = DELIMITERS.get(spec.delimiter, spec.delimiter)
        valid = f"valid: one ASCII character that is no quote or line end, or {[*DELIMITERS]}"
        require(
            len(char) == 1 and char.isascii() and char not in '"\r\n\0',
            f"{where}: delimiter {spec.delimiter!r} cannot be used; {valid}",
        )
        return char
    best, chosen = 0.0, ","
    for delimiter in DELIMITERS.values():
        for quoting in (True, False) if spec.quoting is None else (spec.quoting,):
            rows = sample_rows(sample, delimiter, quoting=quoting)
            widths = Counter(len(row) for row in rows)
            width, count = widths.most_common(1)[0] if widths else (0, 0)
            if width > 1 and count / len(rows) > best:
                best, chosen = count / len(rows), delimiter
    return chosen


def has_header(rows: list[list[str]]) -> bool:
    """Return whether the first row names the columns, judged by it and by the rows after it."""
    first = [cell.strip() for cell in rows[0]]
    columns = list(zip(*(row for row in rows[1:] if len(row) == len(first)), strict=True))
    known = sum(bool(COMMON_NAMES.fullmatch(cell.casefold())) for cell in first)
    if known > 1:
        return True
    if any(cell and cell in set(column) for cell, column in zip(first, columns, strict=False)):
        return False  # a value that occurs again, such as a label
    if known or any(NUMBER.fullmatch(cell) for cell in first):
        return bool(known)
    if any(cell and all(map(NUMBER.fullmatch, c)) for cell, c in zip(first, columns, strict=False)):
        return True  # a word above a column of numbers
    names = [cell for cell in first if cell]
    distinct = len(set(names)) == len(names) > 0
    return distinct and all(NAME_LIKE.fullmatch(cell) for cell in names)


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
