"""The comparison over 26 real tasks: every learner tuned alike, then run at full size.

Run, with data of all tasks in DATA:
python -m benchmarks.paper.evidence tune --out results/houlsby26 --work DIR --gpus 2 --workers 16 DATA
python -m benchmarks.paper.evidence run  --out results/houlsby26 --work DIR --gpus 2 --workers 16 DATA
``tune`` tries every learning rate of `evidence_plan.GRIDS` once and notes it in OUT/tune.jsonl;
``run`` runs `evidence_plan.jobs` with the best ones. Run folders lie in DIR; a record without
weights goes to OUT. What is there is not run again, unless another rate is the best one now; what
a limit of time (``--until``) stopped goes on from where it was. ``--mpnet`` is the folder of that
encoder; without it its runs are left out.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from typing import Any

from benchmarks.paper.plan import (
    FIXED,
    SIZES,
    Job,
    jobs,
    settings,
    trial_settings,
    trials,
)
from benchmarks.tables import read_lines
from stream.atomic_io import write_json

ROOT = Path(__file__).parent.parent.parent
PROGRAM = (sys.executable, str(ROOT / "run_stream.py"))
COMMAND = ("python", "run_stream.py")  # as a record says it


class Machine:
    """Runs commands side by side, each on one GPU, until its time is up."""

    def __init__(self, given: argparse.Namespace):
        self._ends = time.monotonic() + given.until
        self._threads = str(given.threads)
        self._slots: Queue[int | None] = Queue()
        for worker in range(given.workers):
            self._slots.put(worker % given.gpus if given.gpus else None)

    @property
    def left(self) -> float:
        """Seconds until its time is up."""
        return self._ends - time.monotonic()

    def run(self, command: Sequence[str], log: Path) -> tuple[int, float]:
        """Run a command; return its exit code and its wall time in seconds.

        When the time is up it is asked to stop, as by Ctrl-C.
        """
        slot = self._slots.get()
        try:
            if self.left < 0:
                return -signal.SIGTERM, 0.0
            # One GPU, few threads: many run side by side.
            own = {"OMP_NUM_THREADS": self._threads, "TOKENIZERS_PARALLELISM": "false"}
            own["COLUMNS"] = "120"
            if slot is not None:
                own["CUDA_VISIBLE_DEVICES"] = str(slot)
            started = time.monotonic()
            with log.open("ab") as file:
                process = subprocess.Popen(
                    command, env={**os.environ, **own}, stdout=file, stderr=file, cwd=ROOT
                )
                try:
                    process.wait(max(self.left, 0.1))
                except subprocess.TimeoutExpired:
                    process.terminate()
                    process.wait()
            return process.returncode, time.monotonic() - started
        finally:
            self._slots.put(slot)

    def run_all(self, work: Sequence[Callable[[], str]], workers: int) -> None:
        """Do pieces of work side by side, in order; print what became of each."""
        with ThreadPoolExecutor(workers) as pool:
            started = [pool.submit(piece) for piece in work]
            for number, future in enumerate(as_completed(started), start=1):
                print(f"{number}/{len(work)} {future.result()}", file=sys.stderr, flush=True)


def where(search: str, given: argparse.Namespace) -> list[str]:
    """Return the settings that say where the encoder is, and those of the command line."""
    folder = ["backbone=mpnet_base", "backbone.origin=folder", f"backbone.location={given.mpnet}"]
    return [*given.settings, *([] if search == "minilm" else folder)]


def tune(given: argparse.Namespace, machine: Machine) -> None:
    """Try every learning rate that was not tried."""
    path = given.out / "tune.jsonl"
    known = {(line["search"], line["learner"], line["rate"]) for line in read_lines(path)}

    def attempt(search: str, learner: str, rate: float) -> str:
        name = f"{search}-{learner}-{rate}"
        folder = given.work / "tune" / name
        chosen = trial_settings(search, learner, rate)
        command = [*PROGRAM, *chosen, *where(search, given), f"hydra.run.dir={folder}"]
        code, wall = machine.run(command, given.work / "tune" / f"{name}.log")
        if code != 0:
            return f"{name}: exit code {code}"
        metrics = read(folder / "results.json")["metrics"]
        scores = {key: metrics[key] for key in ("average_score", "learning_score")}
        facts = {"search": search, "learner": learner, "rate": rate, **scores}
        line = json.dumps({**facts, "settings": " ".join(chosen), "wall_s": round(wall, 1)})
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        return f"{name}: {100 * metrics['average_score']:.1f} in {wall:.0f} s"

    wanted = [trial for trial in trials() if trial[0] == "minilm" or given.mpnet]
    wanted = [trial for trial in wanted if given.only.search("/".join(map(str, trial)))]
    work = [lambda t=trial: attempt(*t) for trial in wanted if trial not in known]
    machine.run_all(work, given.workers)


def best_rates(path: Path) -> dict[tuple[str, str], float]:
    """Return the rate of the highest average validation score, by search and learner."""
    lines = sorted(read_lines(path), key=lambda line: (line["average_score"], -line["rate"]))
    return {(line["search"], line["learner"]): line["rate"] for line in lines}


def run(given: argparse.Namespace, machine: Machine) -> None:
    """Run what is missing of the plan."""
    work = [lambda j=job, r=rate: one(given, machine, j, r) for job, rate in missing(given)]
    machine.run_all(work, given.workers)


def missing(given: argparse.Namespace) -> Iterator[tuple[Job, float | None]]:
    """Yield the jobs to run, each with its learning rate."""
    rates = best_rates(given.out / "tune.jsonl")
    for job in jobs():
        rate = rates.get((job.search, job.learner))
        is_tuned = rate is not None or job.learner in FIXED
        has_encoder = job.search == "minilm" or given.mpnet
        named = given.only.search(f"{job.group}/{job.name}")
        if is_tuned and has_encoder and named and not is_kept(given.out, job, rate):
            yield job, rate


def is_kept(out: Path, job: Job, rate: float | None) -> bool:
    """Return whether there is a record of a job with this learning rate."""
    planned = shlex.join([*COMMAND, *settings(job, rate)])
    facts = read(out / job.group / job.name / "run.json")
    return bool(facts) and f"{facts['command']} ".startswith(f"{planned} ")


def one(given: argparse.Namespace, machine: Machine, job: Job, rate: float | None) -> str:
    """Start a run, or go on with it; when it is complete, keep its record."""
    kept = given.out / job.group / job.name
    folder = given.work / job.group / job.name / str(rate) / "run"
    folder.parent.mkdir(parents=True, exist_ok=True)
    record, name = folder.with_suffix(".json"), f"{job.group}/{job.name}"
    chosen = [*settings(job, rate), *where(job.search, given)]
    results = read(folder / "results.json")
    if results.get("status") != "complete":
        how = [f"resume={folder}"] if results else [*chosen, f"hydra.run.dir={folder}"]
        code, wall = machine.run([*PROGRAM, *how], folder.with_suffix(".log"))
        if wall:
            facts = {"command": shlex.join([*COMMAND, *chosen])}
            walls = [*read(record).get("wall_s", []), round(wall, 1)]
            facts |= {"wall_s": walls, "machine": machine_name()}
            record.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        if code != 0:
            return f"{name}: exit code {code} after {wall:.0f} s"
        results = read(folder / "results.json")
    kept.mkdir(parents=True, exist_ok=True)
    if problem := after(machine, job, folder, kept):
        return f"{name}: {problem}"
    results["losses"] = {}  # of every step: nine tenths of the file
    write_json(kept / "results.json", results)
    (kept / "run.json").write_bytes(record.read_bytes())  # last: it says that the rest is there
    return f"{name}: {100 * results['metrics']['average_score']:.1f}"


def read(path: Path) -> dict[str, Any]:
    """Return a JSON file; nothing where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def after(machine: Machine, job: Job, folder: Path, kept: Path) -> str | None:
    """Score adapters on validation rows, which chooses among sizes; prove one run from its files.

    Returns what went wrong.
    """
    commands = []
    if job.learner in SIZES and job.group == "given":
        found = [str(folder), str(kept / "validation.json")]
        commands.append((["benchmarks.paper.validate", *found], folder.with_suffix(".log")))
    if (job.learner, job.seed) == ("adapter64", 1):
        (kept / "verify.txt").unlink(missing_ok=True)
        commands.append((["analysis", "verify", str(folder)], kept / "verify.txt"))
    for arguments, log in commands:
        code, _ = machine.run([sys.executable, "-m", *arguments], log)
        if code != 0:
            return f"{arguments[0]}: exit code {code}"
    return None


