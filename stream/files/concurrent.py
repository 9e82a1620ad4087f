"""Files and folders that several processes may write at once: whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WRITING = ".writing-"
"""How the name of a folder begins that is not complete."""


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
