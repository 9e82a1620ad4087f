"""Forgetting curves: each task's score minus its score right after learning, along the stream.

T is the number of tasks. A curve below 0 has forgotten. Undefined is NaN and not drawn.
"""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from stream.formatting import MINUS, signed
from stream.metrics.changes import change_since_learned, last_changes, mean_change
from stream.record.run_record import RunRecord
from stream.report.canvas import GREY, display_names, headline, new_figure, task_ticks
from stream.report.many import changed_most, thinned

CHANGE_LABEL = "change since learned (percentage points)"
DASHES = ("-", "--", "-.", ":")  # tell neighbours in colour apart


def shades(num_tasks: int) -> list[str]:
    """Return the colours of tasks in order of the stream, from dark to light, also in grey."""
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.88, num_tasks))
    return [to_hex(colour) for colour in colours]


def draw_changes(axes: Axes, changes: np.ndarray) -> list[Line2D]:
    """Draw a curve a task, dark for early and light for late ones, and their mean in black.

    Args:
        axes: where to draw.
        changes: float64 [T, T], of `change_since_learned`.

    Returns:
        The lines of the tasks that are listed (`changed_most`); those of others are thin.
    """
    num_tasks = len(changes)
    numbers, colours = np.arange(1, num_tasks + 1), shades(num_tasks)
    axes.axhline(0, color=GREY, lw=1)
    listed = changed_most(last_changes(changes))
    _draw_others(axes, changes, sorted(set(range(num_tasks)) - set(listed)), colours)
    curves, rows = [], thinned(num_tasks)
    for task in listed:
        dashes, own = DASHES[task % len(DASHES)], rows[rows >= task]
        (curve,) = axes.plot(
            numbers[own], changes[own, task], color=colours[task], ls=dashes, lw=1.1, alpha=0.85
        )
        curves.append(curve)
    axes.plot(numbers, mean_change(changes), color="black", lw=2.6, label="mean of earlier tasks")
    axes.set_xticks(task_ticks(num_tasks))
    axes.set_xlim(0.5, num_tasks + 0.5)
    axes.update_datalim([(1, -0.01), (1, 0.01)])  # no magnified zero
    axes.yaxis.set_major_formatter(FuncFormatter(_tick))
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return curves


def _draw_others(
    axes: Axes, changes: np.ndarray, tasks: Sequence[int], colours: Sequence[str]
) -> None:
    """Draw the curves of tasks that are not listed, as one picture.

    Args:
        axes: where to draw.
        changes: float64 [T, T].
        tasks: their positions.
        colours: of the T tasks.
    """
    rows = thinned(len(changes))
    owns = [rows[rows >= task] for task in tasks]
    lines = [
        np.column_stack([own + 1, changes[own, task]])
        for own, task in zip(owns, tasks, strict=True)
    ]
    if lines:
        shown = [colours[task] for task in tasks]
        axes.add_collection(
            LineCollection(lines, colors=shown, linewidths=0.5, alpha=0.4, rasterized=True)
        )


def _tick(change: float, _: object) -> str:
    return f"{round(100 * change, 6) + 0.0:+g}".replace("-", MINUS) if change else "0"


def forgetting_curves(record: RunRecord) -> Figure:
    """Every task's curve in one panel, with a list of tasks and what they lost or gained.

    Of many tasks, those are listed whose score changed most.
    """
    names, changes = display_names(record), change_since_learned(record.scores)
    last = last_changes(changes)
    listed = changed_most(last)
    figure = new_figure(11, max(4.6, 0.2 * len(listed) + 2.0), headline(record))
    axes = figure.add_subplot()
    curves = draw_changes(axes, changes)
    axes.set(xlabel="number of tasks learned", ylabel=CHANGE_LABEL)
    axes.set_title("score minus the score right after learning", loc="left", fontsize=10)
    if len(names) == 1:
        told = "A stream of one task forgets nothing: there is no later task."
        axes.text(0.5, 0.6, told, ha="center", transform=axes.transAxes, color="#444444")
    notes = [f"{names[task]}  {signed(last[task])}" for task in listed]
    handles, labels = axes.get_legend_handles_labels()
    title = "task, and its last change (points)"
    if len(listed) < len(names):
        title += f":\nthe {len(listed)} of {len(names):,} that changed most"
    figure.legend(
        [*curves, *handles],
        [*notes, *labels],
        loc="outside right upper",
        frameon=False,
        fontsize=8.5,
        title=title,
        alignment="left",
        handlelength=3,
    )
    return figure
