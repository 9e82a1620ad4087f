"""CPU seconds until a command line answers: ``python -m benchmarks.speed.startup``.

Each command runs in a process of its own, in an empty folder. ``cold`` is the first start after the
program or one of its methods changed: what is known of the methods is found out anew (see
`stream.learners.catalogue`). A run is timed until its first line. User and system time are added.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import ROOT

RUN = (str(ROOT / "run_stream.py"),)
TASK_STREAM = ("-m", "stream.cli.main")
COMMANDS: dict[str, Sequence[str]] = {
    "task-stream --help": (*TASK_STREAM, "--help"),
    "task-stream rnu": (*TASK_STREAM, "rnu"),
    "task-stream run --help": (*TASK_STREAM, "run", "--help"),
    "run_stream.py --help": (*RUN, "--help"),
    "run_stream.py learner=adaptr": (*RUN, "learner=adaptr"),
    "run_stream.py learner.sise=8": (*RUN, "learner.sise=8"),
    "run_stream.py learner.size=-3": (*RUN, "learner.size=-3"),
    "run_stream.py 'task=[rtee]'": (*RUN, "task=[rtee]"),
    "task-stream tasks --help": (*TASK_STREAM, "tasks", "--help"),
    "task-stream tasks show rtee": (*TASK_STREAM, "tasks", "show", "rtee"),
    "task-stream compare --help": (*TASK_STREAM, "compare", "--help"),
    "task-stream report --help": (*TASK_STREAM, "report", "--help"),
}
FIRST_LINE = {
    "run_stream.py, first line": (),
    "run_stream.py experiment=smoke, first line": ("experiment=smoke",),
}
STOPPED = """
import os, sys
import stream.cli.run as run
run._run = lambda *run: os._exit(0)  # the first line has been printed
run.main(sys.argv[1:])
"""


def cpu_seconds(command: Sequence[str], folder: Path, cache: Path) -> float:
    """Run Python with some arguments; return the user and system time that it took."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measured(command: Sequence[str], rounds: int) -> tuple[float, float]:
    """Return the CPU seconds of a command: cold, and the median of some warm ones."""
    with tempfile.TemporaryDirectory(prefix="startup-") as name:
        folder, cache = Path(name, "here"), Path(name, "cache")
        folder.mkdir()
        cold, *warm = (cpu_seconds(command, folder, cache) for _ in range(rounds + 1))
    return cold, median(warm)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every command; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="warm starts of each command")
    given = parser.parse_args(arguments)
    commands = COMMANDS | {name: ("-c", STOPPED, *rest) for name, rest in FIRST_LINE.items()}
    print("| command | cold | warm |\n|---|---|---|")
    for name, command in commands.items():
        cold, warm = measured(command, given.rounds)
        print(f"| `{name}` | {cold:.2f} s | {warm:.2f} s |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
