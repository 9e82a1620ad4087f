"""Starts the program for tests: in a process of its own, or in a copy of one that imported it.

``run`` asks a server (this file, started once a test process), which forks for each run: see
`benchmarks.warm`.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, str(ROOT / "run_stream.py")]
TINY = ["experiment=smoke", "device=cpu"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the program on a tiny encoder, in a process of its own."""
    return subprocess.Popen(
        [*PROGRAM, *TINY, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run_alone(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the program as `start`; return exit code, output and error output."""
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the program on a tiny encoder; return exit code, output and error output."""
    return run_plain(folder, *TINY, *arguments)


def run_plain(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the program with just these arguments; return exit code, output and error output."""
    with tempfile.TemporaryDirectory() as streams:
        request = {"folder": str(folder), "arguments": arguments, "streams": streams}
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{json.dumps(request)}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (Path(streams, n).read_text(encoding="utf-8") for n in ("out", "err"))
    return code, out, err


@cache
def _server() -> subprocess.Popen[str]:
    """Start the server of this test process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.run.program"],
        cwd=ROOT,
        env=ENVIRONMENT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(process.kill)
    return process


def serve() -> None:
    """Answer requests: run the program in a fork, tell its exit code."""
    from benchmarks.warm import forked

    for line in sys.stdin:
        asked = json.loads(line)
        out, err = (Path(asked["streams"], name) for name in ("out", "err"))
        child = forked(asked["arguments"], Path(asked["folder"]), out, err)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
