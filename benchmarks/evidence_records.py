"""The records of `benchmarks.evidence`, and how their numbers are written in Markdown."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from analysis.collect import load


@dataclass(frozen=True)
class Records:
    """The records of a folder: by group and name, such as ``given/adapter64-s1``."""

    folder: Path
    runs: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, folder: Path) -> "Records":
        """Read every record."""
        files = sorted(folder.glob("*/*/results.json"))
        return cls(folder, {str(file.parent.relative_to(folder)): load(file) for file in files})

    def seeds(self, group: str, learner: str) -> list[dict[str, Any]]:
        """Return a learner's runs, a seed each."""
        pattern = re.compile(rf"{group}/{learner}-s\d+")
        return [run for name, run in self.runs.items() if pattern.fullmatch(name)]

    def validation(self, learner: str, seed: int) -> dict[str, float]:
        """Return an adapter run's score of each task on validation rows; empty without any."""
        path = self.folder / "given" / f"{learner}-s{seed}" / "validation.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def spread(values: Sequence[float]) -> str:
    """Return mean and sample deviation in points."""
    points = [100 * value for value in values]
    tail = f" ± {stdev(points):.1f}" if len(points) > 1 else ""
    return f"{mean(points):.1f}{tail}" if points else "not run"


def table(header: str, lines: Iterator[Sequence[str]]) -> str:
    """Return a table in Markdown; ``header`` has its columns apart by commas."""
    names = header.split(",")
    rows = [names, ["---"] * len(names), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def last_row(run: dict[str, Any]) -> dict[str, float]:
    """Return the score of every task at the end."""
    return dict(zip(run["order"], run["matrix"][-1], strict=True))


def identical_of(counts: Sequence[int]) -> str:
    """Return how many of the 25 earlier tasks were bit-identical, in the fewest and most."""
    return f"{' to '.join(map(str, sorted({min(counts), max(counts)})))} of 25"
