"""The record of a run, ``results.json``: its form, and the one place that reads and writes it.

T tasks. Scores are fractions on each task's own metric; what was not evaluated or is undefined is
null. Keys are added, never renamed; ``schema`` is raised when a reader has to know. The file is one
line, because it is written after every task; ``python -m json.tool FILE`` shows it to people.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import numpy as np

from stream.atomic_io import write_atomic
from stream.errors import UserError, first_line, require
from stream.metrics.within_task import ProbePoint
from stream.record.ledger import LedgerRecord
from stream.record.matrix import Cell, ScoreMatrix
from stream.run_folder import FILE_NAME, SCHEMA

CORE_METRICS = ("average_score", "learning_score", "bwt", "forgetting")
"""Metrics that every record has; null where a run is too short for them."""


class MemoryRecord(msgspec.Struct, kw_only=True):
    """How much of the memory is perfect: digests of the last row against the diagonal."""

    promised: bool
    """Whether the method keeps what earlier tasks use as it is, so that no logit may change."""
    tasks_checked: int = 0
    tasks_identical: int = 0


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

    def learned(self, seconds: float, examples: int, steps: int) -> None:
        """Note what learning a task took."""
        self.by_task.train_s.append(seconds)
        self.by_task.train_examples.append(examples)
        self.by_task.steps.append(steps)
        self.train_s += seconds
        self.train_examples += examples
        self.steps += steps

    def evaluated(self, seconds: float, examples: int) -> None:
        """Note what scoring the tasks after a task took."""
        self.by_task.evaluate_s.append(seconds)
        self.by_task.evaluate_examples.append(examples)
        self.evaluate_s += seconds
        self.evaluate_examples += examples


class ProbeRecord(msgspec.Struct, kw_only=True):
    """Scores within tasks: every ``every`` steps, on ``rows`` examples of each task met."""

    every: int
    rows: int
    seconds: float = 0.0
    points: list[ProbePoint] = []

    def add(self, point: ProbePoint, seconds: float) -> None:
        """Append what was seen, and the time that it took.

        Raises:
            ValueError: a score is not finite; in JSON it would silently become null.
        """
        if not all(map(math.isfinite, point.scores)):
            raise ValueError(f"scores of the probe must be finite, got {point.scores}")
        self.points.append(point)
        self.seconds += seconds


class LinearProbeRecord(msgspec.Struct, kw_only=True):
    """Scores of heads trained anew on the encoder as it was; None of a task that has none.

    Attributes:
        learned: right after each task was learned.
        final: of every task at the end; empty before.
        seconds: what the probes took.
    """

    learned: list[float | None] = []
    final: list[float | None] = []
    seconds: float = 0.0


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

    def add(self, spent: int, one_pass: int, epochs: int) -> None:
        """Append the entry of a task that was just learned."""
        self.train.append(spent)
        self.one_pass.append(one_pass)
        self.epochs.append(epochs)


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
        scenario: what was known when texts were served, one of `stream.config.run.SCENARIOS`.
        baseline: scores of the untrained learner, where they were wanted.
        majority: scores of always giving each task's majority answer; null in records written
            before it was kept.
        losses: of every step, by task.
        fingerprints: of what serves each learned task.
        config: the whole configuration, as JSON values.
        overrides: what the command line gave; null in records written before it was kept.
    """

    schema: int = SCHEMA
    status: Literal["partial", "complete"] = "partial"
    learner: str
    stream: str
    backbone: str
    source: str
    scenario: str = "known"
    order: list[str]
    titles: list[str]
    metric_names: list[str]
    labels: dict[str, list[str] | None]
    seed: int
    split: str
    device: str
    matrix: list[list[float | None]]
    cells: list[list[Cell | None]]
    baseline: list[float] | None = None
    majority: list[float | None] | None = None
    metrics: dict[str, float | None]
    memory: MemoryRecord
    ledger: LedgerRecord
    timing: TimingRecord
    losses: dict[str, list[float]]
    probe: ProbeRecord | None
    linear_probe: LinearProbeRecord | None = None
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
        for name in CORE_METRICS:
            if name not in self.metrics:
                raise ValueError(f"metrics lack {name}")

    @property
    def scores(self) -> np.ndarray:
        """The matrix as float64 [T, T], NaN where nothing was evaluated."""
        return np.array(self.matrix, dtype=np.float64)  # None becomes NaN

    @property
    def score_matrix(self) -> ScoreMatrix:
        """The cells as a matrix; a cell that is recorded in it stands here."""
        return ScoreMatrix(self.order, self.cells)

    def take_over(self, earlier: "RunRecord") -> None:
        """Take what an earlier part of the run has measured; its tasks are the first ones here."""
        for row, known in zip(self.cells, earlier.cells, strict=False):
            row[: len(known)] = known
        self.baseline = earlier.baseline
        self.ledger.tasks = earlier.ledger.tasks
        self.ledger.total_multiple = earlier.ledger.total_multiple
        self.timing = earlier.timing
        self.losses = earlier.losses
        self.fingerprints = earlier.fingerprints
        if self.probe is not None and earlier.probe is not None:
            self.probe.seconds, self.probe.points = earlier.probe.seconds, earlier.probe.points
        if self.linear_probe is not None and earlier.linear_probe is not None:
            self.linear_probe = earlier.linear_probe
        if self.flops is not None and earlier.flops is not None:
            self.flops = earlier.flops
        if earlier.overrides is not None:
            self.overrides = [*earlier.overrides, *(self.overrides or [])]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a record: a ``results.json`` or the run folder that holds one.

        Raises:
            UserError: it is not there, or no record that is understood here; says why.
        """
        file = _file(path)
        with _understood(file):
            content = _content(path)
            _check_schema(msgspec.json.decode(content, type=_Schema), file)
            return msgspec.json.decode(content, type=cls)

    @classmethod
    def from_values(cls, values: dict[str, Any], where: str) -> Self:
        """Return the record that JSON values hold.

        Raises:
            UserError: they are no record that is understood here; ``where`` says what holds them.
        """
        with _understood(where):
            _check_schema(msgspec.convert(values, _Schema), where)
            return msgspec.convert(values, cls)

    def encode(self) -> bytes:
        """Return the record as JSON, on one line."""
        return msgspec.json.encode(self)

    def write(self, folder: Path, encoded: bytes | None = None) -> None:
        """Write ``results.json`` into ``folder``; a reader sees the old file or the new one.

        Args:
            folder: the run folder.
            encoded: what `encode` returned for the record as it is, where that is known.
        """
        write_atomic(folder / FILE_NAME, self.encode() if encoded is None else encoded, b"\n")


def read_values(path: Path) -> dict[str, Any]:
    """Return the JSON values of a record as they stand, keys that no reader knows among them.

    Raises:
        UserError: there is no such file, or it is no JSON object.
    """
    with _understood(_file(path)):
        return msgspec.json.decode(_content(path), type=dict[str, Any])


class _Schema(msgspec.Struct):
    """What says whether the rest can be understood."""

    schema: int


def _check_schema(found: _Schema, where: object) -> None:
    """Raise UserError unless the schema is the one of this version."""
    require(
        found.schema == SCHEMA,
        f"{where} has schema {found.schema}, written by another version of this program; "
        f"{SCHEMA} is understood here",
    )


def _file(path: Path) -> Path:
    """Return the file of a record, which may be named by its folder."""
    return path / FILE_NAME if path.is_dir() else path


def _content(path: Path) -> bytes:
    """Return the bytes of the record at ``path``."""
    try:
        return _file(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or first_line(error)).lower()
        raise UserError(f"no run at {path}: {reason}") from error


@contextmanager
def _understood(where: object) -> Iterator[None]:
    """Raise UserError for content inside the block that is no record."""
    try:
        yield
    except UserError:
        raise
    except (ValueError, RecursionError) as error:  # msgspec's errors and broken UTF-8 are the first
        raise UserError(f"{where} is no record of a run: {first_line(error)}") from error
