"""A stream of a thousand tasks through the command line: time, bytes and memory of every step.

Run: python -m benchmarks.stress.many_tasks --tasks 1000 --folder FOLDER [settings]. Generated tasks
from a config folder that is made here, the tiny encoder, `evaluation.reuse=on`. A run is stopped by
SIGTERM when most rows are done and goes on with ``resume=``; then it is reported, compared and
verified. Prints a line for each command, the rows' times, and what 10,000 tasks would take by the
slopes. Times are of one machine; ratios of rows are from one run.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import ROOT
from stream.run_folder import LOG_NAME

SMALL = (
    "data=generated",
    "data.train=16",
    "data.validation=8",
    "data.test=16",
    "training.epochs=1",
    "training.min_steps=1",
    "backbone=tiny",
    "tracking=none",
    "evaluation.reuse=on",
)
ROW = re.compile(r"^(\S+ \S+) after +(\d+) ")
POLL_S = 0.1
STOPPED_AT = 0.8  # of the tasks
SHOWN = 10_000  # tasks that the slopes are drawn to
WINDOW = 0.1  # of the tasks, whose rows are compared


class Cost(NamedTuple):
    """What a command took."""

    name: str
    seconds: float
    peak_bytes: int
    written_bytes: int
    code: int


def made_stream(count: int, folder: Path) -> Path:
    """Write the YAML of a stream of generated tasks and of each task; return the folder."""
    names = [f"made_{number:05}" for number in range(1, count + 1)]
    for group in ("task", "stream"):
        (folder / group).mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names, 1):
        text = (
            f'{name}:\n  title: "Made {number}"\n  kind: single\n  labels: ["no", "yes"]\n'
            '  metric: accuracy\n  source: "made"\n  fields: ["text"]\n  generated:\n    words: 6\n'
        )
        (folder / "task" / f"{name}.yaml").write_text(text, encoding="utf-8")
    listed = "".join(f"  - {name}\n" for name in names)
    text = f"# Generated tasks.\nname: made\ntasks:\n{listed}"
    (folder / "stream" / "made.yaml").write_text(text, encoding="utf-8")
    return folder


def command(
    name: str,
    arguments: Sequence[str],
    output: Path,
    stop: Callable[[], bool] = lambda: False,
) -> Cost:
    """Run ``task-stream`` with arguments; return what it took.

    Args:
        name: what it is called in the table.
        arguments: what stands behind ``task-stream``.
        output: the file for what it says.
        stop: asked again and again; once it says so, the process gets SIGTERM.
    """
    began = time.perf_counter()
    with output.open("wb") as file:
        line = [sys.executable, "-m", "stream", *arguments]
        process = subprocess.Popen(line, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
    stopped = False
    ended = os.WEXITED | os.WNOWAIT  # the process stays to be asked what it wrote
    while os.waitid(os.P_PID, process.pid, ended | os.WNOHANG) is None:
        time.sleep(POLL_S)
        if not stopped and stop():
            process.send_signal(signal.SIGTERM)
            stopped = True
    seconds = time.perf_counter() - began
    written = _written(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(name, seconds, usage.ru_maxrss * 1024, written, process.returncode)


def _written(pid: int) -> int:
    """Return the bytes that a process has handed to ``write`` (Linux)."""
    text = Path(f"/proc/{pid}/io").read_text(encoding="utf-8")
    return int(dict(line.split(": ") for line in text.splitlines())["wchar"])


def row_ends(folder: Path) -> dict[int, float]:
    """Return when each row of a run was done, in seconds since the epoch, from its log."""
    path = folder / LOG_NAME
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = filter(None, map(ROW.match, lines))
    return {
        int(row[2]): datetime.strptime(row[1], "%Y-%m-%d %H:%M:%S,%f").timestamp() for row in found
    }


def row_seconds(ends: dict[int, float], restarted: int) -> dict[int, float]:
    """Return the seconds of each row whose predecessor is of the same process.

    Args:
        ends: when rows were done.
        restarted: the first row that another process did.
    """
    follows = (n for n in ends if n - 1 in ends and n != restarted)
    return {number: ends[number] - ends[number - 1] for number in follows}


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder, or of a file."""
    files = [folder] if folder.is_file() else folder.rglob("*")
    return sum(path.stat().st_size for path in files if path.is_file())


