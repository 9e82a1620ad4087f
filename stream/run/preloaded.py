"""What processes that learn import, and when: beside each other, and once for all workers."""

import gc
import re
import sys
from collections.abc import Sequence
from importlib import import_module

from stream.config.workers import WorkersConfig
from stream.workers.fork_server import begin_fork_server

ENCODERS = ("transformers.models.auto.modeling_auto", "transformers.modeling_utils")
"""What takes seconds of what every encoder needs."""
LIBRARIES = ("stream.run.worker", *ENCODERS, "transformers.models.bert.modeling_bert")
"""What workers need, with the kind of encoder that most runs have."""
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


def import_together(names: Sequence[str], *, for_good: bool = False) -> None:
    """Import modules, unless they are there; no garbage is looked for meanwhile.

    They bring hundreds of thousands of objects, of which none is garbage.

    Args:
        names: the modules.
        for_good: garbage will never be looked for among what is there then, also after the next
            call. It is for a process that ends with its work.
    """
    if all(name in sys.modules for name in names):
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        for name in names:
            import_module(name)
    finally:
        if for_good or gc.get_freeze_count():
            gc.freeze()
        if collects:
            gc.enable()
