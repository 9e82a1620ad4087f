"""Decode a text file: its encoding is set, or detected from all of its bytes."""

import codecs
import io
import re
from dataclasses import replace
from itertools import islice

from stream.data.sources.legacy import chunks, excerpt_of, guess_legacy, undecodable
from stream.data.table import Encoding
from stream.errors import UserError, require

SAMPLE_BYTES = 1 << 20
CERTAIN = 8  # bytes beyond ASCII that are valid UTF-8 hardly by chance

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def to_utf8(raw: bytes, encoding: str | None, where: str) -> tuple[bytes, Encoding]:
    """Return the text as UTF-8 without byte order mark, and the encoding of ``raw``.

    Args:
        raw: the bytes of the file.
        encoding: its encoding; None detects it.
        where: the file's path, for messages.

    Raises:
        UserError: the encoding is unknown, the file is binary, or bytes are not valid in the
            encoding (the message has the line).
    """
    found = Encoding(encoding) if encoding else _detect_encoding(raw, where)
    source = found.name
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
            "correct it, or set the encoding that the file has"
        )
    if codecs.lookup(source).name == "utf-8" or source == "utf-8-sig":
        return raw.removeprefix(codecs.BOM_UTF8), replace(found, name="utf-8")
    text = io.BytesIO()  # getvalue() does not copy
    for number, piece in enumerate(codecs.iterdecode(chunks(raw), source)):
        text.write((piece if number else piece.removeprefix("\ufeff")).encode("utf-8"))
    return text.getvalue(), found


def contradicts(raw: bytes, encoding: str) -> bool:
    """Return whether a file is certainly UTF-8 although another encoding is set.

    A few bytes may be valid by chance.
    """
    is_other = encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig")
    beyond = re.compile(rb"[\x80-\xff]").finditer(raw)
    is_certain = sum(1 for _ in islice(beyond, CERTAIN)) == CERTAIN
    return is_other and is_certain and undecodable(raw, "utf-8") is None


def _detect_encoding(raw: bytes, where: str) -> Encoding:
    """Return the encoding: by byte order mark, UTF-8 if that is valid, or by a detector."""
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return Encoding(encoding)
    require(
        b"\0" not in raw[:SAMPLE_BYTES],
        f"{where}: binary, not text (it holds NUL bytes); if it is UTF-16 without a byte order "
        "mark, set encoding to utf-16-le or utf-16-be",
    )
    wrong = undecodable(raw, "utf-8")
    if wrong is None:
        return Encoding("iso2022_jp" if b"\x1b$B" in raw else "utf-8")
    excerpt = excerpt_of(raw)
    text = excerpt.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(char > "\x7f" for char in text) - bad
    if good > bad:
        line = 1 + len(re.findall(rb"\r\n?|\n", raw[:wrong]))
        raise UserError(
            f"{where}: line {line}: byte 0x{raw[wrong]:02x} is not UTF-8, which the rest of the "
            "file is; correct it, or set the encoding"
        )
    return guess_legacy(raw)
