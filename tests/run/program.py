"""Starts whole programs for tests, in copies of one process that has imported everything.

The process is a server (this file; one for each test process): see `benchmarks.warm`. Only what
a test says about the start of a process itself needs an interpreter of its own: `PROGRAM`.
"""

import atexit
import ctypes
import json
import os
import runpy
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, str(ROOT / "run_stream.py")]
TINY = ["experiment=smoke", "device=cpu"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
TICK = 0.01


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
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{json.dumps(request, default=str)}\n")
        server.stdin.flush()
        self.pid = int(server.stdout.readline())
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


@cache
def _server() -> "subprocess.Popen[str]":
    """Start the server of this test process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.run.program"],
        cwd=ROOT,
        env=ENVIRONMENT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(process.communicate)  # ends with its input
    return process


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
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def serve() -> None:
    """Start what is asked for on the standard input; write down the exit codes."""
    import pytest

    from benchmarks.warm import forked
    from tests.blank_figures import use_blank_figures

    use_blank_figures(pytest.MonkeyPatch())
    codes: dict[int, Path] = {}
    while True:
        if select.select([sys.stdin], [], [], TICK if codes else None)[0]:
            line = sys.stdin.readline()
            if not line:
                break
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


if __name__ == "__main__":
    serve()
