"""Files that are written whole or not at all."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def write_atomic(path: Path, *pieces: bytes) -> None:
    """Write a file through a temporary one; after a crash it is the old one or the new one.

    What a killed process left of the temporary file is overwritten by the next one's.

    Raises:
        OSError: the disk is full or cannot be written; the old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class JsonText(tuple[bytes, ...]):
    """The JSON text of a value, on one line; it stands for the value in what is written here.

    It is in pieces, because to put megabytes together takes longer than to write them.
    """

    __slots__ = ()


def json_text(value: Any) -> JsonText:
    """Return a value as JSON without NaN; what is JSON text as it is."""
    if isinstance(value, JsonText):
        return value
    return JsonText([json.dumps(value, allow_nan=False).encode()])


def list_text(values: Iterable[Any]) -> JsonText:
    """Return the JSON text of a list, some values of which may be `JsonText`."""
    return JsonText([b"[", *_joined(map(json_text, values), b", "), b"]"])


def object_text(values: Mapping[str, Any]) -> JsonText:
    """Return the JSON text of an object, some values of which may be `JsonText`."""
    return JsonText([b"{", *_joined(_pairs(values), b", "), b"}"])


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write JSON without NaN, durably: a line a key, since indenting all takes ten times as long.

    Some values may be `JsonText`.

    Raises:
        OSError: as `write_atomic`.
    """
    write_atomic(path, b"{\n", *_joined(_pairs(values), b",\n"), b"\n}\n")


def _pairs(values: Mapping[str, Any]) -> Iterator[Iterable[bytes]]:
    """Yield keys and values as in an object."""
    for key, value in values.items():
        yield [f"{json.dumps(key)}: ".encode(), *json_text(value)]


def _joined(texts: Iterable[Iterable[bytes]], between: bytes) -> Iterator[bytes]:
    """Yield the pieces of all texts, with ``between`` between texts."""
    for number, text in enumerate(texts):
        if number:
            yield between
        yield from text
