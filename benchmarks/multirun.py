"""Multiruns of the product, several at once, each on one GPU.

A multirun runs its jobs one after another, skips what is finished, resumes the rest and names what
failed. It assigns no GPUs to jobs, which is all that is added here. When time is limited, start the
benchmark with ``timeout SECONDS``: like Ctrl-C, it makes every run save and stop, and the same
command goes on later (runs without checkpoints, as those of a search, start again). Environment
variables such as OMP_NUM_THREADS hold for every run.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from benchmarks import ROOT
from stream.files.run_folder import FILE_NAME
from stream.record.run_record import RunRecord

SWEEPS = ROOT / "runs/sweeps"


@dataclass(frozen=True)
class Multirun:
    """Runs that differ in one setting.

    Attributes:
        title: says what is run; names the multirun's folder and log in ``runs/sweeps``.
        settings: what all runs share, as for run_stream.py.
        key: the setting that differs, such as ``seed``.
        values: its value in each run.
    """

    title: str
    settings: Sequence[str]
    key: str
    values: Sequence[float]

    @property
    def name(self) -> str:
        """The title in a sweep's characters, and a hash, which other settings change."""
        digest = hashlib.sha256("\0".join([*self.settings, self.key]).encode()).hexdigest()
        return f"{re.sub(r'[^A-Za-z0-9_-]', '_', self.title)}-{digest[:8]}"

    @property
    def log(self) -> Path:
        """The file that its output is appended to."""
        return SWEEPS / f"{self.name}.log"

    @property
    def overrides(self) -> list[str]:
        """What its command says after ``run_stream.py -m``."""
        values = ",".join(map(str, self.values))
        # A job's folder does not depend on which other values are in the same start.
        folders = [f"sweep={self.name}", f"hydra.sweep.subdir=${{{self.key}}}"]
        return [*self.settings, f"{self.key}={values}", *folders]

    def folder(self, value: float) -> Path:
        """The run folder of one value."""
        return SWEEPS / self.name / str(value)

    def complete(self) -> dict[float, RunRecord]:
        """Return the records of its complete runs, by value."""
        there = [value for value in self.values if (self.folder(value) / FILE_NAME).exists()]
        records = {value: RunRecord.read(self.folder(value)) for value in there}
        return {value: found for value, found in records.items() if found.status == "complete"}


class Machine:
    """Runs commands from the repository's folder, at most as many at once as it has workers."""

    def __init__(self, workers: int, gpus: int):
        self._workers = workers
        self._gpus: Queue[int | None] = Queue()
        for worker in range(workers):
            self._gpus.put(worker % gpus if gpus else None)

    def run(self, command: Sequence[str], log: Path) -> int:
        """Run a command on a GPU that has a free worker; return its exit code."""
        gpu = self._gpus.get()
        own = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": str(gpu)}
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with log.open("ab") as file:
                done = subprocess.run(
                    command,
                    env={**os.environ, **own},
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    cwd=ROOT,
                    check=False,
                )
            return done.returncode
        finally:
            self._gpus.put(gpu)

    def multirun(self, runs: Multirun) -> dict[float, RunRecord]:
        """Start a multirun; return the records of its complete runs, by value."""
        self.run([sys.executable, "run_stream.py", "-m", *runs.overrides], runs.log)
        return runs.complete()

    def run_all(self, work: Sequence[Callable[[], str]]) -> None:
        """Do pieces of work at once, begun in order; print what each returns."""
        threads = ThreadPoolExecutor(self._workers)
        try:
            started = [threads.submit(piece) for piece in work]
            for number, future in enumerate(as_completed(started), start=1):
                print(f"{number}/{len(work)} {future.result()}", file=sys.stderr, flush=True)
        finally:
            threads.shutdown(cancel_futures=True)  # after Ctrl-C nothing more is begun


def shown(runs: Multirun, found: dict[float, RunRecord]) -> str:
    """Return one line: the average score of each complete run, and where to look for the others."""
    scores = [f"{100 * record.metrics['average_score']:.1f}" for record in found.values()]
    missing = [f"{runs.key}={value}" for value in runs.values if value not in found]
    failed = f"; not complete, see {runs.log}: {', '.join(missing)}" if missing else ""
    return f"{runs.title}: {', '.join(scores) or 'nothing'}{failed}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of benchmarks that start multiruns."""
    parser.add_argument("--out", type=Path, required=True, help="where records are kept")
    parser.add_argument("--workers", type=int, default=1, help="multiruns at once")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs to share among workers")
    parser.add_argument("settings", nargs="*", help="as for run_stream.py, such as data.root=DIR")


def start(
    description: str,
    steps: Mapping[str, Callable[[argparse.Namespace, Machine], None]],
    arguments: Sequence[str] | None,
) -> None:
    """Read the command line of a benchmark that searches and runs, and do the step it names."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("step", choices=list(steps))
    add_options(parser)
    parser.add_argument("--only", type=re.compile, default=".", help="names, a regular expression")
    parser.add_argument("--mpnet", type=Path, help="folder of the encoder mpnet_base")
    given = parser.parse_intermixed_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    given.out = given.out.resolve()
    steps[given.step](given, Machine(given.workers, given.gpus))


def machine_name() -> str:
    """Return what the runs are executed on."""
    import torch

    gpus = torch.cuda.device_count()
    name = f"{gpus} x {torch.cuda.get_device_name()}" if gpus else "CPU"
    return f"{name}, {os.cpu_count()} cores, torch {torch.__version__}"
