"""A program in a copy of this process, which has imported what it needs."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

CRASHED = 70


def forked(
    program: Callable[[], object],
    folder: Path,
    out: Path,
    err: Path,
    given: Path = Path(os.devnull),
) -> int:
    """Start a program in a copy of this process; return its process id.

    Args:
        program: what the copy calls; it may end with ``SystemExit``.
        folder: where it runs.
        out: the file behind which its output goes.
        err: the same for its error output.
        given: the file that is its standard input.
    """
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = CRASHED
    try:
        os.dup2(os.open(given, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, closefd=False)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), number)
        os.chdir(folder)
        program()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else CRASHED * (error.code is not None)
    except BaseException:  # noqa: BLE001 - told to the parent by the exit code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
