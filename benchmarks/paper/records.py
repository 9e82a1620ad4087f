"""The records of `benchmarks.paper.evidence`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from stream.record.run_record import RunRecord
from stream.run_folder import FILE_NAME


class RunFacts(msgspec.Struct, kw_only=True):
    """How a run was made: run.json beside its record.

    Attributes:
        wall_s: seconds; several where it was stopped and resumed and each part was timed.
        machine: what it ran on.
    """

    command: str
    wall_s: list[float]
    machine: str

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a run.json."""
        return msgspec.json.decode(file.read_bytes(), type=cls)

    def write(self, file: Path) -> None:
        """Write a run.json."""
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


@dataclass(frozen=True)
class Records:
    """The records of a folder: by group and name, such as ``given/adapter64-s1``."""

    folder: Path
    runs: dict[str, RunRecord]

    @classmethod
    def of(cls, folder: Path) -> "Records":
        """Read every record."""
        files = sorted(folder.glob(f"*/*/{FILE_NAME}"))
        names = (str(file.parent.relative_to(folder)) for file in files)
        return cls(folder, dict(zip(names, map(RunRecord.read, files), strict=True)))

    def seeds(self, group: str, learner: str) -> list[RunRecord]:
        """Return a learner's runs, one per seed."""
        pattern = re.compile(rf"{group}/{learner}-s\d+")
        return [run for name, run in self.runs.items() if pattern.fullmatch(name)]

    def facts(self, name: str) -> RunFacts:
        """Return how a run was made."""
        return RunFacts.read(self.folder / name / "run.json")

    def validation(self, learner: str, seed: int) -> dict[str, float]:
        """Return an adapter run's score of each task on validation rows; empty without any."""
        path = self.folder / "given" / f"{learner}-s{seed}" / "validation.json"
        found = path.read_bytes() if path.exists() else b"{}"
        return msgspec.json.decode(found, type=dict[str, float])


def last_row(run: RunRecord) -> dict[str, float | None]:
    """Return the score of every task at the end."""
    return dict(zip(run.order, run.matrix[-1], strict=True))


def worked_s(run: RunRecord) -> float:
    """Return the seconds of preparing, learning and scoring, over all starts of the run."""
    timing = run.timing
    spent = timing.prepare_s + timing.baseline_s + timing.train_s + timing.evaluate_s
    return round(spent, 1)


def identical_of(counts: Sequence[int]) -> str:
    """Return how many of the 25 earlier tasks were bit-identical, over runs: least to most."""
    return f"{' to '.join(map(str, sorted({min(counts), max(counts)})))} of 25"
