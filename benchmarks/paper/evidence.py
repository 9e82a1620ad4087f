"""The comparison over 26 real tasks: every learner tuned alike, then run at full size.

Run, with the data of all tasks in DIR:
python -m benchmarks.paper.evidence tune --out results/houlsby26 --gpus 2 --workers 8 data.root=DIR
python -m benchmarks.paper.evidence run  --out results/houlsby26 --gpus 2 --workers 8 data.root=DIR
``tune`` tries every learning rate of `benchmarks.paper.plan.GRIDS` once and notes it in
OUT/tune.jsonl; ``run`` runs `benchmarks.paper.plan.jobs` with the best ones. Run folders are those
of multiruns (`benchmarks.paper.multirun`); a record without weights goes to OUT. What is there is
not run again, unless another rate is the best one now. ``--mpnet`` is the folder of that encoder;
without it its runs are left out.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from benchmarks.paper.multirun import Machine, Multirun, shown, start
from benchmarks.paper.plan import FIXED, SIZES, Job, jobs, settings, trial_settings, trials
from benchmarks.paper.records import RunFacts, worked_s
from benchmarks.paper.trials import Trial, append_line, read_lines
from stream.record.run_record import RunRecord


def where(search: str, given: argparse.Namespace) -> list[str]:
    """Return the settings that say where the encoder is, and those of the command line."""
    folder = ["backbone=mpnet_base", "backbone.origin=folder", f"backbone.location={given.mpnet}"]
    return [*given.settings, *([] if search == "minilm" else folder)]


def tune(given: argparse.Namespace, machine: Machine) -> None:
    """Try every learning rate that was not tried."""
    tried = read_lines(given.out / "tune.jsonl", Trial)
    known = {(trial.search, trial.learner, trial.rate) for trial in tried}
    wanted = [trial for trial in trials() if trial[0] == "minilm" or given.mpnet]
    wanted = [trial for trial in wanted if given.only.search("/".join(map(str, trial)))]
    missing = [trial for trial in wanted if trial not in known]
    grids = [
        (*of, [rate for *_, rate in grid]) for of, grid in groupby(missing, lambda trial: trial[:2])
    ]
    machine.run_all([partial(search_rates, given, machine, *grid) for grid in grids])


def search_rates(
    given: argparse.Namespace, machine: Machine, search: str, learner: str, rates: Sequence[float]
) -> str:
    """Try learning rates of a learner; note each in tune.jsonl.

    Args:
        given: the command line.
        machine: what runs them.
        search: one of `benchmarks.paper.plan.SEARCHES`.
        learner: one of `benchmarks.paper.plan.GRIDS`.
        rates: the learning rates.

    Returns:
        One line on what became of them.
    """
    common = without(trial_settings(search, learner, rates[0]), "learner.lr")
    title = f"{given.out.name}-tune-{search}-{learner}"
    runs = Multirun(title, [*common, *where(search, given)], "learner.lr", rates)
    found = machine.multirun(runs)
    for rate, record in found.items():
        trial = Trial(
            search=search,
            learner=learner,
            rate=rate,
            average_score=record.metrics["average_score"],
            learning_score=record.metrics["learning_score"],
            settings=" ".join(trial_settings(search, learner, rate)),
            wall_s=worked_s(record),
        )
        append_line(given.out / "tune.jsonl", trial)
    return shown(runs, found)


def without(chosen: Sequence[str], key: str) -> list[str]:
    """Return settings without one of them."""
    return [setting for setting in chosen if setting.partition("=")[0] != key]


def best_rates(path: Path) -> dict[tuple[str, str], float]:
    """Return the rate of the highest average validation score, by search and learner."""
    tried = sorted(read_lines(path, Trial), key=lambda trial: (trial.average_score, -trial.rate))
    return {(trial.search, trial.learner): trial.rate for trial in tried}


def run(given: argparse.Namespace, machine: Machine) -> None:
    """Run what is missing of the plan."""
    work = []
    for _, found in groupby(missing(given), lambda pair: (pair[0].group, pair[0].learner)):
        pairs = list(found)
        seeds = {job.seed: job for job, _ in pairs}
        work.append(partial(run_seeds, given, machine, seeds, pairs[0][1]))
    machine.run_all(work)


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


def command(job: Job, rate: float | None, *more: str) -> str:
    """Return the command of a job, as its record says it.

    Args:
        job: the job.
        rate: its learning rate; None where `benchmarks.paper.plan.FIXED` has the settings.
        more: further settings.
    """
    return shlex.join(["python", "run_stream.py", *settings(job, rate), *more])


def is_kept(out: Path, job: Job, rate: float | None) -> bool:
    """Return whether there is a record of a job with this learning rate.

    Args:
        out: the folder of all records.
        job: the job.
        rate: its learning rate; None where `benchmarks.paper.plan.FIXED` has the settings.
    """
    file = out / job.group / job.name / "run.json"
    return file.exists() and f"{RunFacts.read(file).command} ".startswith(f"{command(job, rate)} ")


def run_seeds(
    given: argparse.Namespace, machine: Machine, seeds: dict[int, Job], rate: float | None
) -> str:
    """Run jobs that differ in their seed only; keep the records of those that are complete.

    Args:
        given: the command line.
        machine: what runs them.
        seeds: the job of each seed.
        rate: their learning rate; None where `benchmarks.paper.plan.FIXED` has the settings.

    Returns:
        One line on what became of them.
    """
    job = next(iter(seeds.values()))
    more = where(job.search, given)
    title = f"{given.out.name}-{job.group}-{job.learner}"
    runs = Multirun(title, [*without(settings(job, rate), "seed"), *more], "seed", list(seeds))
    found = machine.multirun(runs)
    problems = []
    for seed, record in found.items():
        kept = given.out / seeds[seed].group / seeds[seed].name
        kept.mkdir(parents=True, exist_ok=True)
        problem = prove(machine, seeds[seed], runs, kept)
        if problem is None:
            keep(record, kept, command(seeds[seed], rate, *more))
        else:
            problems.append(f"; {seeds[seed].name}: {problem}")
    return f"{shown(runs, found)}{''.join(problems)}"


def keep(record: RunRecord, folder: Path, made_by: str) -> None:
    """Write a record without its losses, and how it was made.

    Args:
        record: of a complete run.
        folder: where it is kept.
        made_by: the run's command.
    """
    record.losses = {}  # of every step: nine tenths of the file
    record.write(folder)
    facts = RunFacts(command=made_by, wall_s=[worked_s(record)], machine=machine_name())
    facts.write(folder / "run.json")  # last: it says that the rest is there


def prove(machine: Machine, job: Job, runs: Multirun, kept: Path) -> str | None:
    """Score adapters on validation rows, which chooses among sizes; verify one run from its files.

    Args:
        machine: what runs the commands.
        job: the job of the run.
        runs: the multirun that ran it.
        kept: where the answers go.

    Returns:
        What went wrong, None if nothing did.
    """
    folder, commands = runs.folder(job.seed), []
    if job.learner in SIZES and job.group == "given":
        found = [str(folder), str(kept / "validation.json")]
        commands.append((["benchmarks.paper.validate", *found], runs.log))
    if (job.learner, job.seed) == ("adapter64", 1):
        (kept / "verify.txt").unlink(missing_ok=True)
        commands.append((["analysis", "verify", str(folder)], kept / "verify.txt"))
    for arguments, log in commands:
        code = machine.run([sys.executable, "-m", *arguments], log)
        if code != 0:
            return f"{arguments[0]}: exit code {code}, see {log}"
    return None


def machine_name() -> str:
    """Return what the runs are executed on."""
    import torch

    gpus = torch.cuda.device_count()
    name = f"{gpus} x {torch.cuda.get_device_name()}" if gpus else "CPU"
    return f"{name}, {os.cpu_count()} cores, torch {torch.__version__}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Search, or run."""
    start("The comparison over 26 real tasks.", {"tune": tune, "run": run}, arguments)


if __name__ == "__main__":
    main()
