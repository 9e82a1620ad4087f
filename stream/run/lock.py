"""The lock of a run folder: at most one process writes to it."""

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from stream.errors import UserError, require
from stream.files.run_folder import LOCK
from stream.files.writable import RUN, folder_errors

LOG = logging.getLogger(__name__)
HELD = (errno.EWOULDBLOCK, errno.EAGAIN)


def require_locks() -> None:
    """Raise UserError on a system without locks of files, which is Windows."""
    require(
        find_spec("fcntl") is not None,
        "runs need Linux or macOS: this system has no locks of files that a run folder needs (on "
        "Windows, WSL is a Linux); tables and reports of finished runs need none",
    )


@contextmanager
def exclusive_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside the block; the system frees it when the process dies.

    Where the file system has no locks (some network file systems), a warning says so.

    Raises:
        UserError: another process writes to the folder, or nothing can be written there.
    """
    require_locks()
    from fcntl import LOCK_EX, LOCK_NB, flock

    with folder_errors(folder, RUN):
        file = (folder / LOCK).open("a", encoding="utf-8")
    with file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except OSError as error:
            if error.errno in HELD:
                raise UserError(f"another process is writing to {folder}") from error
            LOG.warning(
                "%s cannot be locked (%s): start no second run in it", folder, error.strerror
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
