"""Starts whole programs for tests, in copies of one process that has imported everything.

The process is a server, itself a copy of the test process that is made when this file is imported,
thus before any test ran: what tests import is imported once. See `benchmarks.warm`. Only what a
test says about the start of a process itself needs an interpreter of its own: `PROGRAM`.
"""

import atexit
import ctypes
import importlib
import json
import logging
import os
import runpy
import select
import shutil
import signal
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.warm import forked, warm_up
from tests.blank_figures import use_blank_figures

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, str(ROOT / "run_stream.py")]
TINY = ["experiment=smoke", "device=cpu"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
TICK = 0.01
USUALLY_IGNORED = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the program on a tiny encoder; return exit code, output and error output."""
    return run_plain(folder, *TINY, *arguments)


def run_plain(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the program with just these arguments; return exit code, output and error output."""
    return Started(folder, "run_stream", *arguments).result()


def run_module(folder: Path, module: str, *arguments: str) -> tuple[int, str, str]:
    """Run ``python -m module``; return exit code, output and error output."""
    return Started(folder, module, *arguments).result()


def start(folder: Path, *arguments: str) -> "Started":
    """Start the program on a tiny encoder, and do not wait for it."""
    return Started(folder, "run_stream", *TINY, *arguments)


class Started:
    """A module that runs as a program in a copy of the server; to be used as `subprocess.Popen`.

    Args:
        folder: where it runs.
        module: as after ``python -m``.
        arguments: its command line.
        options: of `_program`, ``given`` (a file that is its standard input), and ``out`` and
            ``err`` (files where its output goes).
    """

    def __init__(self, folder: Path, module: str, *arguments: str, **options: Any):
        streams = Path(tempfile.mkdtemp(dir=_streams()))
        self._out, self._err = (Path(options.get(n, streams / n)) for n in ("out", "err"))
        self._code = streams / "code"
        request = {"module": module, "arguments": arguments, "folder": folder, **options}
        request |= {"out": self._out, "err": self._err, "code": self._code}
        self.pid = SERVER.start(request)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None and self._code.exists():
            self.returncode = int(self._code.read_text())
        return self.returncode

    def wait(self, timeout: float = 240) -> int:
        """Wait for the end; return the exit code."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                self.send_signal(signal.SIGKILL)
                raise TimeoutError(f"still running after {timeout} s")
            time.sleep(TICK)
        return code

    def communicate(self, timeout: float = 240) -> tuple[str, str]:
        """Wait for the end; return output and error output."""
        self.wait(timeout)
        out, err = (p.read_text() if p.is_file() else "" for p in (self._out, self._err))
        return out, err

    def result(self) -> tuple[int, str, str]:
        """Wait for the end; return exit code, output and error output."""
        out, err = self.communicate()
        return self.wait(), out, err

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self.send_signal(signal.SIGKILL)


@cache
def _streams() -> Path:
    """Make the folder for what programs print."""
    folder = Path(tempfile.mkdtemp(prefix="task-stream-programs-"))
    atexit.register(shutil.rmtree, folder)
    return folder


class Server:
    """A copy of this process, made before any test ran; it ends with this process."""

    def __init__(self) -> None:
        asked, answered = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            as_program(asked[0], answered[1])
            try:
                serve()
            finally:
                os._exit(0)
        os.close(asked[0])
        os.close(answered[1])
        self._asks = os.fdopen(asked[1], "w")
        self._answers = os.fdopen(answered[0])
        atexit.register(self.end)

    def start(self, request: dict[str, Any]) -> int:
        """Start a program; return its process id."""
        self._asks.write(f"{json.dumps(request, default=str)}\n")
        self._asks.flush()
        return int(self._answers.readline())

    def end(self) -> None:
        """Kill what still runs."""
        self._asks.close()
        os.waitpid(self.pid, 0)
        self._answers.close()


# The server.


def _program(
    module: str,
    arguments: list[str],
    environment: dict[str, str] | None = None,
    path: str | None = None,
    mounts_of: int | None = None,
) -> None:
    """Run a module as a program, in the copy.

    Args:
        module: as after ``python -m``.
        arguments: its command line.
        environment: what changes in the environment.
        path: a folder from which modules are imported before others.
        mounts_of: a process (of `unshare`) whose mounts this one shall see.
    """
    if mounts_of is not None:
        folder = Path.cwd()
        for kind in ("user", "mnt"):
            descriptor = os.open(f"/proc/{mounts_of}/ns/{kind}", os.O_RDONLY)
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, 0) != 0:
                raise OSError(ctypes.get_errno(), f"setns {kind}")
        os.chdir(folder)
    os.environ.update(environment or {})
    sys.path[:0] = [] if path is None else [path]
    sys.argv[:] = [module, *arguments]
    if "." in module:
        sys.modules.pop(module, None)  # a test imported it
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def as_program(given: int, out: int) -> None:
    """Undo in a copy what pytest and xdist set up; its streams are what is given."""
    os.dup2(given, 0)
    os.dup2(out, 1)
    os.closerange(3, 4096)  # of xdist, which waits for their end
    sys.stdin, sys.stdout = (os.fdopen(n, how, closefd=False) for n, how in ((0, "r"), (1, "w")))
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    importlib.reload(warnings)  # pytest keeps them, and makes errors of them
    warnings.resetwarnings()
    for kind in USUALLY_IGNORED:
        warnings.simplefilter("ignore", kind)
    logging.root.handlers.clear()
    os.environ.update(ENVIRONMENT)


def serve() -> None:
    """Start what is asked for on the standard input; write down the exit codes."""
    use_blank_figures(pytest.MonkeyPatch())
    codes: dict[int, Path] = {}
    while True:
        if select.select([sys.stdin], [], [], TICK if codes else None)[0]:
            line = sys.stdin.readline()
            if not line:
                break
            warm_up()  # when the first program is asked for
            asked = json.loads(line)
            files = {n: Path(asked.pop(n)) for n in ("out", "err", "given") if n in asked}
            folder, code = Path(asked.pop("folder")), Path(asked.pop("code"))
            child = forked(lambda a=asked: _program(**a), folder, **files)
            codes[child] = code
            sys.stdout.write(f"{child}\n")
            sys.stdout.flush()
        while codes and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            partial = codes[ended[0]].with_suffix(".partial")
            partial.write_text(str(os.waitstatus_to_exitcode(ended[1])))
            partial.replace(codes.pop(ended[0]))
    for child in codes:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


SERVER = Server()
