"""Slim records of the paper's ablations with made-up scores, for tests."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.plan import Job
from stream.record.matrix import Cell
from stream.record.run_record import RunRecord
from stream.record.selection import CandidateRecord, SelectionRecord
from tests.record.made_record import made_record

TASKS = ("mnli_matched", "cola", "sst2", "newsgroups20")
TITLES = ["MNLI-m", "CoLA", "SST-2", "20 newsgroups"]
METRICS = ["accuracy", "matthews_correlation", "accuracy", "accuracy"]
LAYERS = range(6)


def made_ablation(job: Job, level: float | None = None) -> RunRecord:
    """Return a run whose scores depend on its method, its tasks and its seed.

    Args:
        job: the run.
        level: about what its tasks reach; by default it is drawn for the method.
    """
    of_method = zlib.crc32(job.method.name.encode())
    rng = np.random.default_rng([job.seed, of_method])
    of_task = np.random.default_rng(job.seed).normal(0, 0.01, 4)  # of the seed, for all methods
    if level is None:
        learned = np.random.default_rng(of_method).uniform(0.3, 0.7) + rng.normal(0, 0.02, 4)
    else:
        learned = level + rng.normal(0, 1e-3, 4)
    learned = learned + 0.05 * np.arange(4) + of_task
    names: dict[str, Any] = {"order": [*TASKS], "titles": TITLES, "metric_names": METRICS}
    record = made_record(4, seed=job.seed, source="files", backbone="minilm", **names)
    for after in range(4):
        for place in range(after + 1):
            record.matrix[after][place] = float(learned[place])
            cell = Cell(float(learned[place]), f"{job.name}-{place}", "measured", 0.1)
            record.cells[after][place] = cell
    record.learner = job.method.learner
    given = dict(text.removeprefix("learner.").split("=", 1) for text in job.method.settings[1:])
    typed = {key: json.loads(value) for key, value in given.items() if key != "select"}
    defaults = {"size": 64, "init_std": 0.01} if record.learner == "adapter" else {"head_lr": 0.003}
    record.config["learner"] = {"lr": 1e-3, **defaults, **typed}
    size = zlib.crc32(" ".join(job.method.settings).encode()) % 900 + 50
    for number, task in enumerate(TASKS):
        record.ledger.add(task, size + number, (1000 + size * (number + 1), 4000), (0, 0))
        record.timing.learned(2.0, 12000, 375)
        if job.method.choice:
            record.selection[task] = made_choice(rng)
    record.metrics.update(average_score=float(learned.mean()), forgetting=0.0)
    record.status, record.overrides = "complete", job.settings({})
    record.majority = [0.3, 0.0, 0.5, 0.05]
    return record


def made_choice(rng: np.random.Generator) -> SelectionRecord:
    """Return candidates with validation scores in tenths, so that some are equal.

    Of three rates, the middle one with two starts.
    """
    scores, starts = rng.integers(1, 5, 4) / 10, ((3e-4, 0), (1e-3, 0), (1e-3, 1), (3e-3, 0))
    tried = [
        CandidateRecord(settings={"lr": rate}, restart=restart, seed=0, score=float(score))
        for (rate, restart), score in zip(starts, scores, strict=True)
    ]
    return SelectionRecord(candidates=tried, chosen=int(scores.argmax()))


def write_layers(folder: Path, record: RunRecord, worth: Sequence[float] = (0.03,) * 6) -> None:
    """Write made-up scores without ranges of layers beside a record.

    Args:
        folder: where the record is.
        record: the run.
        worth: what each layer is worth.
    """
    rng = np.random.default_rng(record.seed)
    found = {}
    for task, full in zip(record.order, record.matrix[-1], strict=True):
        assert full is not None
        without = [
            [full - sum(worth[i : j + 1]) + rng.normal(0, 2e-3) if i <= j else None for j in LAYERS]
            for i in LAYERS
        ]
        of_task = {"split": "test", "full": full, "majority": 0.1}
        found[task] = {**of_task, "without_first_to_last": without}
    (folder / "layer_ranges.json").write_text(json.dumps(found), encoding="utf-8")
