"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec


def write_atomic(path: Path, *pieces: bytes) -> None:
    """Write a file through a temporary one; after a crash it is the old one or the new one.

    What a killed process left of the temporary file is overwritten by the next one's. A link stays
    one, and a device or a pipe, such as ``/dev/stdout``, is written to and not replaced.

    Raises:
        OSError: the disk is full or cannot be written; the old file is untouched.
    """
    if path.exists() and not path.is_file():
        with naming_errors(path), path.open("wb") as file:
            file.writelines(pieces)
        return
    path = path.resolve() if path.is_symlink() else path
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with naming_errors(path), temporary.open("wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object, indented, as `write_atomic` does."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(values), indent=1), b"\n")


@contextmanager
def naming_errors(path: Path) -> Iterator[None]:
    """Have errors inside the block name the file: Python does not where writing fails."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def sync_folder(folder: Path) -> None:
    """Have the disk keep the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
