"""Decode a text file: its encoding is set, or detected from all of its bytes."""

import codecs
import io
import re
from collections.abc import Iterator

from stream.errors import UserError, require

SAMPLE_BYTES = 1 << 20
CHUNK_BYTES = 1 << 20
EXCERPT_BYTES = 1 << 16

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
    except UnicodeError:  # UTF-16 or UTF-32 without the byte order mark that it needs
        return 0
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
