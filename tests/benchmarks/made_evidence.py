"""Slim records of 26 tasks with made-up scores, as `benchmarks.evidence` keeps them, for tests."""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.evidence.plan import (
    ABLATED,
    COUNTED,
    FAILED_ON,
    FAILING,
    INFERRED,
    LAGGING,
    LONGER,
    Job,
    jobs,
)
from benchmarks.evidence.quantities import IN_ORDERS
from benchmarks.evidence.records import RUNS, AtOnce, keep
from stream.record.matrix import Cell, Routed
from stream.record.parts import FlopRecord, MemoryRecord
from stream.record.run_record import RunRecord
from tests.benchmarks.made_ablations import TASKS as ABLATED_TASKS
from tests.benchmarks.made_ablations import made_ablation, made_choice, write_layers
from tests.record.made_record import made_record

NAMED = [*dict.fromkeys((*ABLATED_TASKS, *LAGGING, *FAILED_ON))]
TASKS = [*NAMED, *(f"task_{number}" for number in range(len(NAMED), 26))]
MAJORITY = np.linspace(0.3, 0.6, 26)
LEARNED = {"majority": 0.0, "frozen": 0.15, "independent": 0.3, "layernorm": 0.25}
LOST = {"finetune": 0.2, "shared_adapter": 0.25, "replay": 0.05, "ewc": 0.15, "lwf": 0.1}


def made_run(job: Job) -> RunRecord:
    """Return a run whose scores depend on its method, its tasks, its seed and its order."""
    name = f"{job.method.name}{job.group.searches.removeprefix('minilm')}"  # elsewhere, others
    rng = np.random.default_rng([job.seed, zlib.crc32(name.encode())])
    of_task = np.random.default_rng(job.seed).normal(0, 0.01, 26)  # of the seed, for all methods
    learned = MAJORITY + LEARNED.get(job.method.name, 0.29)
    if job.method.name != "majority":
        learned = learned + of_task + rng.normal(0, 0.01, 26)
    order = list(range(26))
    if job.group.name in IN_ORDERS[1:]:
        np.random.default_rng(zlib.crc32(job.group.name.encode())).shuffle(order)
    lost = LOST.get(job.method.name, 0.0) * rng.uniform(0.5, 1.5, 26)
    record = made_record(26, order=[TASKS[n] for n in order], seed=job.seed, source="files")
    for after in range(26):
        for place in range(after + 1):
            share = (after - place) / 25 if job.method.name in LOST else 0.0
            best = 0.05 if share and after == place + 1 else 0.0  # not right after learning
            task = order[place]
            record.matrix[after][place] = float(learned[task] - share * lost[task] + best)
    examples = 9600 if job.group.name in IN_ORDERS else 1280
    _evidence(record, job.method.name in LOST, examples)
    _of_group(record, job, rng)
    record.learner = job.method.learner
    if record.learner not in ("majority", "tfidf"):
        record.device, record.gpu = "cuda", "GPU 9000"
    record.status, record.overrides = "complete", job.settings({})
    record.majority = [float(MAJORITY[n]) for n in order]
    return record


def _of_group(record: RunRecord, job: Job, rng: np.random.Generator) -> None:
    """Add what only some groups and methods have."""
    if job.group == INFERRED:
        _infer(record)
    if job.group == COUNTED:
        record.flops = FlopRecord(train=[10**9 * (number + 3) for number in range(26)])
    if job.method.choice:
        record.selection = {task: made_choice(rng) for task in record.order}


def made_longer(job: Job) -> RunRecord:
    """Return a run of the lagging tasks alone."""
    rng = np.random.default_rng([job.seed, zlib.crc32(job.name.encode())])
    record = _made_of(LAGGING, job, rng.uniform(0.3, 0.7, len(LAGGING)))
    record.selection = {task: made_choice(rng) for task in LAGGING}
    return record


def made_failing(job: Job) -> RunRecord:
    """Return a run of the tasks that failed with MPNet: some fail here, too."""
    rng = np.random.default_rng([job.seed, zlib.crc32(job.name.encode())])
    nothing = np.array([MAJORITY[TASKS.index(task)] for task in FAILED_ON])
    fails = rng.uniform(size=len(FAILED_ON)) < 0.2
    record = _made_of(FAILED_ON, job, np.where(fails, nothing, rng.uniform(0.7, 0.8, len(fails))))
    record.majority = [*map(float, nothing)]
    return record


def _made_of(tasks: Sequence[str], job: Job, ends: np.ndarray) -> RunRecord:
    """Return a run of some tasks alone, with their scores at the end."""
    record = made_record(len(tasks), order=[*tasks], seed=job.seed, source="files")
    record.matrix = [[*map(float, ends)] for _ in tasks]
    record.learner, record.device, record.gpu = job.method.learner, "cuda", "GPU 9000"
    record.status, record.overrides = "complete", job.settings({})
    record.metrics["average_score"] = float(np.mean(record.matrix[-1]))
    return record


def _evidence(record: RunRecord, changes: bool, examples: int) -> None:
    """Fill cells, memory, metrics, ledger and times."""
    matrix = np.array(record.matrix, dtype=float)
    for place, task in enumerate(record.order):
        for after in (place, 25):
            text = f"{record.seed}-{task}-{after if changes else 0}"
            record.cells[after][place] = Cell(float(matrix[after, place]), text, "measured", 0.1)
    best = np.nanmax(matrix[:, :-1][:-1], axis=0)
    record.metrics.update(
        average_score=float(matrix[-1].mean()),
        learning_score=float(np.diag(matrix).mean()),
        forgetting=float((best - matrix[-1, :-1]).mean()),
    )
    record.memory = MemoryRecord(
        promised=not changes, tasks_checked=25, tasks_identical=0 if changes else 25
    )
    for number, task in enumerate(record.order):
        record.ledger.add(task, 30, (1000 + 30 * (1 + len(record.ledger.tasks)), 4000), (0, 0))
        record.timing.learned(2.0, examples + number, 300)


def _infer(record: RunRecord) -> None:
    """Give each cell what comes of it where the task is inferred: a text in four goes elsewhere."""
    for place, cell in enumerate(record.cells[-1]):
        assert cell is not None
        counts = [0] * 26
        counts[place], counts[(place * 7 + 1) % 26] = 30 + place, 10 + record.seed
        share = counts[place] / sum(counts)
        routed = Routed(cell.score * share, share, "", counts, 2, 0.1)
        record.cells[-1][place] = replace(cell, routed=routed)
    found = [cell.routed for cell in record.cells[-1] if cell is not None and cell.routed]
    record.metrics["routing_accuracy"] = float(np.mean([one.accuracy for one in found]))
    record.metrics["routed_average_score"] = float(np.mean([one.score for one in found]))


def write_runs(out: Path, wanted: str = "") -> None:
    """Write the made-up record of every planned run whose name begins so."""
    for job in jobs():
        if not job.name.startswith(wanted):
            continue
        folder = out / RUNS / job.name
        special = {ABLATED: made_ablation, LONGER: made_longer, FAILING: made_failing}
        made = special.get(job.group, made_run)
        record = made(job)
        keep(record, folder, AtOnce(runs=24, gpus=2))
        if job.loses_layers:
            write_layers(folder, record)
