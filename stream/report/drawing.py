"""Every figure of a run, drawn in this process or on workers; matplotlib is imported to draw."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from stream.files.atomic import write_atomic
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
    pairs = zip(NAMES, draw(record), strict=True)
    return [write_encoded(files, folder / "figures", name)[0] for name, files in pairs]


def write_encoded(files: Mapping[str, bytes], folder: Path, name: str) -> list[Path]:
    """Write a figure as NAME.FORMAT for each format into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {folder / f"{name}.{format_}": content for format_, content in files.items()}
    for path, content in paths.items():
        write_atomic(path, content)
    return [*paths]
