"""The record of a run, ``results.json``: its form, and the one place that reads and writes it.

T tasks. Scores are fractions on each task's own metric; what was not evaluated or is undefined is
null. Keys are added, never renamed; ``schema`` is raised when a reader has to know. The file is
written when a run begins and when it ends or stops. What a learned task adds is a line of
``rows.jsonl`` (`stream.record.rows`) at once: a run that was killed is read from both.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import numpy as np

from stream.errors import UserError, first_line, require
from stream.files.atomic import write_atomic
from stream.files.line_log import whole_lines
from stream.files.run_folder import FILE_NAME, ROWS_NAME, SCHEMA
from stream.record.derived import Derivation
from stream.record.ledger import LedgerRecord
from stream.record.matrix import Cell, ScoreMatrix
from stream.record.parts import (
    DataRecord,
    FlopRecord,
    LinearProbeRecord,
    MemoryRecord,
    ProbeRecord,
    RoutingRecord,
    TimingRecord,
)
from stream.record.rows import (
    RowRecord,
    add_rows,
    add_unfinished,
    decoded,
    rows_of,
    unfinished_of,
)
from stream.record.selection import SelectionRecord

SCHEMAS = (1, SCHEMA)
"""What is understood: in the first one, a reused cell stands whole."""

CORE_METRICS = ("average_score", "learning_score", "bwt", "forgetting")
"""Metrics that every record has; null where a run is too short for them."""


class RunRecord(msgspec.Struct, kw_only=True):
    """Everything that a run has shown so far; ``results.json`` is this, key by key.

    Attributes:
        status: ``partial`` until the last row and the figures are written.
        matrix: scores [T, T]; row i is after learning task i.
        cells: the evidence of each score. In the file, one that is reused is the number of the row,
            from 0, whose cell it is; here all rows that reuse it have one object.
        gpu: the name of the GPU that computed it; null on a CPU, and in records written before it
            was kept.
        scenario: what was known when texts were served, one of `stream.config.run.SCENARIOS`.
        routing: how tasks were inferred; null where they were known.
        baseline: scores of the untrained learner, where they were wanted.
        majority: scores of always giving each task's majority answer; null in records written
            before it was kept.
        losses: of every step, by task; with ``select``, of the candidate that was chosen.
        eager: by task, why steps that should have been captured as CUDA graphs were executed
            eagerly, or some of them.
        fingerprints: of what serves each learned task.
        selection: with ``select``, by task, what was tried and chosen.
        config: the whole configuration, as JSON values.
        overrides: what the command line gave; null in records written before it was kept.
        train_bytes: of all training rows, encoded; null in records written before it was kept.
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
    gpu: str | None = None
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
    routing: RoutingRecord | None = None
    eager: dict[str, str] = {}
    fingerprints: dict[str, str]
    selection: dict[str, SelectionRecord] = {}
    data: DataRecord
    versions: dict[str, str]
    config: dict[str, Any]
    overrides: list[str] | None = None
    train_bytes: int | None = None

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
    def computed_on(self) -> str:
        """The GPU by its name where that is known, or the device."""
        return self.gpu or self.device

    @property
    def score_matrix(self) -> ScoreMatrix:
        """The cells as a matrix; a cell that is recorded in it stands here."""
        return ScoreMatrix(self.order, self.cells)

    @property
    def unlearned(self) -> list[int]:
        """The positions of tasks that are unlearned (`is_unlearned`)."""
        return [place for place in range(len(self.order)) if self.is_unlearned(place)]

    def is_unlearned(self, place: int) -> bool:
        """Whether all texts of a task got one answer right after it was learned.

        So training has failed, or majority answers are as good as it gets. False where nothing was
        trained, and in records written before it was kept.
        """
        cell = self.cells[place][place]
        return cell is not None and cell.constant and self.timing.steps > 0

    def settings_of(self, task: str) -> dict[str, Any]:
        """Return the learner's settings with which a task was learned, chosen ones included."""
        found, settings = self.selection.get(task), self.config["learner"]
        if found is None or found.chosen is None:
            return settings
        return {**settings, **found.candidates[found.chosen].settings}

    def take_over(self, earlier: "RunRecord", rows: Sequence[RowRecord] | None = None) -> None:
        """Take what an earlier part of the run has measured; its tasks are the first ones here.

        Args:
            earlier: the record of that part.
            rows: its rows, where they were kept; by default they are made from it.
        """
        self.baseline = earlier.baseline
        add_rows(self, rows_of(earlier) if rows is None else rows)
        add_unfinished(self, unfinished_of(earlier))
        if earlier.overrides is not None:
            self.overrides = [*earlier.overrides, *(self.overrides or [])]

    def derive(self) -> None:
        """Compute anew what the record derives from its rows: matrix, memory, metrics."""
        Derivation().update(self)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a record: a ``results.json`` or the run folder that holds one.

        Rows of the folder that came after the file was written are in it.

        Raises:
            UserError: it is not there, or no record that is understood here; says why.
        """
        return cls._read(path)[0]

    @classmethod
    def sum_up(cls, folder: Path) -> None:
        """Have the ``results.json`` of a run that stops hold the rows that came after it.

        Raises:
            UserError: there is no record that is understood here.
            OSError: the disk is full or cannot be written; the file is as it was.
        """
        record, is_behind = cls._read(folder)
        if is_behind:
            record.write(folder)

    @classmethod
    def _read(cls, path: Path) -> tuple[Self, bool]:
        """Return the record at ``path``, and whether its file lacks rows of the folder."""
        file = _file(path)
        with _understood(file):
            content = _content(path)
            found = msgspec.json.decode(content, type=_Schema)
            _check_schema(found, file)
            record = cls._of(msgspec.json.decode(content, type=_Stored))
            grows = found.schema == SCHEMA and record.status == "partial"
            return record, grows and record._add_later_rows(file.with_name(ROWS_NAME))

    def _add_later_rows(self, file: Path) -> bool:
        """Add the rows of a file that are not among those here; return whether there were any."""
        later = whole_lines(file)[len(self.ledger.tasks) :]
        if later:
            add_rows(self, decoded(later, file))
            self.derive()
        return bool(later)

    @classmethod
    def from_values(cls, values: dict[str, Any], where: str) -> Self:
        """Return the record that JSON values hold.

        Raises:
            UserError: they are no record that is understood here; ``where`` says what holds them.
        """
        with _understood(where):
            _check_schema(msgspec.convert(values, _Schema), where)
            return cls._of(msgspec.convert(values, _Stored))

    @classmethod
    def _of(cls, stored: "_Stored") -> Self:
        """Return the record that a file holds."""
        values = {name: getattr(stored, name) for name in cls.__struct_fields__}
        return cls(**{**values, "cells": _resolved(stored.cells), "schema": SCHEMA})

    def values(self) -> dict[str, Any]:
        """Return the keys of ``results.json`` and what they hold; a reused cell is its row."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {**values, "cells": _with_rows(self.cells)}

    def opening(self) -> dict[str, Any]:
        """Return the values of this run before its first row, without the T x T nulls."""
        flops, linear, routing, probe = self.flops, self.linear_probe, self.routing, self.probe
        return {name: getattr(self, name) for name in self.__struct_fields__} | {
            "status": "partial",
            "matrix": [],
            "cells": [],
            "metrics": dict.fromkeys(CORE_METRICS),
            "memory": MemoryRecord(promised=self.memory.promised),
            "ledger": LedgerRecord(
                base_parameters=self.ledger.base_parameters,
                encoder_layer_parameters=self.ledger.encoder_layer_parameters,
            ),
            "timing": TimingRecord(),
            "losses": {},
            "probe": probe and ProbeRecord(every=probe.every, rows=probe.rows),
            "linear_probe": linear and LinearProbeRecord(),
            "flops": flops and FlopRecord(),
            "routing": routing and RoutingRecord(kind=routing.kind),
            "fingerprints": {},
            "selection": {},
            "eager": {},
        }

    @classmethod
    def opened(cls, values: dict[str, Any], where: str) -> Self:
        """Return the record before its first row that `opening` described.

        Raises:
            UserError: the values are no record that is understood here.
        """
        with _understood(where):
            num_tasks = len(values["order"])
        empty = [[[None] * num_tasks for _ in range(num_tasks)] for _ in range(2)]
        return cls.from_values({**values, "matrix": empty[0], "cells": empty[1]}, where)

    def encode(self) -> bytes:
        """Return the record as JSON, on one line."""
        return msgspec.json.encode(self.values())

    def write(self, folder: Path) -> None:
        """Write ``results.json`` into ``folder``; a reader sees the old file or the new one."""
        write_atomic(folder / FILE_NAME, self.encode(), b"\n")


