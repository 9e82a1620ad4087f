"""What all figures of several runs share: keywords of lines and marks, headings, axes."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from analysis.looks import look_of
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import Method, build_methods
from stream.errors import UserError
from stream.formatting import MINUS, count
from stream.report.canvas import plain, stream_name

LEGEND_LINE = 90  # characters


class NothingToDrawError(UserError):
    """These runs have nothing of what a figure shows; the message says what is missing."""


def complete_methods(runs: Sequence[RecordedRun]) -> list[Method]:
    """The methods with a complete run; `NothingToDrawError` without any."""
    found = [method for method in build_methods(runs) if method.is_complete]
    if not found:
        raise NothingToDrawError("no run is complete")
    return found


def line_style(method: Method) -> dict[str, Any]:
    """The keywords of a method's line."""
    look = look_of(method.index)
    marker, dashes = look.marker.matplotlib, look.dashes.matplotlib
    return {"color": look.colour, "marker": marker, "linestyle": dashes}


def mark_style(index: int) -> dict[str, Any]:
    """The keywords of marks with error bars, of the method or line of that number."""
    look = look_of(index)
    marker = look.marker.matplotlib
    return {"color": look.colour, "marker": marker, "linestyle": "none", "capsize": 2.5}


def num_seeds(methods: Iterable[Method]) -> list[int]:
    """How many runs are counted of each method."""
    return [len(method.counted) for method in methods]


def heading(runs: Sequence[RecordedRun], what: str = "") -> str:
    """The stream and the backbones, and in a second line what the figure shows."""
    record = runs[0].record
    backbones = ", ".join(sorted({run.record.backbone for run in runs}))
    note = ", validation scores" if record.split == "validation" else ""
    tasks = count(len(record.order), "task")
    return f"{stream_name(record)}, {tasks}, {plain(backbones)}{note}" + f"\n{what}" * bool(what)


def legend_label(method: Method) -> str:
    """The method's name for a legend; of a partial run how many tasks it has learned."""
    note = "" if method.is_complete else f", partial: {count(method.num_learned, 'task')}"
    return in_lines(plain(method.label, 160) + note)


def in_lines(label: str) -> str:
    """A label of a legend, in as many lines as it takes."""
    return textwrap.fill(label, LEGEND_LINE)


def legend_height(methods: Iterable[Method]) -> float:
    """Inches that a list of methods takes."""
    return 0.22 * sum(1 + legend_label(method).count("\n") for method in methods)


def panel_grid(number: int) -> tuple[int, int]:
    """Return the rows and columns of panels: four a row, four of them two by two.

    >>> panel_grid(3), panel_grid(4), panel_grid(26)
    ((1, 3), (2, 2), (7, 4))
    """
    columns = 2 if number == 4 else min(number, 4)
    return math.ceil(number / columns), columns


def tidy(axes: Axes, axis: str = "y") -> None:
    """A faint grid, no frame at the top and right."""
    axes.grid(axis=axis, alpha=0.3)  # pyright: ignore[reportArgumentType]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_log_axis(axis: Axis, label: str, form: Formatter) -> None:
    """Make an axis logarithmic, and say so in its label.

    Its ticks are at powers of ten where it spans much, at 1, 2 and 5 where it spans less, and as on
    a linear axis where that would leave hardly any.

    Args:
        axis: its limits are those of what is drawn.
        label: what it shows; empty for none.
        form: how a tick is written.
    """
    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    low, high = axis.get_view_interval()
    if high / low < 6:
        axis.set_major_locator(MaxNLocator(5, steps=(1, 2, 5, 10)))
    else:
        few = high / low < 300
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=20))
    axis.set_major_formatter(form)
    axis.set_minor_formatter(NullFormatter())
    head, _, rest = label.partition("\n")
    if label:
        axis.set_label_text(f"{head}, logarithmic" + f"\n{rest}" * bool(rest))


def show_percent(axes: Axes) -> None:
    """Label a y axis of fractions in percent."""

    def shown(score: float, _: object) -> str:
        return f"{round(100 * score, 6) + 0.0:g}".replace("-", MINUS)

    axes.yaxis.set_major_formatter(FuncFormatter(shown))
