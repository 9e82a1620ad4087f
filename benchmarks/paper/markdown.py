"""Numbers and tables in Markdown."""

from collections.abc import Iterable, Sequence

from analysis.runs.estimate import INTERVAL, Estimate
from stream.formatting import percent

NOTE = f"± is half of the {INTERVAL} over the seeds; one seed has none."


def spread(values: Sequence[float]) -> str:
    """Return the mean of fractions and half of its interval, in points."""
    return Estimate.of(values).show(percent, len(values)) if values else "not run"


def table(header: str, lines: Iterable[Sequence[str]]) -> str:
    """Return a table; ``header`` names its columns, separated by commas."""
    names = header.split(",")
    rows = [names, ["---"] * len(names), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
