"""What processes that learn import, and when: beside each other, and once for all workers."""

import gc
import re
import sys
from collections.abc import Sequence
from importlib import import_module

from stream.config.workers import WorkersConfig
from stream.workers.fork_server import begin_fork_server

LIBRARIES = (
    "stream.run.worker",
    "transformers.models.auto.modeling_auto",
    "transformers.models.bert.modeling_bert",
)
"""Beside what is called stream, of the encoders that most runs have."""
PRELOADED = ("stream.run.worker_imports",)
"""What the process imports that workers are copies of: `LIBRARIES`."""
ASKS_FOR_WORKERS = re.compile(r"workers(\.count)?=([2-9]|[1-9]\d+)")
OTHERWISE = ("-", "workers.engine=ray")  # how arguments begin by which nothing may be learned here


def begin_early(arguments: Sequence[str]) -> None:
    """Have workers import if a command line asks for some, before it is known to be right."""
    if any(map(ASKS_FOR_WORKERS.fullmatch, arguments)) and not any(
        text.startswith(OTHERWISE) for text in arguments
    ):
        begin_fork_server(PRELOADED, early=True)


def begin_importing(workers: WorkersConfig) -> None:
    """Have the workers of a run import from now on, while this process does the same."""
    if workers.used and workers.engine == "processes":
        begin_fork_server(PRELOADED)


def import_libraries() -> None:
    """Import `LIBRARIES` into a process that ends with what it has to do.

    They are hundreds of thousands of objects, none of which is garbage: none is looked for
    meanwhile, and never again among what is there then.
    """
    if all(name in sys.modules for name in LIBRARIES):
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        for name in LIBRARIES:
            import_module(name)
    finally:
        gc.freeze()
        if collects:
            gc.enable()