def machine_name() -> str:
    """Return what the runs are executed on."""
    import torch

    gpus = torch.cuda.device_count()
    name = f"{gpus} x {torch.cuda.get_device_name()}" if gpus else "CPU"
    return f"{name}, {os.cpu_count()} cores, torch {torch.__version__}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Search, or run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("tune", "run"))
    parser.add_argument("--out", type=Path, required=True, help="where records are kept")
    parser.add_argument("--work", type=Path, required=True, help="where run folders lie")
    parser.add_argument("--workers", type=int, default=1, help="runs at once")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of each")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs to share among workers")
    parser.add_argument("--until", type=float, default=1e9, help="seconds, then stop and save")
    parser.add_argument(
        "--only", type=re.compile, default=".", help="names to run, a regular expression"
    )
    parser.add_argument("--mpnet", type=Path, help="folder of the encoder mpnet_base")
    parser.add_argument("settings", nargs="*", help="as for run_stream.py, such as data.root=DIR")
    given = parser.parse_intermixed_args(arguments)
    for folder in (given.out, given.work, given.work / "tune"):
        folder.mkdir(parents=True, exist_ok=True)
    given.work = given.work.resolve()
    {"tune": tune, "run": run}[given.step](given, Machine(given))


if __name__ == "__main__":
    main()
