"""Runs of a search as lines of JSON: a file grows by one line per finished run."""

from pathlib import Path
from typing import Self, TypeVar

import msgspec

from stream.record.run_record import LedgerRecord, MemoryRecord, RunRecord, TimingRecord

Line = TypeVar("Line", bound=msgspec.Struct)


class Trial(msgspec.Struct, kw_only=True):
    """A learning rate that `benchmarks.paper.evidence` tried: a line of its tune.jsonl.

    Attributes:
        search: which search it is part of, one of `benchmarks.paper.plan.SEARCHES`.
        settings: what its command said after ``run_stream.py``.
        wall_s: seconds that it took.
    """

    search: str
    learner: str
    rate: float
    average_score: float
    learning_score: float
    settings: str
    wall_s: float


class MethodRun(msgspec.Struct, kw_only=True):
    """A run of `benchmarks.paper.methods`: a line of its tune.jsonl or table.jsonl.

    Attributes:
        chosen: its hyperparameter, such as ``learner.lr=0.001``; empty for a method without one.
    """

    method: str
    chosen: tuple[str, ...]
    seed: int
    split: str
    device: str
    timing: TimingRecord
    metrics: dict[str, float | None]
    memory: MemoryRecord
    ledger: LedgerRecord
    matrix: list[list[float | None]]
    order: list[str]
    versions: dict[str, str]

    @classmethod
    def of(cls, method: str, chosen: tuple[str, ...], record: RunRecord) -> Self:
        """Return the line of a finished run.

        Args:
            method: one of `benchmarks.paper.methods.SEARCH`.
            chosen: its hyperparameter, as above.
            record: what the run has shown.
        """
        same = {
            name: getattr(record, name)
            for name in cls.__struct_fields__
            if name not in ("method", "chosen")
        }
        return cls(method=method, chosen=chosen, **same)


def read_lines(path: Path, kind: type[Line]) -> list[Line]:
    """Return the lines of a file; none where there is no file."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=kind) for line in lines]


def append_line(path: Path, line: msgspec.Struct) -> None:
    """Add a line to a file, which may not exist yet."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
