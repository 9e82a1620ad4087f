"""What all figures of several runs share: methods and their looks, headings, axes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, NullFormatter

from analysis.runs.collect import Run
from analysis.runs.comparable import group, num_learned, repetitions
from stream.formatting import MINUS, count
from stream.report.plots import BLUE, GREEN, GREY, ORANGE, plain, score_matrix, stream_name

# Okabe and Ito 2008, without the yellow that is hard to see on white.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000", GREY)
DASHES = ("-", "--", "-.", ":")
MARKERS = "osD^vPX*<>"  # shapes tell apart what colours may not


class NothingToDrawError(ValueError):
    """These runs have nothing of what a figure shows; the message says what is missing."""


@dataclass(frozen=True)
class Method:
    """One learner with its settings, and how it looks in every figure.

    Attributes:
        label: as in the table of `compare`.
        runs: complete ones, one a seed; the partial run that got furthest where there is no other.
        colour: of lines and marks.
        marker: of marks.
        dashes: of lines.
    """

    label: str
    runs: Sequence[Run]
    colour: str
    marker: str
    dashes: str

    @property
    def is_complete(self) -> bool:
        """Whether the runs saw the whole stream."""
        return self.runs[0].results["status"] == "complete"

    @property
    def learner(self) -> str:
        """The learner's name."""
        return self.runs[0].results["learner"]

    @property
    def line(self) -> dict[str, Any]:
        """The keywords of a line."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dashes}

    @property
    def marks(self) -> dict[str, Any]:
        """The keywords of marks with error bars."""
        return {"color": self.colour, "marker": self.marker, "linestyle": "none", "capsize": 2.5}

    def final_scores(self) -> np.ndarray:
        """Scores at the end of the stream, float64 [seeds, T]."""
        return np.array([score_matrix(run.results)[-1] for run in self.runs])


def methods_of(runs: Sequence[Run]) -> list[Method]:
    """The methods among runs of one stream, in order of appearance."""
    found = []
    for index, (label, members) in enumerate(group(runs).items()):
        furthest = max(members, key=lambda run: num_learned(run.results))
        shown = repetitions(members) or [furthest]
        found.append(Method(label, shown, *looks(index)))
    return found


def complete_methods(runs: Sequence[Run]) -> list[Method]:
    """Those of `methods_of` with a complete run; `NothingToDrawError` without any."""
    found = [method for method in methods_of(runs) if method.is_complete]
    if not found:
        raise NothingToDrawError("no run is complete")
    return found


def looks(index: int) -> tuple[str, str, str]:
    """Colour, marker and dashes of the method of that number; the first 32 all differ."""
    dashes = DASHES[index // len(COLOURS) % len(DASHES)]
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], dashes


def mean_and_sd(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sample deviation over the first axis, the seeds; deviation 0 for one seed."""
    if len(values) == 1:
        return values[0], np.zeros_like(values[0])
    return values.mean(axis=0), values.std(axis=0, ddof=1)


def seeds_note(numbers: Iterable[int], what: str = "mean and sample deviation") -> str:
    """What is taken over how many seeds, from the number behind each mark.

    >>> seeds_note([3, 1, 3]), seeds_note([1])
    ('mean and sample deviation of 1 to 3 seeds', 'one seed')
    """
    counts = set(numbers)
    low, high = min(counts), max(counts)
    if high == 1:
        return "one seed"
    return f"{what} of {high if low == high else f'{low} to {high}'} seeds"


def num_seeds(methods: Iterable[Method]) -> list[int]:
    """How many runs each method stands for."""
    return [len(method.runs) for method in methods]


def heading(runs: Sequence[Run], what: str = "") -> str:
    """The stream and the backbones, and in a second line what the figure shows."""
    results = runs[0].results
    backbones = ", ".join(sorted({run.results["backbone"] for run in runs}))
    note = ", validation scores" if results.get("split") == "validation" else ""
    tasks = count(len(results["order"]), "task")
    return f"{stream_name(results)}, {tasks}, {plain(backbones)}{note}" + f"\n{what}" * bool(what)


def legend_label(method: Method) -> str:
    """The method's name for a legend, with the number of its seeds where it has several."""
    note = (
        ""
        if method.is_complete
        else f", partial: {count(num_learned(method.runs[0].results), 'task')}"
    )
    return plain(method.label, 80) + note


def tidy(axes: Axes, axis: str = "y") -> None:
    """A faint grid, no frame at the top and right."""
    axes.grid(axis=axis, alpha=0.3)  # pyright: ignore[reportArgumentType]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_log_axis(axis: Axis, form: Formatter) -> None:
    """Ticks at 1, 2 and 5 where an axis spans little, else at powers of ten; drawn by ``form``."""
    low, high = axis.get_view_interval()
    few = high / low < 300
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=20))
    axis.set_major_formatter(form)
    axis.set_minor_formatter(NullFormatter())


def show_percent(axes: Axes) -> None:
    """Label a y axis of fractions in percent."""

    def shown(score: float, _: object) -> str:
        return f"{round(100 * score, 6) + 0.0:g}".replace("-", MINUS)

    axes.yaxis.set_major_formatter(FuncFormatter(shown))
