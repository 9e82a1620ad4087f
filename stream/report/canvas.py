"""What all figures share: a canvas, headings, names, colours, and how they become files.

T is the number of tasks. Scores are fractions, shown as percent; undefined shows as a dash.
"""

import math
import textwrap
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axis import Axis, XAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from stream.formatting import DASH, percent, stream_title, visible
from stream.record.method_name import method_name
from stream.record.run_record import RunRecord
from stream.report.drawing import write_encoded
from stream.report.many import is_many, named, round_step

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"  # Okabe and Ito 2008
DPI = 150
SCORE_LABEL = "score on the task's own metric (%)"


def plain(text: str, limit: int = 36) -> str:
    """Text as matplotlib shall draw it: visible, no formulas between dollars, cut to `limit`."""
    return visible(text, limit).replace("$", r"\$")


def display_names(record: RunRecord) -> list[str]:
    """The T numbered titles, in stream order."""
    return [f"{number} · {plain(title, 60)}" for number, title in enumerate(record.titles, start=1)]


def running_average(record: RunRecord) -> np.ndarray:
    """The T averages over tasks 1..k after learning task k; NaN where one score is missing."""
    return np.array([row[: k + 1].mean() for k, row in enumerate(record.scores)])


def task_ticks(num_tasks: int) -> list[int]:
    """What an axis of tasks learned shows: the first, the last, and some between."""
    if is_many(num_tasks):
        step = round_step(num_tasks, 6)
    else:
        step = math.ceil(num_tasks / 30) * 5 if num_tasks > 10 else 1
    return sorted({1, num_tasks, *range(step, num_tasks - step // 2, step)})


def name_tasks(axis: Axis, names: Sequence[str], first: float, before: str = "") -> None:
    """Write names of tasks at an axis.

    Args:
        axis: an x axis, whose names stand upright, or a y axis.
        names: of all T tasks.
        first: where on the axis the first one is; a task is one wide.
        before: what stands one before the first task.
    """
    shown = named(len(names))
    if before and is_many(len(names)):
        shown = shown[1:]  # the first one has no room
    places, texts = [first + at for at in shown], [names[at] for at in shown]
    if before:
        places, texts = [first - 1, *places], [before, *texts]
    upright = 90 if isinstance(axis, XAxis) else 0
    axis.set_ticks(places, texts, rotation=upright, fontsize=8.5)


def stream_name(record: RunRecord) -> str:
    """The stream, with the words "generated data" where no real text was used."""
    return plain(stream_title(record.stream)) + " (generated data)" * (record.source == "generated")


def headline(record: RunRecord) -> str:
    """Who ran on what and how it ended: the two first lines of every figure of one run."""
    note = ", validation scores" if record.split == "validation" else ""
    run = f"{plain(record.backbone)}, seed {record.seed}{note}"
    average = percent(record.metrics["average_score"])
    forgetting = percent(record.metrics["forgetting"])
    outcome = f"average score {average} %, forgetting {forgetting} %".replace(f"{DASH} %", DASH)
    if record.status != "complete":
        num_learned = int((~np.isnan(record.scores)).any(axis=1).sum())
        outcome += f"; partial: {num_learned} of {len(record.order)} tasks learned"
    return f"{plain(method_name(record), 80)} on {stream_name(record)}, {run}\n{outcome}"


def new_figure(width: float, height: float, heading: str) -> Figure:
    """A figure of that size in inches with its own canvas; yellow heading for generated data."""
    layout = ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1, hspace=0, wspace=0)
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    size = max(12, 0.7 * width)  # points; some nine letters of twelve points fit an inch
    lines = [textwrap.fill(line, int(108 * width / size)) for line in heading.splitlines()]
    title = figure.suptitle("\n".join(lines), x=0.15 / width, ha="left", size=size, linespacing=1.5)
    if "generated data" in heading:
        title.set_bbox({"facecolor": "#FFE08A", "edgecolor": "none", "pad": 5})
    return figure


def save(
    figure: Figure, folder: Path, name: str, formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Write NAME.FORMAT for each format, each whole or not at all.

    Args:
        figure: what to write.
        folder: where to write; it is made.
        name: of the files, without suffix.
        formats: out of png, svg and pdf.
    """
    return write_encoded(all_encoded(figure, formats), folder, name)


def all_encoded(figure: Figure, formats: Sequence[str]) -> dict[str, bytes]:
    """Return a figure as the content of a file of each format."""
    _lay_out(figure)
    return {format_: encoded(figure, format_) for format_ in formats}


def _lay_out(figure: Figure) -> None:
    """Find the layout for all formats; matplotlib draws a figure twice that has yet to find it."""
    engine = figure.get_layout_engine()
    if engine is not None and figure.axes:
        figure.set_dpi(DPI)  # texts have other widths in other resolutions
        engine.execute(figure)
        figure.set_layout_engine(None)


def encoded(figure: Figure, format_: str) -> bytes:
    """Return a figure as the content of a png, svg or pdf file.

    Equal figures give equal bytes: no file says when it was written. Text in it stays text.
    """
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "stream", "pdf.fonttype": 42}
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    drawn = BytesIO()
    with matplotlib.rc_context(settings):
        figure.savefig(drawn, format=format_, dpi=DPI, metadata=undated.get(format_))
    return drawn.getvalue()
