"""Run a function on several ranks: processes of one machine that are told of each other."""

import os
import pickle
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import distributed

PATIENCE_S = 120


def on_ranks(function: Callable[[], Any], folder: Path, size: int = 2) -> list[Any]:
    """Return what a function of a module returns on each rank, in order.

    Ranks are forked, which costs no import; where there is a GPU, which no forked process can use
    again, they are new processes.
    """
    start = _started if torch.cuda.is_available() else _forked
    running = {start(function, folder, rank, size): rank for rank in range(size)}
    deadline = time.monotonic() + PATIENCE_S
    while running and time.monotonic() < deadline:
        time.sleep(0.02)
        for pid in [pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]]:
            del running[pid]
    for pid in running:
        os.kill(pid, 9)
    assert not running, f"ranks {sorted(running.values())} did not end"
    found = [pickle.loads((folder / f"{rank}").read_bytes()) for rank in range(size)]
    failed = [answer for answer in found if isinstance(answer, str)]
    assert not failed, "\n".join(failed)
    return [answer for (answer,) in found]


def _forked(function: Callable[[], Any], folder: Path, rank: int, size: int) -> int:
    pid = os.fork()
    if not pid:
        try:
            _answer(function, folder, rank, size)
        finally:
            os._exit(0)
    return pid


def _started(function: Callable[[], Any], folder: Path, rank: int, size: int) -> int:
    given = [function.__module__, function.__qualname__, str(folder), str(rank), str(size)]
    return subprocess.Popen([sys.executable, "-m", __name__, *given]).pid


def _answer(function: Callable[[], Any], folder: Path, rank: int, size: int) -> None:
    """Be a rank: call the function, and leave what it returns in the folder."""
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(rank)
    answer: Any
    try:
        distributed.init_process_group(
            backend,
            init_method=f"file://{folder / 'meet'}",
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=PATIENCE_S),
        )
        answer = (function(),)
    except BaseException:  # noqa: BLE001 - the test tells it
        answer = traceback.format_exc()
    (folder / f"{rank}").write_bytes(pickle.dumps(answer))


if __name__ == "__main__":
    module, name, where, own, count = sys.argv[1:]
    _answer(getattr(import_module(module), name), Path(where), int(own), int(count))
