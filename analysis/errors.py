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
        raise UserError(" ".join(str(error).split())) from error
