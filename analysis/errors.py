"""The one error that a command of analysis raises, whatever runs and disks do wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

from stream.errors import UserError, understood


@contextmanager
def in_one_line() -> Iterator[None]:
    """Turn what runs and disks can do wrong inside the block into a `UserError` of one line."""
    try:
        with understood("these runs"):
            yield
    except OSError as error:
        raise UserError(disk_trouble(error)) from error


def disk_trouble(error: OSError) -> str:
    """Say what a disk did, and to which file, in one line without the number of the error."""
    reason = (error.strerror or str(error)).lower()
    return " ".join((f"{error.filename}: {reason}" if error.filename else reason).split())
