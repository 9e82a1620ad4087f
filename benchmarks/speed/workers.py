"""What workers gain: the same stream with several numbers of them, whole programs one by one.

Run: python -m benchmarks.speed.workers workers=1,2,4 [settings], such as data=files data.root=DIR
limits.train=4000 limits.eval=500. A run that counts for nothing fills the cache of encoded rows
first. Digests of all cells and of what was learned must be those of the first number; ``--kill``
has a worker killed within a task, too. Ratios are what to read.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.stress.kill import comparable
from stream.files.run_folder import LOG_NAME
from stream.record.run_record import RunRecord

FILLS_CACHE = ("training.epochs=1", "training.min_steps=1", "evaluation.baseline=false")
FILLS_CACHE += ("evaluation.reuse=on", "checkpoint.enabled=false")
LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (.*)")
ROW = re.compile(r"after +\d+ ")
READY = " training steps, "  # in the line that says what will be done
LOOKED_S = 0.05
COLUMNS = ("workers", "whole s", "start", "reading", "stream", "figures", "learning, all")
COLUMNS += ("scoring, all", "busy", "stream, ratio", "whole, ratio")


class Times(NamedTuple):
    """Where the time of a program went, in seconds.

    Attributes:
        whole: all of it.
        start: until the run begins: Python, imports, settings; the end of the process too.
        reading: rows, encoder and learner, until the first task can begin.
        stream: from there to the last row: untrained scores, learning, scoring, saving.
        figures: the figures, and closing the run.
        learning: of learning, all workers together.
        scoring: of scoring, all workers together.
    """

    whole: float
    start: float
    reading: float
    stream: float
    figures: float
    learning: float
    scoring: float


def lines_of(folder: Path) -> list[tuple[float, str]]:
    """Return when each line was logged, in seconds since the epoch, and the line."""
    found = map(LINE.match, (folder / LOG_NAME).read_text(encoding="utf-8").splitlines())
    told = [match.groups() for match in found if match is not None]
    form = "%Y-%m-%d %H:%M:%S,%f"
    return [(datetime.strptime(at, form).timestamp(), text) for at, text in told]


def times_of(folder: Path, began: float, ended: float) -> Times:
    """Return where the time of a run went.

    Args:
        folder: the run folder.
        began: when its process was started, in seconds since the epoch.
        ended: when it had ended.
    """
    lines, timing = lines_of(folder), RunRecord.read(folder).timing
    ready = next(at for at, text in lines if READY in text)
    last_row = max(at for at, text in lines if ROW.match(text))
    closed = lines[-1][0]
    return Times(
        whole=ended - began,
        start=ready - timing.prepare_s - began + ended - closed,
        reading=timing.prepare_s,
        stream=last_row - ready,
        figures=closed - last_row,
        learning=timing.train_s,
        scoring=timing.evaluate_s + timing.baseline_s,
    )


def run(folder: Path, settings: Sequence[str], *, kill: bool = False) -> Times:
    """Run a program; return where its time went.

    Args:
        folder: the run folder, which is there afterwards.
        settings: of the command line.
        kill: kill one of its workers within a task.
    """
    command = [sys.executable, "-m", "stream", "run", *settings]
    command += ["tracking=none", "display=plain", f"hydra.run.dir={folder}"]
    began = time.time()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as program:
        if kill:
            kill_worker(program, folder)
    ended = time.time()
    if program.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {program.returncode}")
    return times_of(folder, began, ended)


def kill_worker(program: subprocess.Popen[bytes], folder: Path) -> None:
    """Kill a worker of a program when the first row is there, so that others are being learned."""
    while program.poll() is None:
        log = folder / LOG_NAME
        if log.exists() and any(ROW.match(text) for _, text in lines_of(folder)):
            workers = [pid for child in children(program.pid) for pid in children(child)]
            if workers:
                os.kill(workers[0], signal.SIGKILL)
                print(f"worker {workers[0]} was killed")
                return
        time.sleep(LOOKED_S)


def children(parent: int) -> list[int]:
    """Return the processes that a process has started, as Linux has them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return sorted(found)


def evidence(folder: Path) -> dict[str, Any]:
    """Return what must not depend on workers: cells, metrics, ledger, digests of what is stored."""
    found = comparable(folder)
    return {key: found[key] for key in ("cells", "metrics", "ledger", "fingerprints", "groups")}


def shown(count: int, times: Times, first: Times) -> str:
    """Return a line of the table."""
    busy = (times.learning + times.scoring) / max(count * times.stream, 1e-9)
    ratio = first.stream / max(times.stream, 1e-9)
    return (
        f"| {count} | {times.whole:.1f} | {times.start:.1f} | {times.reading:.1f} | "
        f"{times.stream:.1f} | {times.figures:.1f} | {times.learning:.1f} | {times.scoring:.1f} | "
        f"{100 * busy:.0f}% | {ratio:.2f} | {first.whole / times.whole:.2f} |"
    )


def parsed(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[int], list[str]]:
    """Return the flags, the numbers of workers, and the other settings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", action="store_true", help="kill a worker within a task")
    parser.add_argument("--with-workers", nargs="*", default=[], metavar="SETTING")
    parser.add_argument("--keep", type=Path, help="a folder that keeps the run folders")
    parser.add_argument("settings", nargs="*")
    given = parser.parse_intermixed_args(arguments)
    chosen = [text for text in given.settings if text.startswith("workers=")]
    numbers = (chosen or ["workers=1,2,4"])[0].partition("=")[2].split(",")
    rest = [text for text in given.settings if text not in chosen]
    return given, list(map(int, numbers)), rest


def main(arguments: Sequence[str]) -> None:
    """Run the stream with each number of workers, and print the table."""
    given, counts, settings = parsed(arguments)
    root = given.keep or Path(tempfile.mkdtemp(prefix="workers-"))
    parts = tuple(f"{text.partition('.')[0]}." for text in FILLS_CACHE)
    rows = [text for text in settings if not text.startswith((*parts, "count_flops", "select"))]
    run(root / "fills-the-cache", [*rows, *FILLS_CACHE])
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    first: Times | None = None
    expected: dict[str, Any] = {}
    for count in counts:
        own = [] if count == 1 else [f"workers={count}", *given.with_workers]
        folder = root / f"{count}-workers"
        times = run(folder, [*settings, *own], kill=given.kill and count > 1)
        first, found = first or times, evidence(folder)
        expected = expected or found
        print(shown(count, times, first), flush=True)
        differing = [key for key, value in expected.items() if found[key] != value]
        print(f"  {'equal' if not differing else 'DIFFERENT: ' + ', '.join(differing)}", flush=True)
    if given.keep is None:
        shutil.rmtree(root)


if __name__ == "__main__":
    main(sys.argv[1:])
