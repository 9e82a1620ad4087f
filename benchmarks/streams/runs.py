"""Searches and runs of the field's streams, as lines of JSON.

Run, with the data of all tasks in DIR:
python -m benchmarks.streams.runs tune --out results/streams --gpus 2 --workers 12 data.root=DIR
python -m benchmarks.streams.runs run  --out results/streams --gpus 2 --workers 12 data.root=DIR
``tune`` searches one setting of every learner on validation rows of five tasks, for each encoder;
where the best value is at an end of the grid it goes on beyond it. ``run`` runs
`benchmarks.streams.plan.jobs` with the best ones on test rows. A run is one line of OUT/tune.jsonl
or OUT/runs.jsonl; what stands there is not run again. ``--mpnet`` is the folder of that encoder;
without it its runs are left out. Run folders are those of multiruns (`benchmarks.multirun`).
"""

import argparse
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec

from benchmarks.lines import append_line, read_lines
from benchmarks.multirun import Machine, Multirun, machine_name, shown, start
from benchmarks.streams.plan import (
    ENCODERS,
    KEEPING_NOTHING,
    METHODS,
    PROTOCOL,
    SEARCHED_ON,
    SEEDS,
    Job,
    jobs,
)
from stream.record.run_record import RunRecord

BEYOND = 2  # values tried outside of a grid whose best is at an end


