"""The record of a run, ``results.json``: its form, and the one place that reads and writes it.

T tasks. Scores are fractions on each task's own metric; what was not evaluated or is undefined is
null. Keys are added, never renamed; ``schema`` is raised when a reader has to know.
"""

from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import numpy as np

from stream.atomic_io import write_atomic
from stream.errors import UserError, first_line, require
from stream.metrics.within_task import ProbePoint
from stream.record.ledger import LedgerRow
from stream.record.matrix import Cell
from stream.run_folder import FILE_NAME, SCHEMA


class MemoryRecord(msgspec.Struct, kw_only=True):
    """How much of the memory is perfect: digests of the last row against the diagonal."""

    promised: bool
    """Whether the method isolates what it trains by task, so that nothing may change."""
    tasks_checked: int
    tasks_identical: int


class LedgerRecord(msgspec.Struct, kw_only=True):
    """What was trained and stored: the pretrained encoder, and a row per learned task."""

    base_parameters: int
    encoder_layer_parameters: int
    total_multiple: float | None
    """All that is stored after the last task, as a multiple of the encoder; null before one."""
    tasks: list[LedgerRow]


class TaskTimes(msgspec.Struct, kw_only=True):
    """Seconds, examples and steps of each learned task, in order."""

    train_s: list[float] = []
    evaluate_s: list[float] = []
    train_examples: list[int] = []
    evaluate_examples: list[int] = []
    steps: list[int] = []


class TimingRecord(msgspec.Struct, kw_only=True):
    """Wall time in seconds, and the work done in it; totals, and ``by_task``."""

    prepare_s: float = 0.0
    baseline_s: float = 0.0
    train_s: float = 0.0
    evaluate_s: float = 0.0
    train_examples: int = 0
    evaluate_examples: int = 0
    steps: int = 0
    by_task: TaskTimes = msgspec.field(default_factory=TaskTimes)


class ProbeRecord(msgspec.Struct, kw_only=True):
    """Scores within tasks: every ``every`` steps, on ``rows`` examples of each task met."""

    every: int
    rows: int
    seconds: float
    points: list[ProbePoint]


class FlopRecord(msgspec.Struct, kw_only=True):
    """Floating-point operations of each learned task.

    Attributes:
        train: operations spent learning the task.
        one_pass: operations of one forward and backward pass over its training rows alone.
        epochs: passes over its rows.
    """

    train: list[int] = []
    one_pass: list[int] = []
    epochs: list[int] = []


class DataRecord(msgspec.Struct, kw_only=True):
    """Where the rows came from. By task and split: how many, how many cut, hashes, accounts."""

    source: str
    hash: str
    rows: dict[str, dict[str, int]] = {}
    truncated: dict[str, dict[str, int]] = {}
    hashes: dict[str, dict[str, str]] = {}
    accounts: dict[str, dict[str, dict[str, Any]]] = {}
    leaks: list[dict[str, Any]] = []


class RunRecord(msgspec.Struct, kw_only=True):
    """Everything that a run has shown so far; ``results.json`` is this, key by key.

    Attributes:
        status: ``partial`` until the last row and the figures are written.
        matrix: scores [T, T]; row i is after learning task i.
        cells: the evidence of each score.
        baseline: scores of the untrained learner, where they were wanted.
        losses: of every step, by task.
        fingerprints: of what serves each learned task.
        config: the whole configuration, as JSON values.
        overrides: what the command line gave; null in records written before it was kept.
    """

    schema: int = SCHEMA
    status: Literal["partial", "complete"]
    learner: str
    stream: str
    backbone: str
    source: str
    order: list[str]
    titles: list[str]
    metric_names: list[str]
    labels: dict[str, list[str] | None]
    seed: int
    split: str
    device: str
    matrix: list[list[float | None]]
    cells: list[list[Cell | None]]
    baseline: list[float] | None
    metrics: dict[str, float | None]
    memory: MemoryRecord
    ledger: LedgerRecord
    timing: TimingRecord
    losses: dict[str, list[float]]
    probe: ProbeRecord | None
    flops: FlopRecord | None
    fingerprints: dict[str, str]
    data: DataRecord
    versions: dict[str, str]
    config: dict[str, Any]
    overrides: list[str] | None = None

    def __post_init__(self) -> None:
        """Check what types cannot say.

        Raises:
            ValueError: the matrix is not T x T, or names and ledger do not fit its tasks.
        """
        num_tasks = len(self.order)
        for name in ("titles", "metric_names", "matrix", "cells"):
            found = len(getattr(self, name))
            if found != num_tasks:
                raise ValueError(f"{name} has {found} entries for {num_tasks} tasks")
        for name in ("matrix", "cells"):
            if any(len(row) != num_tasks for row in getattr(self, name)):
                raise ValueError(f"{name} is not {num_tasks} x {num_tasks}")
        if num_tasks == 0 or self.ledger.base_parameters <= 0:
            raise ValueError("a run has at least one task and one parameter")
        for name in ("average_score", "learning_score", "bwt", "forgetting"):
            if name not in self.metrics:
                raise ValueError(f"metrics lack {name}")

    @property
    def scores(self) -> np.ndarray:
        """The matrix as float64 [T, T], NaN where nothing was evaluated."""
        return np.array(self.matrix, dtype=np.float64)  # None becomes NaN

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a record: a ``results.json`` or the run folder that holds one.

        Raises:
            UserError: it is not there, or no record that is understood here; says why.
        """
        file = path / FILE_NAME if path.is_dir() else path
        try:
            content = file.read_bytes()
        except OSError as error:
            raise UserError(f"no run at {path}: {first_line(error)}") from error
        try:
            schema = msgspec.json.decode(content, type=_Schema).schema
            require(
                schema == SCHEMA,
                f"{file} has schema {schema}, written by another version of this program; "
                f"{SCHEMA} is understood here",
            )
            return msgspec.json.decode(content, type=cls)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise UserError(f"{file} is no record of a run: {first_line(error)}") from error

    def write(self, folder: Path) -> None:
        """Write ``results.json`` into ``folder``; a reader sees the old file or the new one."""
        write_atomic(folder / FILE_NAME, msgspec.json.encode(self), b"\n")


class _Schema(msgspec.Struct):
    """What says whether the rest can be understood."""

    schema: int
