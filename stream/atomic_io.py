"""Files that are written whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

WRITING = ".writing-"
"""How the name of a folder begins that is not complete."""


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


def write_once(path: Path, content: bytes) -> None:
    """Write a small file whole or not at all, also where other processes write it meanwhile.

    Its folder is made. After a crash of the machine it may be damaged.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def folder_at_once(folder: Path, *, sync: bool = False) -> Iterator[Path]:
    """Yield an empty folder, which becomes ``folder`` when the block ends without an error.

    Several processes may do this at once for the same folder: the first one's stays.

    Args:
        folder: nothing is there yet.
        sync: whether its files survive a crash of the machine.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=WRITING, dir=folder.parent))
    try:
        yield temporary
        for path in temporary.iterdir() if sync else ():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
