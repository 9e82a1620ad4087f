"""Numbers and tables in Markdown."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from analysis.runs.estimate import INTERVAL, Estimate
from stream.formatting import percent

NOTE = f"± is half of the {INTERVAL} over the seeds; one seed has none."


def spread(values: Sequence[float]) -> str:
    """Return the mean of fractions and half of its interval, in points."""
    return Estimate.of(values).show(percent, len(values)) if values else "not run"


def table(header: str | Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table; ``header`` names its columns, in a text separated by commas."""
    names = header.split(",") if isinstance(header, str) else [*header]
    rows = [names, ["---"] * len(names), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def fill(path: Path, kind: str, made: Callable[[str], str]) -> None:
    """Write tables into a Markdown file: between ``<!-- KIND:NAME -->`` and ``<!-- end -->``.

    Args:
        path: the file.
        kind: whose tables they are.
        made: the table of a name.
    """

    def filled(match: re.Match[str]) -> str:
        text = made(match.group(1))
        note = f"\n\n{NOTE}" if "±" in text else ""
        return f"<!-- {kind}:{match.group(1)} -->\n{text}{note}\n<!-- end -->"

    pattern = re.compile(rf"<!-- {kind}:(\w+) -->\n.*?<!-- end -->", re.DOTALL)
    path.write_text(pattern.sub(filled, path.read_text(encoding="utf-8")), encoding="utf-8")
