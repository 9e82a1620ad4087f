"""The moments of a run at which it may die: calls of functions, which can be counted and hooked."""

import importlib
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# What a run calls at its stages; it dies at the start of one of these calls.
MOMENTS = {
    "start": "stream.run.setup:load_encoder",
    "restore": "stream.run.checkpoint_manager:CheckpointManager.load_tasks",
    "step": "stream.training.fit_state:FitState.note",
    "evaluation": "stream.run.bench:evaluate",
    "routing": "stream.evaluation.routed:evaluated",
    "write": "stream.run.checkpoint:write_atomic",  # dies with half of it in the temporary file
    "append": "stream.files.line_log:LineLog.append",  # dies with half a line at the file's end
    "flush": "os:fsync",
    "rename": "pathlib:Path.replace",
    "clean": "pathlib:Path.unlink",
    "figures": "stream.run.runner:write_figures",
}


def hooked(path: str, act: Callable[..., None]) -> None:
    """Call ``act`` with the arguments of every call of ``module:name``, before the call."""
    module, _, names = path.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, last = names.split(".")
    for name in parents:
        owner = getattr(owner, name)
    original = getattr(owner, last)

    def call(*arguments: Any, **named: Any) -> Any:
        act(*arguments)
        return original(*arguments, **named)

    setattr(owner, last, call)


def die_at(stage: str, number: int, signum: int) -> None:
    """Make this process send itself a signal at the ``number``-th call of a stage."""
    left = number

    def act(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            if signum == signal.SIGKILL:
                leave_half(stage, arguments)
            os.kill(os.getpid(), signum)

    hooked(MOMENTS[stage], act)


def leave_half(stage: str, arguments: Sequence[Any]) -> None:
    """Leave half of what a call would write, where a killed process might leave it."""
    if stage == "write":
        path, data = arguments[0], b"".join(arguments[1:])
        path.with_name(f".{path.name}.tmp").write_bytes(data[: len(data) // 2])
    elif stage == "append":
        log, data = arguments[0], b"\n".join(arguments[1])
        with log.path.open("ab") as file:
            file.write(data[: len(data) // 2])


def count_calls(into: Path) -> None:
    """Make this process write how often it made each call, whenever the number changes."""
    counts: Counter[str] = Counter()

    def noting(stage: str) -> Callable[..., None]:
        def act(*arguments: Any) -> None:
            del arguments
            counts[stage] += 1
            with into.open("w", encoding="utf-8") as file:
                json.dump(counts, file)

        return act

    for stage, path in MOMENTS.items():
        hooked(path, noting(stage))
