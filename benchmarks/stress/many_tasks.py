"""A stream of a thousand tasks through the command line: time, bytes and memory of every step.

Run: python -m benchmarks.stress.many_tasks --tasks 1000 --folder FOLDER [settings]. Generated tasks
from a config folder that is made here, the tiny encoder, `evaluation.reuse=on`. A run is stopped by
SIGTERM when most rows are done and goes on with ``resume=``; then it is reported, compared and
verified. Prints a line for each command, the rows' times, and what 10,000 tasks would take by the
slopes. Rows are compared by
their CPU time, which other work on the machine hardly changes.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import ROOT
from stream.files.run_folder import LOG_NAME

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
ROW = re.compile(r"\S+ \S+ after +(\d+) ")
POLL_S = 0.1
STOPPED_AT = 0.8  # of the tasks
SHOWN = 10_000  # tasks that the slopes are drawn to
WINDOW = 0.1  # of the tasks, whose rows are compared


class Cost(NamedTuple):
    """What a command took: wall time, CPU time, memory at most, bytes given to ``write``."""

    name: str
    seconds: float
    cpu_seconds: float
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


class Rows:
    """The rows of a run as its log tells of them, and the CPU time that was used up to each."""

    def __init__(self, folder: Path):
        self._log = folder / LOG_NAME
        self._read = 0
        self.cpu_s: dict[int, float] = {}

    def look(self, pid: int) -> None:
        """Note the rows that the process ``pid`` has added since the last look."""
        if not self._log.exists():
            return
        with self._log.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(end)
        found = [int(row[1]) for row in map(ROW.match, whole.decode().splitlines()) if row]
        if found:
            self.cpu_s[found[-1]] = _cpu_s(pid)

    def skip(self) -> None:
        """Look at what is added from now on alone."""
        self._read = self._log.stat().st_size if self._log.exists() else 0

    @property
    def done(self) -> int:
        """How many rows there are."""
        return max(self.cpu_s, default=0)


def command(
    name: str, arguments: Sequence[str], output: Path, rows: Rows | None = None, stop_at: int = 0
) -> Cost:
    """Run ``task-stream`` with arguments; return what it took.

    Args:
        name: what it is called in the table.
        arguments: what stands behind ``task-stream``.
        output: the file for what it says.
        rows: of the run, which are watched.
        stop_at: the process gets SIGTERM when there are so many rows; 0 lets it end.
    """
    began = time.perf_counter()
    with output.open("wb") as file:
        line = [sys.executable, "-m", "stream", *arguments]
        process = subprocess.Popen(line, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
    stopped = False
    ended = os.WEXITED | os.WNOWAIT  # the process stays to be asked what it wrote
    while os.waitid(os.P_PID, process.pid, ended | os.WNOHANG) is None:
        time.sleep(POLL_S)
        if rows is not None:
            rows.look(process.pid)
        if rows is not None and stop_at and not stopped and rows.done >= stop_at:
            process.send_signal(signal.SIGTERM)
            stopped = True
    seconds = time.perf_counter() - began
    written = _written(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(name, seconds, cpu, usage.ru_maxrss * 1024, written, process.returncode)


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process so far (Linux)."""
    values = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def _written(pid: int) -> int:
    """Return the bytes that a process has handed to ``write`` (Linux)."""
    text = Path(f"/proc/{pid}/io").read_text(encoding="utf-8")
    return int(dict(line.split(": ") for line in text.splitlines())["wchar"])


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder, or of a file."""
    files = [folder] if folder.is_file() else folder.rglob("*")
    return sum(path.stat().st_size for path in files if path.is_file())


def measured(
    count: int, folder: Path, settings: Sequence[str]
) -> tuple[list[Cost], list[dict[int, float]]]:
    """Run all commands in a folder.

    Returns:
        What each command took, and the CPU seconds up to rows, of the run and of its second part.
    """
    conf, run = made_stream(count, folder / "conf"), folder / "run"
    chosen = ["--config-dir", str(conf), "stream=made", *SMALL, *settings]
    costs, parts = [], [Rows(run), Rows(run)]

    def call(name: str, *arguments: str, rows: Rows | None = None, stop_at: int = 0) -> None:
        output = folder / f"{name.replace(' ', '-')}.txt"
        costs.append(command(name, arguments, output, rows, stop_at))
        print(_line(costs[-1]), flush=True)

    call("settings", "run", *chosen, "--cfg", "job", "-p", "training")
    call("dry run", "run", *chosen, "--dry-run")
    most = int(STOPPED_AT * count)
    call("run", "run", *chosen, f"hydra.run.dir={run}", rows=parts[0], stop_at=most)
    parts[1].skip()
    call("resume", "run", "--config-dir", str(conf), f"resume={run}", rows=parts[1])
    call("report", "report", str(run), "--out", str(folder / "report.html"))
    call("compare", "compare", str(run))
    call("verify", "verify", str(run))
    return costs, [part.cpu_s for part in parts]


def _line(cost: Cost) -> str:
    """Return the line of a command."""
    note = "" if cost.code == 0 else f"  exit code {cost.code}"
    return (
        f"{cost.name:<12}{cost.seconds:9.1f} s{cost.cpu_seconds:9.1f} s"
        f"{cost.peak_bytes / 2**20:10.0f} MiB{cost.written_bytes / 1e6:11.1f} MB{note}"
    )


def row_lines(parts: Sequence[dict[int, float]], count: int) -> list[str]:
    """Return what rows take: windows, their ratio, and the slope to more tasks.

    Args:
        parts: of each process, the CPU seconds up to rows, by the row's number from 1.
        count: how many tasks there are.
    """
    width = max(int(WINDOW * count), 2)
    parts = [{n: s for n, s in part.items() if n < count} for part in parts]  # what ends it is none
    spans = [
        _each(part, start, start + width) for part in parts for start in range(0, count, width)
    ]
    found = [span for span in spans if span is not None]
    early = next((s for at, s in found if at > 1.2 * width), None)  # not the first tenth
    if early is None or len(found) < 3:
        return ["too few rows for a slope"]
    last = found[-1][1]
    middles, seconds = zip(*found[1:], strict=True)
    slope, start = np.polyfit(middles, seconds, 1)
    foretold = start * SHOWN + max(slope, 0.0) * SHOWN**2 / 2
    lines = [f"around row {at:,.0f}: {1e3 * s:.1f} ms of CPU a row" for at, s in found]
    return [
        *lines,
        f"the last tenth takes {last / early:.2f} x the second",
        f"a row takes {1e3 * start:.1f} ms + {1e6 * slope:.2f} us a task before it",
        f"{SHOWN:,} tasks by that: {foretold / 60:.0f} minutes of CPU for rows",
    ]


def _each(part: dict[int, float], first: int, last: int) -> tuple[float, float] | None:
    """Return the middle of what was seen between two rows, and the CPU seconds of one row there.

    None where less than half of it was seen.
    """
    seen = [number for number in part if first <= number <= last]
    if not seen or seen[-1] - seen[0] < (last - first) / 2:
        return None
    rows = seen[-1] - seen[0]
    return (seen[0] + seen[-1]) / 2, (part[seen[-1]] - part[seen[0]]) / rows


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
        print(f"{given.tasks} tasks\n{'':<12}{'time':>11}{'CPU':>11}{'peak':>14}{'written':>14}")
        costs, parts = measured(given.tasks, folder, given.settings)
        run = folder / "run"
        for text in row_lines(parts, given.tasks):
            print(text)
        names = ("results.json", "rows.jsonl", "checkpoint", "figures", LOG_NAME)
        sizes = ((name, run / name) for name in names if (run / name).exists())
        print("; ".join(f"{name} {size_of(path) / 1e6:.1f} MB" for name, path in sizes))
    interrupted = {"run"}
    return int(any(cost.code for cost in costs if cost.name not in interrupted))


if __name__ == "__main__":
    sys.exit(main())
