"""How a command's process ends: at once, when all that waits for an end has been done.

Python ends a process by taking apart every module and object in it. With torch and transformers
that takes a second or more in which nothing is done that the system does not do by itself.
"""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn


def leave_after(command: Callable[[], int | None]) -> NoReturn:
    """Call a command, and end this process with the exit code that it returns or raises.

    Threads are waited for and functions of `atexit` are called, as always, and output is written.
    Ctrl-C ends that at once, without a traceback of whatever is being taken apart. What is raised
    otherwise passes, and the process ends as Python ends it.

    Args:
        command: returns an exit code, or None for 0; or raises SystemExit.
    """
    try:
        code = command()
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        code = ended.code
    _write_output()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    _write_output()
    os._exit(code or 0)


def _write_output() -> None:
    """Write what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            stream.flush()