class _Stored(RunRecord, kw_only=True):
    """A record as a file holds it: a reused cell is the number of the row whose cell it is."""

    cells: list[list[Cell | int | None]]  # pyright: ignore[reportIncompatibleVariableOverride]


def _with_rows(cells: list[list[Cell | None]]) -> list[list[Cell | int | None]]:
    """Return cells with the number of its row in place of each that is reused."""
    above: list[tuple[int, Cell] | None] = [None] * len(cells)
    found: list[list[Cell | int | None]] = []
    for index, row in enumerate(cells):
        line: list[Cell | int | None] = []
        for on, cell in enumerate(row):
            newest = above[on]
            if cell is not None and newest is not None and cell.reuses(newest[1]):
                above[on] = newest[0], cell  # the object of the rows to come
                line.append(newest[0])
                continue
            if cell is not None:
                above[on] = index, cell
            line.append(cell)
        found.append(line)
    return found


def _resolved(cells: list[list[Cell | int | None]]) -> list[list[Cell | None]]:
    """Return cells with the one that is reused in place of each number of a row.

    Raises:
        ValueError: there is no such cell.
    """
    reused: dict[tuple[int, int], Cell] = {}
    found: list[list[Cell | None]] = []
    for index, row in enumerate(cells):
        line: list[Cell | None] = []
        for on, cell in enumerate(row):
            if isinstance(cell, int):
                if (cell, on) not in reused:
                    source = found[cell][on] if 0 <= cell < index else None
                    if source is None:
                        raise ValueError(f"cell ({index}, {on}) reuses a cell that is not there")
                    reused[cell, on] = source.reused()
                line.append(reused[cell, on])
            else:
                line.append(cell)
        found.append(line)
    return found


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
    """Raise UserError unless the schema is one that this version knows."""
    require(
        found.schema in SCHEMAS,
        f"{where} has schema {found.schema}, written by another version of this program; "
        f"{' and '.join(map(str, SCHEMAS))} are understood here",
    )


def _file(path: Path) -> Path:
    """Return the file of a record, which may be named by its folder."""
    return path / FILE_NAME if path.is_dir() else path


def _content(path: Path) -> bytes:
    """Return the bytes of the record at ``path``."""
    try:
        return _file(path).read_bytes()
    except OSError as error:
        lacks = isinstance(error, FileNotFoundError) and path.is_dir()
        reason = (
            f"it has no {FILE_NAME}" if lacks else (error.strerror or first_line(error)).lower()
        )
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
