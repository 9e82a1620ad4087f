"""The process that workers of this machine are copies of: it imports what all of them need."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

STARTING = threading.Lock()  # `without_main` changes what all threads see


def begin_fork_server(preload: Sequence[str] = ()) -> None:
    """Start the fork server unless it runs; it imports while this process goes on.

    Args:
        preload: the modules that it imports.
    """
    from multiprocessing.forkserver import ensure_running, set_forkserver_preload

    set_forkserver_preload(list(preload))
    with without_main():
        ensure_running()


@contextmanager
def without_main() -> Iterator[None]:
    """Start processes inside the block that do not import the program's main module again."""
    with STARTING:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
