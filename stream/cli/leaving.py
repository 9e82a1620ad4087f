"""How a command's process ends: at once, when all that waits for an end has been done.

Python ends a process by taking apart every module and object in it. With torch and transformers
that takes a second or more in which nothing is done that the system does not do by itself.
"""

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn


def leave_after(command: Callable[[], int | None]) -> NoReturn:
    """Call a command, and end this process with the exit code that it returns or raises.

    Threads are waited for and functions of `atexit` are called, as always, and output is written.
    What is raised otherwise passes, and the process ends as Python ends it.

    Args:
        command: returns an exit code, or None for 0; or raises SystemExit.
    """
    try:
        code = command()
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        code = ended.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            stream.flush()
    os._exit(code or 0)
