"""Run a function on several ranks: processes of one machine that are told of each other."""

import os
import pickle
import signal
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
    ranks = [start(function, folder, rank, size) for rank in range(size)]
    deadline = time.monotonic() + PATIENCE_S
    while (late := [r for r in ranks if r.poll() is None]) and time.monotonic() < deadline:
        time.sleep(0.02)
    for rank in late:
        rank.kill()
    assert not late, f"{len(late)} of {size} ranks did not end"
    found = [pickle.loads((folder / f"{rank}").read_bytes()) for rank in range(size)]
    failed = [answer for answer in found if isinstance(answer, str)]
    assert not failed, "\n".join(failed)
    return [answer for (answer,) in found]


class Forked:
    """A forked process, asked as `subprocess.Popen` is."""

    def __init__(self, pid: int):
        self._pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            ended, status = os.waitpid(self._pid, os.WNOHANG)
            self._code = status if ended else None
        return self._code

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)


def _forked(function: Callable[[], Any], folder: Path, rank: int, size: int) -> Forked:
    pid = os.fork()
    if not pid:
        try:
            _answer(function, folder, rank, size)
        finally:
            os._exit(0)
    return Forked(pid)


def _started(
    function: Callable[[], Any], folder: Path, rank: int, size: int
) -> subprocess.Popen[bytes]:
    given = [function.__module__, function.__qualname__, str(folder), str(rank), str(size)]
    return subprocess.Popen([sys.executable, "-m", __name__, *given])


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
