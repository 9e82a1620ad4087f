"""Starts the program for tests: in a process of its own, or in a copy of one that imported it.

Importing torch, transformers and matplotlib takes longer than a small run. ``run`` therefore asks
a server (this file, started once a test process), which has imported everything and computed
nothing; it forks for each run, so that no run sees anything of another.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, str(ROOT / "run_stream.py")]
TINY = ["experiment=smoke", "device=cpu"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
CRASHED = 70


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
    sys.path.insert(0, str(ROOT))
    import matplotlib.figure
    import transformers

    import run_stream

    assert matplotlib.figure
    assert transformers.BertModel
    assert transformers.AutoModel
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _be_the_program(run_stream, json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _be_the_program(module: Any, request: dict[str, Any]) -> NoReturn:
    """Run the program in this process and end it."""
    code = CRASHED
    try:
        for number, name in ((1, "out"), (2, "err")):
            with Path(request["streams"], name).open("w", encoding="utf-8") as file:
                os.dup2(file.fileno(), number)
        os.chdir(request["folder"])
        module.main(request["arguments"])
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - told by exit code and error output
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
