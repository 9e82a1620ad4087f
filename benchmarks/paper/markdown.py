"""Numbers and tables in Markdown."""

from collections.abc import Iterable, Sequence
from statistics import mean, stdev


def spread(values: Sequence[float]) -> str:
    """Return mean and sample standard deviation of fractions, in points."""
    points = [100 * value for value in values]
    tail = f" ± {stdev(points):.1f}" if len(points) > 1 else ""
    return f"{mean(points):.1f}{tail}" if points else "not run"


def table(header: str, lines: Iterable[Sequence[str]]) -> str:
    """Return a table; ``header`` names its columns, separated by commas."""
    names = header.split(",")
    rows = [names, ["---"] * len(names), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
