"""results.json, the record of a run: built from typed parts, written atomically after every row."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stream.atomic_io import JsonText, json_text, write_json
from stream.config.run import RunConfig
from stream.data.build import data_hash
from stream.data.prepare.leakage import Leak
from stream.data.task import Task
from stream.evaluation.probe import Probe
from stream.metrics import Flops, Storage, correct_cells, probe_points, summarize
from stream.record.ledger import Ledger, LedgerRow
from stream.record.matrix import ScoreMatrix
from stream.run_folder import FILE_NAME, SCHEMA
from stream.training.flops import FlopRecord

_PACKAGES = ("torch", "transformers", "numpy", "scipy", "scikit-learn", "hydra-core")


@dataclass
class Timing:
    """Wall time and work, in seconds and examples; one entry a task in the lists."""

    prepare_s: float = 0.0
    baseline_s: float = 0.0
    train_s: list[float] = field(default_factory=list)
    evaluate_s: list[float] = field(default_factory=list)
    train_examples: list[int] = field(default_factory=list)
    evaluate_examples: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return totals under the contract's names, and the lists under ``by_task``."""
        by_task = {k: v for k, v in asdict(self).items() if isinstance(v, list)}
        totals = {name: sum(values) for name, values in by_task.items()}
        scalars = {"prepare_s": self.prepare_s, "baseline_s": self.baseline_s}
        return {**scalars, **totals, "by_task": by_task}


@dataclass
class Record:
    """All that a run has shown so far."""

    config: RunConfig
    tasks: Sequence[Task]
    leaks: Sequence[Leak]
    device: str
    matrix: ScoreMatrix
    ledger: Ledger
    baseline: list[float] | None = None
    probe: Probe | None = None
    flops: FlopRecord | None = None
    fingerprints: dict[str, str] = field(default_factory=dict)
    losses: dict[str, list[float]] = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)
    status: str = "partial"
    _correct: list[list[np.ndarray | None]] = field(default_factory=list)  # of the rows done

    def as_json(self) -> dict[str, Any]:
        """Return the contract of results.json as JSON values."""
        checked, identical = self.matrix.memory()
        return {
            "schema": SCHEMA,
            "status": self.status,
            "learner": self.config.learner.name,
            "stream": self.config.stream_name,
            "backbone": self.config.backbone.name,
            "source": self.config.data.source,
            "order": [task.name for task in self.tasks],
            "titles": [task.spec.title for task in self.tasks],
            "metric_names": [task.spec.metric for task in self.tasks],
            "labels": {task.name: task.spec.labels for task in self.tasks},
            "seed": self.config.seed,
            "split": self.config.evaluation.split,
            "device": self.device,
            "matrix": self.matrix.scores_as_json(),
            "cells": self.matrix.as_json(),
            "baseline": self.baseline,
            "metrics": self._metrics(),
            "memory": {
                "promised": self.config.learner.tags.parameter_isolation,
                "tasks_checked": checked,
                "tasks_identical": identical,
            },
            "ledger": self.ledger.as_json(),
            "timing": self.timing.as_json(),
            "losses": self.losses,
            "probe": None if self.probe is None else self.probe.as_json(),
            "flops": None if self.flops is None else self.flops.as_json(),
            "fingerprints": self.fingerprints,
            "data": self._data,
            "versions": versions(),
            "config": self._config,
        }

    def texts(self, values: Mapping[str, Any]) -> dict[str, JsonText]:
        """Return ``values``, an `as_json` of now, as JSON text by key.

        What does not change any more was dumped before: it is all but a few hundredths.
        """
        cells, scores = self.matrix.texts()
        ready = {"cells": cells, "matrix": scores, **self._constant_texts}
        return {key: ready.get(key) or json_text(value) for key, value in values.items()}

    @cached_property
    def _constant_texts(self) -> dict[str, JsonText]:
        """The longest of what the whole run has alike."""
        return {"data": json_text(self._data), "config": json_text(self._config)}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Take what an earlier part of the run recorded (its `as_json`).

        The tasks may go on behind those of ``values``.
        """
        self.matrix = ScoreMatrix.from_json(self.matrix.order, values["cells"])
        self._correct = []
        self.ledger.rows = [LedgerRow(**row) for row in values["ledger"]["tasks"]]
        self.baseline = values["baseline"]
        self.fingerprints = dict(values["fingerprints"])
        self.losses = dict(values["losses"])
        timing = values["timing"]
        scalars = {name: timing[name] for name in ("prepare_s", "baseline_s")}
        self.timing = Timing(**scalars, **timing["by_task"])
        if self.probe is not None and values["probe"] is not None:
            self.probe.seconds = values["probe"]["seconds"]
            self.probe.points = probe_points(values["probe"]["points"])
        if self.flops is not None and values["flops"] is not None:
            self.flops = FlopRecord(**values["flops"])

    def _metrics(self) -> dict[str, float | None]:
        """Return every metric that this run can have."""
        split, rows = self.config.evaluation.split, self.ledger.rows
        examples = [len(task.split(split)) for task in self.tasks]
        new = self.matrix.as_json()[len(self._correct) : self.matrix.rows_done()]
        self._correct += correct_cells(new, examples)
        return summarize(
            self.matrix.scores(),
            baseline=self.baseline,
            probe=None if self.probe is None else self.probe.points,
            correct=self._correct,
            flops=None if self.flops is None else Flops(**self.flops.as_json()),
            storage=Storage(
                model=[row.stored_bytes for row in rows],
                buffer=[row.buffer_bytes for row in rows],
                data=sum(task.split("train").nbytes for task in self.tasks),
            ),
        )

    @cached_property
    def _config(self) -> dict[str, Any]:
        """The configuration as JSON values; it does not change."""
        return asdict(self.config)

    @cached_property
    def _data(self) -> dict[str, Any]:
        """Return where the rows came from, how many there are, and their hashes."""
        rows = {
            task.name: {s: len(split) for s, split in task.splits.items()} for task in self.tasks
        }
        truncated = {
            task.name: {s: split.truncated for s, split in task.splits.items()}
            for task in self.tasks
        }
        hashes = {task.name: dict(task.hashes) for task in self.tasks}
        accounts = {
            task.name: {s: asdict(account) for s, account in task.accounts.items()}
            for task in self.tasks
        }
        return {
            "source": self.config.data.source,
            "hash": data_hash(self.tasks),
            "rows": rows,
            "truncated": truncated,
            "hashes": hashes,
            "accounts": accounts,
            "leaks": [asdict(leak) for leak in self.leaks],
        }

    def write(self, folder: Path) -> dict[str, Any]:
        """Write results.json as of now; return its values."""
        values = self.as_json()
        write_texts(folder, self.texts(values))
        return values


def write_texts(folder: Path, texts: Mapping[str, JsonText]) -> None:
    """Write results.json; a reader sees the old file or the new one, never a part.

    ``texts`` are those of `Record.texts`.
    """
    write_json(folder / FILE_NAME, texts)


def versions() -> dict[str, str]:
    """Return the versions that scores may depend on."""
    threads = str(torch.get_num_threads())  # sums are split among them, so bits depend on it
    python, machine = platform.python_version(), platform.machine()
    return {"python": python, **_installed(), "machine": machine, "threads": threads}


@cache
def _installed() -> dict[str, str]:
    """Return the versions of packages; looking them up takes milliseconds, every row."""
    return {name: metadata.version(name) for name in _PACKAGES}
