"""Drawings of a report: figures of `analysis.figures` that need no interaction, inside the page."""

import warnings
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from analysis.figures.along_stream import forgetting, growth
from analysis.figures.score_against import cost, parameters
from analysis.figures.style import NothingToDrawError
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import INTERVAL
from stream.report.plots import encoded

CSS_PIXELS = 96  # per inch
BARS = f"Bars: {INTERVAL} over the seeds, none of one seed."


@dataclass(frozen=True)
class Drawing:
    """A figure and its words.

    Attributes:
        draw: draws it, for runs of one stream.
        note: stands below it.
    """

    title: str
    draw: Callable[[Sequence[RecordedRun]], Figure]
    note: str


@dataclass(frozen=True)
class Image:
    """A drawing for the page.

    Attributes:
        address: a data URI of the SVG.
        width: in CSS pixels, as it was drawn.
    """

    title: str
    note: str
    address: str
    width: int


LOST = (
    Drawing(
        "Forgetting by task",
        forgetting,
        "Best score since it was learned minus the score at the end (Chaudhry et al. 2018); "
        f"below 0: better than ever before. {BARS}",
    ),
)
COST = (
    Drawing(
        "Parameters against score",
        parameters,
        "Trained for a task: with its head, mean over the tasks. Stored: all that serves the "
        f"tasks, buffers of examples not counted. {BARS} Partial runs are not drawn.",
    ),
    Drawing(
        "Growth of parameters",
        growth,
        "All that is stored to serve the tasks so far, as a multiple of the encoder's parameters, "
        "first seed, on a logarithmic axis. Dotted: one fine-tuned copy per task.",
    ),
    Drawing(
        "Cost of training against score",
        cost,
        "Seconds of learning depend on the machine; see which in the table of runs. Operations are "
        f"as torch counts them. {BARS} Partial runs are not drawn.",
    ),
)


def images(
    drawings: Sequence[Drawing], runs: Sequence[RecordedRun]
) -> tuple[list[Image], list[str]]:
    """Return drawings of runs of one stream, and what there is nothing to draw of, in words."""
    found, missing = [], []
    for drawing in drawings:
        try:
            found.append(_image(drawing, runs))
        except NothingToDrawError as error:
            missing.append(f"{drawing.title}: {error}.")
    return found, missing


def _image(drawing: Drawing, runs: Sequence[RecordedRun]) -> Image:
    with warnings.catch_warnings():
        # Text stays text in SVG: whoever reads the page may have letters that are not here.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure = drawing.draw(runs)
        svg = encoded(figure, "svg")
    address = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    width = round(CSS_PIXELS * figure.get_size_inches()[0])
    return Image(drawing.title, drawing.note, address, width)
