"""Every figure of a run, drawn in this process or on workers; matplotlib is imported to draw."""

from collections.abc import Callable, Iterable
from pathlib import Path

from stream.record.run_record import RunRecord

NAMES = ("matrix", "scores", "forgetting", "parameters")
"""Those of `stream.report.plots.FIGURES`."""

Files = dict[str, bytes]
"""A figure: the contents of its files, by format."""
Draw = Callable[[RunRecord], Iterable[Files]]
"""Returns the figures called `NAMES`."""


def draw_here(record: RunRecord) -> list[Files]:
    """Return the figures of a run."""
    from stream.report.plots import drawn

    return [drawn(record, name) for name in NAMES]


def write_figures(record: RunRecord, folder: Path, draw: Draw = draw_here) -> list[Path]:
    """Draw every figure of a run into ``folder/figures``; return the PNG files."""
    from stream.report.canvas import write_encoded

    pairs = zip(NAMES, draw(record), strict=True)
    return [write_encoded(files, folder / "figures", name)[0] for name, files in pairs]
