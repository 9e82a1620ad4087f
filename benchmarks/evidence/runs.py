"""The runs of docs/protocol.md, on the program's own workers; their records, without weights.

What is kept in ``OUT/runs`` with the settings of the plan is not run again.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from pathlib import Path

import stream
from benchmarks import ROOT
from benchmarks.evidence.layers import LAYERS, remove_layers
from benchmarks.evidence.plan import Job, jobs, with_settings
from benchmarks.evidence.records import RUNS, VERIFIED, AtOnce, keep
from benchmarks.evidence.searches import SCRATCH, chosen_for
from stream.config.workers import WorkersConfig
from stream.errors import UserError, first_line
from stream.files.run_folder import FILE_NAME
from stream.record.run_record import RunRecord
from stream.workers.engine import Engine, Worker

PLACES = ("data.root=", "backbone.origin=", "backbone.location=")
"""Settings that say where things are, which differ from machine to machine."""


def run_one(
    worker: Worker | None, settings: list[str], folder: Path, *, loses_layers: bool
) -> None:
    """Run a learner over a stream, on a worker; the run folder is there afterwards.

    Args:
        worker: where it runs; None is this process.
        settings: of the run.
        folder: the run folder.
        loses_layers: whether the run is then scored without the adapters of ranges of layers.
    """
    del worker
    shutil.rmtree(folder, ignore_errors=True)  # of a start that was stopped
    stream.run_stream(overrides=settings, folder=folder, quiet=True)
    if loses_layers:
        remove_layers(folder)


def run_missing(
    out: Path, more: Sequence[str], workers: WorkersConfig, wanted: Callable[[Job], bool]
) -> list[str]:
    """Run what is missing of the plan; return what failed, in a line each.

    Args:
        out: the folder of all records.
        more: further settings of every run, such as ``data.root=DIR``.
        workers: how many runs at once, and where.
        wanted: tells jobs that are wanted.
    """
    chosen = filter(wanted, jobs())
    todo = {job: given for job in chosen if (given := missing(out, job, more))}
    at_once = made_at_once(workers, len(todo))
    return run_all(todo, workers, lambda job, folder: keep_run(out, job, folder, at_once))


def made_at_once(workers: WorkersConfig, number: int) -> AtOnce:
    """Return how many of so many runs are made at once, and on how many GPUs."""
    import torch

    gpus = torch.cuda.device_count()
    used = gpus if workers.per_gpu is None else min(gpus, -(-workers.count // workers.per_gpu))
    return AtOnce(runs=min(workers.count, number), gpus=used)


def run_all(
    todo: Mapping[Job, list[str]],
    workers: WorkersConfig,
    ended: Callable[[Job, Path], str],
) -> list[str]:
    """Run jobs on workers; return what failed, in a line each.

    Args:
        todo: the settings of each job.
        workers: how many runs at once, and where.
        ended: is given a job and its run folder, which is removed then; returns what to say of it,
            or raises `UserError`.
    """
    failed = []
    for number, (job, ended_run) in enumerate(_ended_runs(todo, workers), start=1):
        told, good = _outcome(ended_run, job, ended)
        if not good:
            failed.append(f"{job.name}: {told}")
        print(f"{number}/{len(todo)} {job.name}: {told}", file=sys.stderr, flush=True)
    return failed


def _ended_runs(
    todo: Mapping[Job, list[str]], workers: WorkersConfig
) -> Iterator[tuple[Job, "Future[None]"]]:
    """Yield jobs as they end.

    One at a time is run by this process, so that a run may have workers of its own: those of an
    engine cannot have any.
    """
    if workers.count == 1:
        for job, given in todo.items():
            yield job, _run_here(job, given)
        return
    from stream.run.engines import engine_for  # with torch

    with engine_for(workers, "auto") as engine:
        begun = {begin(engine, job, given): job for job, given in todo.items()}
        for future in as_completed(begun):
            yield begun[future], future


def _run_here(job: Job, settings: list[str]) -> "Future[None]":
    """Run a job in this process; return what came of it."""
    ended: Future[None] = Future()
    try:
        run_one(None, settings, SCRATCH / job.name, loses_layers=job.loses_layers)
    except Exception as problem:  # noqa: BLE001  # told in a line, as a worker's is
        ended.set_exception(problem)
    else:
        ended.set_result(None)
    return ended


def _outcome(
    future: "Future[None]", job: Job, ended: Callable[[Job, Path], str]
) -> tuple[str, bool]:
    """Return what to say of a run that ended, and whether all is well; remove its folder then."""
    error, folder = future.exception(), SCRATCH / job.name
    if error is not None:
        return f"{type(error).__name__}: {first_line(error)}", False
    try:
        told = ended(job, folder)
    except UserError as problem:
        return str(problem), False
    shutil.rmtree(folder)
    return told, True


def missing(out: Path, job: Job, more: Sequence[str]) -> list[str] | None:
    """Return the settings of a run that is to be made; None if it is kept or not tuned yet."""
    chosen = chosen_for(out, job.group, job.method)
    if chosen is None:
        return None
    settings = with_settings(job.settings(chosen), more)
    file = out / RUNS / job.name / FILE_NAME
    if job.loses_layers and not (file.parent / LAYERS).exists():
        return settings
    had = set(RunRecord.read(file).overrides or []) if file.exists() else set()
    return None if had >= without_places(settings) else settings


def without_places(settings: Sequence[str]) -> set[str]:
    """Return settings without those that say where things are."""
    return {text for text in settings if not text.startswith(PLACES)}


def begin(engine: Engine, job: Job, settings: list[str]) -> "Future[None]":
    """Have a worker run a job."""
    return engine.submit(
        f"running {job.name}", run_one, settings, SCRATCH / job.name, loses_layers=job.loses_layers
    )


def keep_run(out: Path, job: Job, folder: Path, at_once: AtOnce) -> str:
    """Keep the record of a complete run; return its score.

    Raises:
        UserError: a run that is verified does not verify; it is not kept.
    """
    record, kept = RunRecord.read(folder), out / RUNS / job.name
    told = verified(folder) if job.is_verified else ""
    keep(record, kept, at_once)
    if job.loses_layers:
        shutil.copy(folder / LAYERS, kept)
    if told:
        (kept / VERIFIED).write_text(told, encoding="utf-8")
    return f"{100 * (record.metrics['average_score'] or 0):.1f}"


def verified(folder: Path) -> str:
    """Have `task-stream verify` recompute a run from its files; return what it says.

    Raises:
        UserError: something does not agree.
    """
    command = [sys.executable, "-m", "stream", "verify", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"{folder} does not verify: {done.stdout}{done.stderr}")
    return done.stdout
