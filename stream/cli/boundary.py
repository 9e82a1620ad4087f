"""Where a command's errors become one line and an exit code; whatever is not expected passes."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stream.errors import IsolationError, TrainingDivergedError, UserError
from stream.run.interrupt import Interrupted

EXIT_FAILED, EXIT_USER, EXIT_INTERRUPTED = 1, 2, 130
SIGNALLED = 128  # a process that a signal ended has this and the signal's number as its code
EXPECTED = (UserError, TrainingDivergedError, IsolationError, OSError, KeyboardInterrupt)


@dataclass
class ExitStatus:
    """The exit code of a command."""

    code: int = 0


@contextmanager
def error_boundary(hint: Callable[[BaseException], str] = lambda error: "") -> Iterator[ExitStatus]:
    """Print an expected error of the block in one line, and set the exit code that it stands for.

    Args:
        hint: what to say behind an error's message, such as how to go on.
    """
    status = ExitStatus()
    try:
        yield status
    except EXPECTED as error:
        message = " ".join(str(error).split()) or "interrupted"
        print(f"error: {message}{hint(error)}", file=sys.stderr)
        status.code = _exit_code(error)


def _exit_code(error: BaseException) -> int:
    """Return the exit code of an expected error."""
    if isinstance(error, UserError):
        return EXIT_USER
    if isinstance(error, Interrupted):
        return SIGNALLED + error.signum
    return EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else EXIT_FAILED
