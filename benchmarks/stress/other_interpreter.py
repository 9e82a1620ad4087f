"""Runs in copies of another interpreter, whose sets have an order of their own.

An interpreter for each run would import everything each time. Started as a program, this module is
that interpreter: it reads one request a line, and answers with the exit code of the run.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import ROOT
from benchmarks.stress.moments import count_calls
from benchmarks.warm import forked, run_main, warm_up


class OtherInterpreter:
    """The interpreter, from the side of who asks; it ends with the process that asks."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.stress.other_interpreter"]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": "random"},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def counted(self, settings: Sequence[str], root: Path, log: Path, counts: Path) -> int:
        """Make a run; return its exit code.

        Args:
            settings: as for run_stream.py.
            root: the folder where it is started.
            log: the file behind which its output goes.
            counts: where it writes how often it called what is in `MOMENTS`.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = [list(settings), str(root), str(log), str(counts)]
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def serve() -> None:
    """Make the runs that are asked for on the standard input."""
    warm_up()
    for line in sys.stdin:
        settings, root, log, counts = json.loads(line)

        def program(settings: list[str] = settings, counts: str = counts) -> None:
            count_calls(Path(counts))
            run_main(settings)

        child = forked(program, Path(root), Path(log), Path(log))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
