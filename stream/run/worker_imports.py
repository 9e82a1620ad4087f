"""Imports what workers need, as soon as it is imported itself: by name, in a new process.

The process of `stream.workers.fork_server` does so before it hears of anything. Meanwhile it does
not die of what a terminal sends to all processes, and not live longer than the first process.
"""

import os
import signal
import threading

from stream.run.preloaded import LIBRARIES, import_together

LOOKED_S = 0.2  # how often it is seen whether the first process is there


def _import() -> None:
    first, done = os.getppid(), threading.Event()

    def look() -> None:
        while not done.wait(LOOKED_S):
            if os.getppid() != first:
                os._exit(1)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        import_together(LIBRARIES, for_good=True)
    finally:
        done.set()
        looking.join()  # a process that is copied has one thread


if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
_import()