def measured(count: int, folder: Path, settings: Sequence[str]) -> tuple[list[Cost], int]:
    """Run all commands in a folder.

    Returns:
        What each command took, and the first row after the interruption.
    """
    conf, run = made_stream(count, folder / "conf"), folder / "run"
    chosen = ["--config-dir", str(conf), "stream=made", *SMALL, *settings]
    costs = []

    def call(name: str, *arguments: str, stop: Callable[[], bool] = lambda: False) -> None:
        costs.append(command(name, arguments, folder / f"{name.replace(' ', '-')}.txt", stop))
        print(_line(costs[-1]), flush=True)

    call("settings", "run", *chosen, "--cfg", "job", "-p", "training")
    call("dry run", "run", *chosen, "--dry-run")
    most = int(STOPPED_AT * count)
    started = f"hydra.run.dir={run}"
    call("run", "run", *chosen, started, stop=lambda: max(row_ends(run), default=0) >= most)
    restarted = max(row_ends(run), default=0) + 1
    call("resume", "run", "--config-dir", str(conf), f"resume={run}")
    call("report", "report", str(run), "--out", str(folder / "report.html"))
    call("compare", "compare", str(run))
    call("verify", "verify", str(run))
    return costs, restarted


def _line(cost: Cost) -> str:
    """Return the line of a command."""
    note = "" if cost.code == 0 else f"  exit code {cost.code}"
    return (
        f"{cost.name:<12}{cost.seconds:9.1f} s{cost.peak_bytes / 2**20:10.0f} MiB"
        f"{cost.written_bytes / 1e6:11.1f} MB{note}"
    )


def row_lines(seconds: dict[int, float], count: int) -> list[str]:
    """Return what the times of rows say: windows, their ratio, and the slope to more tasks.

    Args:
        seconds: of each row, by its number from 1.
        count: how many tasks there are.
    """
    width = max(int(WINDOW * count), 2)
    early = [s for n, s in seconds.items() if width < n <= 2 * width]
    late = [s for n, s in seconds.items() if n > count - width]
    if not early or not late:
        return ["too few rows for a slope"]
    first, last = float(np.mean(early)), float(np.mean(late))
    rows = np.array([n for n in sorted(seconds) if n > width], dtype=np.float64)
    slope, start = np.polyfit(rows, [seconds[int(n)] for n in rows], 1)
    grown = max(slope, 0.0)
    foretold = start * SHOWN + grown * SHOWN**2 / 2
    return [
        f"rows {width + 1} to {2 * width}: {1e3 * first:.1f} ms each",
        f"rows {count - width + 1} to {count}: {1e3 * last:.1f} ms each, {last / first:.2f} x",
        f"a row takes {1e3 * start:.1f} ms + {1e6 * slope:.2f} us a task before it",
        f"{SHOWN:,} tasks by that: {foretold / 60:.0f} minutes of rows",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and print the tables; exit code 1 when a command failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=1000, help="how many tasks the stream has")
    parser.add_argument("--folder", type=Path, help="where everything goes; else it is temporary")
    parser.add_argument("settings", nargs="*", help="as for task-stream run")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="many-") as temporary:
        folder = Path(temporary) if given.folder is None else given.folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{given.tasks} tasks\n{'':<12}{'time':>11}{'peak':>14}{'written':>14}")
        costs, restarted = measured(given.tasks, folder, given.settings)
        run = folder / "run"
        for text in row_lines(row_seconds(row_ends(run), restarted), given.tasks):
            print(text)
        names = ("results.json", "rows.jsonl", "checkpoint", "figures", LOG_NAME)
        sizes = ((name, run / name) for name in names if (run / name).exists())
        print("; ".join(f"{name} {size_of(path) / 1e6:.1f} MB" for name, path in sizes))
    interrupted = {"run"}
    return int(any(cost.code for cost in costs if cost.name not in interrupted))


if __name__ == "__main__":
    sys.exit(main())
