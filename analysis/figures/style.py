"""What all figures of several runs share: keywords of lines and marks, headings, axes."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from analysis.looks import Look, look_of
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import Method, build_methods
from stream.errors import UserError
from stream.formatting import MINUS, count
from stream.report.canvas import plain, stream_name

LEGEND_LINE = 40  # characters
ROW, LINE = 0.24, 0.16  # inches that a legend takes for an entry, and for a further line of it
HIGHEST = 1.05  # end of an axis of scores, which lie in [-1, 1]
HUNDREDTH = 100  # what is so much smaller than the next is no part of a logarithmic axis


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
    return {**_mark(look), "linestyle": look.dashes.matplotlib}


def mark_style(index: int) -> dict[str, Any]:
    """The keywords of marks with error bars, of the method or line of that number."""
    return {**_mark(look_of(index)), "linestyle": "none", "capsize": 2.5}


def _mark(look: Look) -> dict[str, Any]:
    filled = {"markerfacecolor": look.filling, "markeredgecolor": look.colour}
    return {"color": look.colour, "marker": look.marker.matplotlib, **filled}


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


def full_name(method: Method) -> str:
    """The method's name with all that is behind it; of a partial run how many tasks it learned."""
    return plain(method.full_label, 400) + partial_note(method)


def partial_note(method: Method) -> str:
    """How many tasks a partial run has learned; nothing of a complete one."""
    is_whole = method.is_complete
    return "" if is_whole else f", partial: {count(method.num_learned, 'task')}"


def in_lines(label: str) -> str:
    """A label of a legend, in as many lines as it takes."""
    return textwrap.fill(label, LEGEND_LINE, subsequent_indent="  ")


def legend_height(labels: Iterable[str]) -> float:
    """Inches that a legend of these labels takes, one below the other."""
    return sum(ROW + LINE * label.count("\n") for label in labels)


def legend_width(labels: Iterable[str]) -> float:
    """Inches that a legend of these labels takes, at most on average."""
    lines = [line for label in labels for line in label.splitlines()]
    return 0.7 + 0.08 * max(map(len, lines))


def panels_beside(
    figure: Figure, shape: tuple[int, int], labels: Sequence[str]
) -> tuple[list[list[Axes]], Axes]:
    """Add panels that share their y axis, and right of them room for a legend.

    Args:
        figure: the figure.
        shape: rows and columns of panels.
        labels: of the legend.

    Returns:
        The panels by row, and the room: axes without anything.
    """
    rows, columns = shape
    room = legend_width(labels)
    each = max((figure.get_size_inches()[0] - room - 0.9) / columns, 1.0)
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[each] * columns + [room])
    first = figure.add_subplot(grid[0, 0])
    panels = [
        [
            figure.add_subplot(grid[row, column], sharey=first) if row or column else first
            for column in range(columns)
        ]
        for row in range(rows)
    ]
    for axes in (axes for row in panels for axes in row[1:]):
        axes.tick_params(labelleft=False)
    legend = figure.add_subplot(grid[:, -1])
    legend.set_axis_off()
    return panels, legend


def add_legend(room: Axes, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """List what is drawn in the room beside the panels, one below the other."""
    room.legend(
        handles, labels, loc="upper left", frameon=False, fontsize=9, borderaxespad=0, borderpad=0
    )


def add_notes(figure: Figure, notes: Sequence[str]) -> None:
    """Write lines below a figure, if there are any: what the names of its methods leave out."""
    characters = int(13 * figure.get_size_inches()[0])
    text = "\n".join(line for note in notes for line in textwrap.wrap(plain(note, 999), characters))
    if text:
        place: Any = "outside lower left"
        figure.legend([], [], title=text, title_fontsize=9, loc=place, frameon=False)


def far_below(values: Sequence[float]) -> set[int]:
    """The positions of values so small that a logarithmic axis would show little but the gap.

    They are few, and all others are at least a hundred times as large.

    >>> far_below([1e6, 3e5, 2e6, 2.0]), far_below([1.0, 50.0, 1000.0]), far_below([1.0, 1000.0])
    ({3}, set(), set())
    """
    order = sorted((n for n, value in enumerate(values) if value > 0), key=lambda n: values[n])
    for number in range(len(order) // 4, 0, -1):
        if values[order[number]] >= HUNDREDTH * values[order[number - 1]]:
            return set(order[:number])
    return set()


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

    Its ticks are at powers of ten where it spans much, at 1 and 3 or at 1, 2 and 5 where it spans
    less, and as on a linear axis where that would leave hardly any.

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
        subs = (1, 2, 5) if high / low < 50 else (1, 3) if high / low < 1000 else (1,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.set_major_formatter(form)
    axis.set_minor_formatter(NullFormatter())
    head, _, rest = label.partition("\n")
    if label:
        axis.set_label_text(f"{head}, logarithmic" + f"\n{rest}" * bool(rest))


def show_possible(axes: Axes) -> None:
    """End a y axis of scores where scores end, however far intervals reach."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -HIGHEST), min(high, HIGHEST))


def show_percent(axes: Axes) -> None:
    """Label a y axis of fractions in percent."""

    def shown(score: float, _: object) -> str:
        return f"{round(100 * score, 6) + 0.0:g}".replace("-", MINUS)

    axes.yaxis.set_major_formatter(FuncFormatter(shown))
