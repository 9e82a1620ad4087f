"""The lock of a run folder: at most one process writes to it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from stream.errors import UserError
from stream.run_folder import LOCK


@contextmanager
def exclusive_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside the block; the system frees it when the process dies.

    Raises:
        UserError: another process writes to the folder.
    """
    with (folder / LOCK).open("a", encoding="utf-8") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except OSError as error:
            raise UserError(f"another process is writing to {folder}") from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
