"""What scripts that run many streams share: lines of JSON, and numbers in Markdown."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file, one a line; none where there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def spread(values: Sequence[float]) -> str:
    """Return mean and sample deviation in points."""
    points = [100 * value for value in values]
    tail = f" ± {stdev(points):.1f}" if len(points) > 1 else ""
    return f"{mean(points):.1f}{tail}" if points else "not run"


def table(header: str, lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; ``header`` has its columns apart by commas."""
    names = header.split(",")
    rows = [names, ["---"] * len(names), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
