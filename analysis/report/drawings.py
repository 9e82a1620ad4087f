"""Drawings of a report: figures of `analysis.figures` that need no interaction, inside the page."""

import warnings
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from analysis.figures.along_stream import growth
from analysis.figures.forgetting_curves import forgetting_curves
from analysis.figures.forgetting_map import forgetting_map
from analysis.figures.forgetting_marks import forgetting
from analysis.figures.score_against import cost, parameters
from analysis.figures.style import NothingToDrawError
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import INTERVAL
from stream.report.canvas import encoded

CSS_PIXELS = 96  # per inch
BARS = f"Bars: {INTERVAL} over the seeds, none of one seed."


@dataclass(frozen=True)
class Drawing:
    """A figure and its words.

    Attributes:
        draw: draws it, for runs of one stream.
        alt: says in one sentence what is drawn, for who does not see it.
        note: stands below it: how to read it.
    """

    title: str
    draw: Callable[[Sequence[RecordedRun]], Figure]
    alt: str
    note: str


@dataclass(frozen=True)
class Image:
    """A drawing for the page.

    Attributes:
        address: a data URI of the SVG.
        width: in CSS pixels, as it was drawn.
    """

    title: str
    alt: str
    note: str
    address: str
    width: int


MAP = (
    Drawing(
        "Who forgot what",
        forgetting_map,
        "A heat map with a row for each method and a column for each task, in the order of the "
        "stream: percentage points forgotten, means over seeds, and their mean in the last column.",
        "Best score since it was learned minus the score at the end, in percentage points "
        "(Chaudhry et al. 2018), means over seeds, least on top; the last column is the forgetting "
        "of the headline table. White: exactly 0. Below 0, purple: better than ever before.",
    ),
)
LOST = (
    Drawing(
        "Forgetting curves of all tasks",
        forgetting_curves,
        "A panel for each method: its tasks' scores minus their scores right after learning over "
        "the number of tasks learned, a line for each task, with the mean of all in black.",
        "Score minus the score right after learning, means over seeds: a line that falls is a task "
        "that is being forgotten. The black line is backward transfer (BWT) so far.",
    ),
    Drawing(
        "Forgetting by task",
        forgetting,
        "For each task a mark for each method: percentage points forgotten, with error bars.",
        "Best score since it was learned minus the score at the end (Chaudhry et al. 2018); "
        f"below 0: better than ever before. {BARS}",
    ),
)
COST = (
    Drawing(
        "Parameters against score",
        parameters,
        "Two panels of average score at the end, against parameters trained for a task and against "
        "all that are stored: a mark for each method, and the steps of the Pareto front.",
        "Trained for a task: with its head, mean over the tasks. Stored: all that serves the "
        "tasks, buffers of examples not counted. On the Pareto front are learners of a stream that "
        "no other one matches with as few parameters, by the means: intervals may overlap. "
        f"{BARS} Partial runs are not drawn.",
    ),
    Drawing(
        "Growth of parameters",
        growth,
        "Stored parameters over the stream, a line for each method, beside one copy for each task.",
        "All that is stored to serve the tasks so far, as a multiple of the encoder's parameters, "
        "first seed, on a logarithmic axis. Dotted: one fine-tuned copy per task.",
    ),
    Drawing(
        "Cost of training against score",
        cost,
        "Average score at the end against the seconds of learning, a mark for each method.",
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
    return Image(drawing.title, drawing.alt, drawing.note, address, width)
