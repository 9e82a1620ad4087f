"""The process that workers of this machine are copies of: it imports what all of them need."""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

STARTING = threading.Lock()  # `without_main` changes what all threads see
UNREAD = ("HYDRA_FULL_ERROR",)  # variables that no worker reads
_early: list[dict[str, str]] = []  # the environment of a fork server that began early


def begin_fork_server(preload: Sequence[str] = (), *, early: bool = False) -> None:
    """Start the fork server unless it runs; it imports while this process goes on.

    Args:
        preload: the modules that it imports.
        early: it is not yet known in which environment workers shall run, which Hydra can change.
            If it has, the next call starts another fork server.
    """
    from multiprocessing import forkserver

    environment = {name: text for name, text in os.environ.items() if name not in UNREAD}
    if _early and _early.pop() != environment:
        forkserver._forkserver._stop()  # pyright: ignore[reportAttributeAccessIssue]
    if early:
        _early.append(environment)
    forkserver.set_forkserver_preload(list(preload))
    with without_main():
        forkserver.ensure_running()


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