class StreamRun(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A run: a line of tune.jsonl or runs.jsonl.

    Attributes:
        value: the searched setting's; None for a method without a search.
        tasks: the stream, in order.
        learned: scores right after learning, for each task.
        final: scores at the end.
        majority: scores of the majority answer.
        routed: in which scores and accuracy the inferred tasks end, where they were inferred.
        command: without where the data are.
        machine: what it ran on.
    """

    encoder: str
    scenario: str
    stream: str
    order: str
    method: str
    seed: int
    value: float | None
    tasks: list[str]
    learned: list[float | None]
    final: list[float | None]
    majority: list[float | None]
    metrics: dict[str, float | None]
    steps: int
    train_s: float
    evaluate_s: float
    total_multiple: float
    identical: tuple[int, int]
    routed: list[Any] | None = None
    command: str
    machine: str

    @classmethod
    def of(cls, job: Job, value: float | None, record: RunRecord, command: str) -> Self:
        """Return the line of a complete run."""
        timing, memory = record.timing, record.memory
        routed = [cell and cell.routed for cell in record.cells[-1]]
        return cls(
            encoder=job.encoder,
            scenario=job.scenario,
            stream=job.stream,
            order=job.order,
            method=job.method,
            seed=record.seed,
            value=value,
            tasks=record.order,
            learned=[row[index] for index, row in enumerate(record.matrix)],
            final=record.matrix[-1],
            majority=record.majority or [],
            metrics={name: found for name, found in record.metrics.items() if found is not None},
            steps=timing.steps,
            train_s=round(timing.train_s, 2),
            evaluate_s=round(timing.evaluate_s, 2),
            total_multiple=record.ledger.total_multiple or 1.0,
            identical=(memory.tasks_identical, memory.tasks_checked),
            routed=msgspec.to_builtins(routed) if any(routed) else None,
            command=command,
            machine=machine_name(),
        )

    @property
    def job(self) -> Job:
        """What it is a run of."""
        return Job(self.encoder, self.scenario, self.stream, self.order, self.method)

    @property
    def score(self) -> float:
        """The average score at the end."""
        return self.metrics["average_score"] or 0.0


def places(encoder: str, given: argparse.Namespace) -> list[str]:
    """Return the settings that say where encoder and data are, and those of the command line."""
    folder = ["backbone.origin=folder", f"backbone.location={given.mpnet}"]
    chosen = ["backbone=mpnet_base", *folder] if encoder == "mpnet" else ["backbone=minilm"]
    return [*chosen, *given.settings, KEEPING_NOTHING]


def encoders(given: argparse.Namespace) -> list[str]:
    """Return the encoders that are there."""
    return [name for name in ENCODERS if name != "mpnet" or given.mpnet]


def search_job(encoder: str, method: str) -> Job:
    """Return what a search is a run of."""
    return Job(encoder, "known", "five of long15", "given", method)


def tune(given: argparse.Namespace, machine: Machine) -> None:
    """Search what was not searched."""
    work = [
        partial(search, given, machine, encoder, method)
        for encoder in reversed(encoders(given))  # the slow ones first
        for method in METHODS
        if METHODS[method].values and given.only.search(f"{encoder}/{method}")
    ]
    machine.run_all(work)


def search(given: argparse.Namespace, machine: Machine, encoder: str, method: str) -> str:
    """Search one learner's setting; return one line on what came out."""
    path, of = given.out / "tune.jsonl", METHODS[method]
    job = search_job(encoder, method)
    common = [*of.all_settings, *PROTOCOL, *SEARCHED_ON]
    tried = {run.value: run.score for run in read_lines(path, StreamRun) if run.job == job}
    wanted = [value for value in of.values if value not in tried]
    text = ""
    while wanted:
        title = f"{given.out.name}-tune-{encoder}-{method}"
        runs = Multirun(title, [*common, *places(encoder, given)], of.key, wanted)
        found = machine.multirun(runs)
        for value, record in found.items():
            command = shlex.join([*common, f"{of.key}={value}"])
            append_line(path, StreamRun.of(job, value, record, command))
            tried[value] = record.metrics["average_score"] or 0.0
        text = shown(runs, found)
        wanted = beyond(tried, len(of.values) + BEYOND) if len(found) == len(wanted) else []
    best = max(tried, key=lambda value: tried[value], default=None)
    return f"{encoder} {method}: {of.key}={best} of {sorted(filter(None, tried))}; {text}"


def beyond(tried: dict[float | None, float], most: int) -> list[float]:
    """Return the value to try next where the best of a grid is at its end; none otherwise.

    >>> beyond({1.0: 0.5, 2.0: 0.6, 4.0: 0.7}, 5), beyond({1.0: 0.5, 2.0: 0.6, 4.0: 0.5}, 5)
    ([8.0], [])

    Args:
        tried: the scores so far, by value.
        most: how many values may be tried in all.
    """
    values = sorted(value for value in tried if value is not None)
    best = max(values, key=lambda value: tried[value])
    if len(values) >= most or best not in (values[0], values[-1]):
        return []
    neighbour = values[1] if best == values[0] else values[-2]
    return [float(f"{best * best / neighbour:.2g}")]


def best_values(path: Path) -> dict[tuple[str, str], float | None]:
    """Return the value of the highest average validation score, by encoder and method."""
    found: dict[tuple[str, str], StreamRun] = {}
    for trial in sorted(read_lines(path, StreamRun), key=lambda run: run.value or 0.0):
        best = found.setdefault((trial.encoder, trial.method), trial)
        if trial.score > best.score:
            found[trial.encoder, trial.method] = trial
    return {name: trial.value for name, trial in found.items()}


def run(given: argparse.Namespace, machine: Machine) -> None:
    """Run what is missing of the plan."""
    chosen = best_values(given.out / "tune.jsonl")
    there = {(line.job, line.seed) for line in read_lines(given.out / "runs.jsonl", StreamRun)}
    work = []
    for job in jobs():
        is_ready = (job.encoder, job.method) in chosen or not METHODS[job.method].values
        seeds = [seed for seed in SEEDS if (job, seed) not in there]
        if seeds and is_ready and job.encoder in encoders(given) and given.only.search(job.name):
            value = chosen.get((job.encoder, job.method))
            work.append(partial(run_seeds, given, machine, job, value, seeds))
    machine.run_all(work)


def run_seeds(
    given: argparse.Namespace,
    machine: Machine,
    job: Job,
    value: float | None,
    seeds: Sequence[int],
) -> str:
    """Run a job with several seeds; return one line on what became of it."""
    tuned = [] if value is None else [f"{METHODS[job.method].key}={value}"]
    common = [*job.settings, *tuned]
    title = f"{given.out.name}-{job.name}"
    runs = Multirun(title, [*common, *places(job.encoder, given)], "seed", seeds)
    found = machine.multirun(runs)
    for seed, record in found.items():
        command = shlex.join([*common, f"seed={seed}"])
        append_line(given.out / "runs.jsonl", StreamRun.of(job, value, record, command))
    return shown(runs, found)


def by_job(lines: Iterable[StreamRun]) -> dict[Job, list[StreamRun]]:
    """Return the runs of each job, in order of their seeds."""
    found: defaultdict[Job, list[StreamRun]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: line.seed):
        found[line.job].append(line)
    return dict(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Search, or run."""
    start("Search, or run, the field's streams.", {"tune": tune, "run": run}, arguments)


if __name__ == "__main__":
    main()
