"""How fast encoders of common sizes learn on a GPU, and whether captured steps are eager ones.

Run: python -m benchmarks.encoders.speed --out results/encoders
Each of `benchmarks.encoders.plan.SIZES` learns LoRA in three ways (`benchmarks.encoders.ways`), and
every tiny shape of the tests learns adapters eagerly and captured. Each is one line of
OUT/runs.jsonl; what stands there is not done again, and with ``--retry`` only what failed is. A
failure is a line too, with its reason. The work is done in another process, which is started anew
where one measurement has brought it down or takes longer than ``--limit`` seconds.
"""

import argparse
import gc
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from benchmarks.encoders.plan import SIZES
from benchmarks.encoders.records import FILE, Measured, measured
from benchmarks.encoders.ways import WAYS, Work
from benchmarks.lines import append_line
from stream.errors import first_line
from stream.learners.adapter import Adapter
from tests.contract.matrix import shapes
from tests.models.tiny_families import FAMILIES
from tests.training.captured import compare

AGREEMENT = "agreement"
Job = tuple[str, str]


def jobs() -> Sequence[Job]:
    """Return (name, way) of everything that is measured."""
    sizes = [(name, way) for name in SIZES for way in WAYS]
    return [*sizes, *((shape, AGREEMENT) for shape in shapes())]


def pending(folder: Path, *, retry: bool) -> list[Job]:
    """Return what is not measured yet; with ``retry`` what failed, too."""
    found = measured(folder)
    return [job for job in jobs() if job not in found or (retry and found[job].failed)]


def machine() -> str:
    """Return what this runs on: the device and the versions."""
    on_gpu = torch.cuda.is_available()
    names = [torch.cuda.get_device_name() if on_gpu else platform.machine()]
    for library in ("torch", "transformers", "peft", "accelerate"):
        try:
            names.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            names.append(f"no {library}")
    return ", ".join(names)


def measure(job: Job, *, tiny: bool) -> Measured:
    """Measure, and return the line; with ``tiny`` of encoders of two layers."""
    name, way = job
    if way == AGREEMENT:
        eager, captured, refusal = compare(name, Adapter, half=True)
        difference = max(abs(one - other) for one, other in zip(eager, captured, strict=True))
        found = {"difference": difference, "refusal": refusal}
    else:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        work = Work(SIZES[name], device)
        if tiny:
            work = Work(FAMILIES[SIZES[name]["model_type"]], device, steps=12, tokens=16)
        found = WAYS[way](work)
    return Measured(name=name, way=way, machine=machine(), **found)


def work_off(given: argparse.Namespace) -> int:
    """Measure what is to be done; return 1 where this process cannot go on."""
    for job in given.jobs or []:
        name, _, way = job.partition("|")
        begun = time.perf_counter()
        try:
            line = measure((name, way), tiny=given.tiny)
        except Exception as error:  # noqa: BLE001 - one encoder's failure does not stop the others
            reason = f"{type(error).__name__}: {first_line(error)}"
            line = Measured(name=name, way=way, machine=machine(), failed=reason)
        append_line(given.out / FILE, line)
        said = line.failed or line.refusal or f"{line.steps_per_s or line.difference:.3g}"
        print(f"{name}, {way}: {said} ({time.perf_counter() - begun:.0f} s)", flush=True)
        if "CUDA error" in line.failed:  # nothing works after it
            return 1
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return 0


def watched(command: Sequence[str], path: Path, limit: float) -> str:
    """Run a process that adds lines to a file; return why it ended before its time.

    Args:
        command: what is run.
        path: the file.
        limit: seconds without a new line after which it is ended.
    """
    with subprocess.Popen(command) as child:
        size, last = 0, time.monotonic()
        while child.poll() is None:
            time.sleep(0.5)
            now = path.stat().st_size if path.exists() else 0
            if now != size:
                size, last = now, time.monotonic()
            if time.monotonic() - last > limit:
                child.kill()
                return f"took longer than {limit:g} s"
    return f"the process ended with {child.returncode}" if child.returncode else ""


def command_of(out: Path, todo: Sequence[Job], *, tiny: bool) -> list[str]:
    """Return the command that measures some jobs."""
    command = [sys.executable, "-m", "benchmarks.encoders.speed", "--out", str(out)]
    return [*command, *["--tiny"] * tiny, "--jobs", *("|".join(job) for job in todo)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure everything; return 0, also where something failed: it has a line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--retry", action="store_true", help="what failed is measured again")
    parser.add_argument("--tiny", action="store_true", help="tiny encoders: to try it on a CPU")
    parser.add_argument("--limit", type=float, default=90, help="seconds of one measurement")
    parser.add_argument("--jobs", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.jobs is not None:
        return work_off(given)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / FILE
    todo = pending(given.out, retry=given.retry)
    while todo:
        size = path.stat().st_size if path.exists() else 0
        why = watched(command_of(given.out, todo, tiny=given.tiny), path, given.limit)
        added = path.read_bytes()[size:].count(b"\n") if path.exists() else 0
        todo = todo[added:]
        fatal = why and not (added and "CUDA error" in path.read_text().splitlines()[-1])
        if todo and fatal:
            (name, way), *todo = todo
            append_line(path, Measured(name=name, way=way, machine=machine(), failed=why))
            print(f"{name}, {way}: {why}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
