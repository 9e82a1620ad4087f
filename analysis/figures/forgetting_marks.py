"""What each task lost, with intervals: marks of all methods side by side.

T is the number of tasks.
"""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.style import (
    NothingToDrawError,
    add_legend,
    full_name,
    heading,
    in_lines,
    legend_height,
    legend_width,
    mark_style,
    num_seeds,
    panels_beside,
    show_percent,
    tidy,
)
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import mean_and_half_width, over_seeds
from analysis.runs.methods import Method, build_methods
from stream.formatting import percent
from stream.metrics import forgetting_by_task
from stream.report.canvas import GREY, display_names, new_figure
from stream.report.many import changed_most

WIDEST = 13.0  # inches; wider streams take several rows, for letters that can be read on a screen


def forgetting(runs: Sequence[RecordedRun]) -> Figure:
    """What each task lost since its best score (Chaudhry et al. 2018, eq. 3), methods side by side.

    A method that forgot exactly nothing has no marks, but is listed, unless all are like that.
    The last task is learned last and can have lost nothing: it is left out. A partial run shows
    the tasks that it has learned.
    """
    methods = build_methods(runs)
    titles = display_names(runs[0].record)
    tasks = shown_tasks(methods)
    names = [titles[task] for task in tasks]
    if not names:
        raise NothingToDrawError("a stream of one task forgets nothing")
    changed = [method for method in methods if not _is_still(method)] or methods
    a_task = min(0.1 * len(changed) + 0.25, 0.75)  # inches
    num_rows = math.ceil(len(names) * a_task / WIDEST)
    in_a_row = math.ceil(len(names) / num_rows)
    labels = [_label(method) for method in sorted(methods, key=_is_still)]
    height = max(num_rows * (2.6 + 0.08 * max(map(len, names))), legend_height(labels)) + 1.4
    title = f"best earlier score minus score at the end, {over_seeds(num_seeds(methods))}"
    if len(tasks) < len(titles) - 1:
        title += f"; the {len(tasks)} of {len(titles):,} tasks that lost or gained most"
    width = max(in_a_row * a_task + 1.0, 4.5) + legend_width(labels)
    figure = new_figure(width, height, heading(runs, title))
    panels, room = panels_beside(figure, (num_rows, 1), labels)
    rows = [axes for (axes,) in panels]
    offsets = np.linspace(-0.36, 0.36, len(changed)) if len(changed) > 1 else np.zeros(1)
    for number, axes in enumerate(rows):
        for method, offset in zip(changed, offsets, strict=True):
            _draw_forgetting(axes, method, offset, tasks)
        axes.set_ylabel("forgetting (points)")
        first = number * in_a_row
        _name_tasks(axes, first, names[first : first + in_a_row], in_a_row)
    low, high = rows[0].get_ylim()
    rows[0].set_ylim(min(low, -0.01), max(high, 0.01))  # no magnified zero
    rows[-1].set_xlabel("task, in the order of the stream")
    handles = dict(zip(*reversed(rows[0].get_legend_handles_labels()), strict=True))
    nothing = Line2D([], [], ls="none")
    add_legend(room, [handles.get(label, nothing) for label in labels], labels)
    return figure


def shown_tasks(methods: Sequence[Method]) -> list[int]:
    """Return the tasks that are shown, in order: all but the last; of many, those that lost most.

    What a method lost or gained of a task counts by its size, the largest of all methods.
    """
    num_tasks = len(methods[0].matrix) - 1
    most = np.zeros(max(num_tasks, 0))
    for method in methods:
        lost = _lost(method).mean(axis=0)
        most[: len(lost)] = np.maximum(most[: len(lost)], np.abs(np.nan_to_num(lost)))
    return changed_most(most)


def _name_tasks(axes: Axes, first: int, names: Sequence[str], in_a_row: int) -> None:
    """Show the tasks from ``first`` on, as wide as those of a full row."""
    axes.axhline(0, color=GREY, lw=1)
    for edge in np.arange(1, len(names)) - 0.5:
        axes.axvline(first + edge, color=GREY, lw=0.5, alpha=0.4)
    axes.set_xticks(range(first, first + len(names)), names, rotation=90, fontsize=8.5)
    axes.set_xlim(first - 0.5, first + in_a_row - 0.5)
    show_percent(axes)
    tidy(axes)


def _draw_forgetting(axes: Axes, method: Method, offset: float, tasks: Sequence[int]) -> None:
    """Draw a method's marks beside those of the others.

    Args:
        axes: where to draw; a task is one wide.
        method: what to draw.
        offset: of the marks from the middle of their task.
        tasks: the tasks that are shown, in the order of the axis.
    """
    lost = _lost(method)
    mean, half_width = mean_and_half_width(lost)
    known = [task for task in tasks if task < len(mean)]
    where, style = np.arange(len(known)) + offset, mark_style(method.index)
    axes.vlines(where, 0, mean[known], color=style["color"], lw=2, alpha=0.5)
    error = half_width[known] if len(method.counted) > 1 else None
    marks = axes.errorbar(where, mean[known], error, ms=5, lw=1, **style)
    marks.set_label(_label(method))


def _lost(method: Method) -> np.ndarray:
    """What a method forgot of the tasks that it has learned but the last, of each seed."""
    return np.array([forgetting_by_task(matrix) for matrix in method.matrices])


def _is_still(method: Method) -> bool:
    """Whether a method forgot exactly nothing of any task with any seed."""
    lost = _lost(method)
    return lost.size > 0 and not lost.any()


def _label(method: Method) -> str:
    """The method, and its mean over the tasks."""
    lost = _lost(method).mean(axis=0)
    whole = percent(float(lost.mean()) if len(lost) else None)
    told = "exactly 0 for each task" if _is_still(method) else f"{whole} on average"
    return in_lines(f"{full_name(method)}: {told}")
