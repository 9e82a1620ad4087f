"""Files that are written whole or not at all."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


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
    except OSError as error:
        # Python names no file where writing to an open one fails.
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object, indented, as `write_atomic` does."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(values), indent=1), b"\n")
