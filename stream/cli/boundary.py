"""Where a command's errors become one line and an exit code; whatever is not expected passes."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stream.errors import (
    IsolationError,
    TrainingDivergedError,
    UserError,
    is_out_of_memory,
    one_line,
)
from stream.run.interrupt import Interrupted
from stream.workers.engine import WorkerLostError

EXIT_FAILED, EXIT_USER, EXIT_INTERRUPTED = 1, 2, 130
SIGNALLED = 128  # a process that a signal ended has this and the signal's number as its code
EXPECTED = (UserError, TrainingDivergedError, IsolationError, WorkerLostError, OSError)
ASKED = re.compile(r"(?:tried|unable) to allocate [\d.,]+ ?\w+", re.IGNORECASE)
NEEDS_LESS = (
    "a smaller training.batch_size, evaluation.batch_tokens or backbone.max_length needs less; "
    "device=cpu needs no memory of a GPU"
)


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
    except Exception as error:
        if not isinstance(error, EXPECTED) and not is_out_of_memory(error):
            raise
        _say(error, hint, status)
    except KeyboardInterrupt as error:
        _say(error, hint, status)


def told(error: BaseException) -> str:
    """Return what a person is told of an error, in one line."""
    if is_out_of_memory(error):
        asked = ASKED.search(one_line(error))
        return f"out of memory{f' ({asked[0].lower()})' if asked else ''}; {NEEDS_LESS}"
    if isinstance(error, KeyboardInterrupt) and not str(error):
        return "interrupted"
    return one_line(error)


def _say(error: BaseException, hint: Callable[[BaseException], str], status: ExitStatus) -> None:
    """Print an error in one line, and note the exit code."""
    print(f"error: {told(error)}{hint(error)}", file=sys.stderr)
    status.code = _exit_code(error)


def _exit_code(error: BaseException) -> int:
    """Return the exit code of an expected error."""
    if isinstance(error, UserError):
        return EXIT_USER
    if isinstance(error, Interrupted):
        return SIGNALLED + error.signum
    return EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else EXIT_FAILED
