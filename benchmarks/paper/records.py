"""The records of `benchmarks.paper.evidence`."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stream.record.run_record import RunRecord


@dataclass(frozen=True)
class Records:
    """The records of a folder: by group and name, such as ``given/adapter64-s1``."""

    folder: Path
    runs: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, folder: Path) -> "Records":
        """Read every record."""
        files = sorted(folder.glob("*/*/results.json"))
        loaded = {file: msgspec.to_builtins(RunRecord.read(file)) for file in files}
        return cls(folder, {str(f.parent.relative_to(folder)): run for f, run in loaded.items()})

    def seeds(self, group: str, learner: str) -> list[dict[str, Any]]:
        """Return a learner's runs, a seed each."""
        pattern = re.compile(rf"{group}/{learner}-s\d+")
        return [run for name, run in self.runs.items() if pattern.fullmatch(name)]

    def validation(self, learner: str, seed: int) -> dict[str, float]:
        """Return an adapter run's score of each task on validation rows; empty without any."""
        path = self.folder / "given" / f"{learner}-s{seed}" / "validation.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def last_row(run: dict[str, Any]) -> dict[str, float]:
    """Return the score of every task at the end."""
    return dict(zip(run["order"], run["matrix"][-1], strict=True))


def identical_of(counts: Sequence[int]) -> str:
    """Return how many of the 25 earlier tasks were bit-identical, over runs: least to most."""
    return f"{' to '.join(map(str, sorted({min(counts), max(counts)})))} of 25"
