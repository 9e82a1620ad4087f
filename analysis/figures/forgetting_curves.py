"""Forgetting curves of all methods: what each task lost since it was learned, a panel a method."""

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from analysis.figures.style import NothingToDrawError, full_name, heading, num_seeds
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import over_seeds
from analysis.runs.methods import Method, build_methods
from stream.formatting import signed
from stream.metrics.changes import change_since_learned, last_changes
from stream.report.canvas import display_names, new_figure, task_ticks
from stream.report.forgetting_curves import CHANGE_LABEL, draw_changes, shades
from stream.report.many import is_many

WORST = 2  # tasks that a panel names
LINE = 46  # characters of a panel's title


def forgetting_curves(runs: Sequence[RecordedRun]) -> Figure:
    """Each task's score minus its score right after learning over the later tasks, seeds averaged.

    A panel a method, a curve a task, their mean in black; the tasks that lost most are named.
    """
    methods, names = build_methods(runs), display_names(runs[0].record)
    if len(names) == 1:
        raise NothingToDrawError("a stream of one task forgets nothing")
    num_columns = min(len(methods), 3)
    num_rows = math.ceil(len(methods) / num_columns)
    titles = [_title(method, names) for method in methods]
    lines = max(title.count("\n") + 1 for title in titles)
    means = over_seeds(num_seeds(methods), "means").replace(", no interval", "")
    title = f"score minus the score right after learning, {means}; black: mean of earlier tasks"
    height = max(num_rows * (2.0 + 0.17 * lines) + 1.9, 5.2)
    figure = new_figure(max(4.1 * num_columns + 0.6, 7), height, heading(runs, title))
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False, sharey=True).flat)
    for axes, method, words in zip(panels, methods, titles, strict=False):
        draw_changes(axes, changes_of(method))
        axes.set_title(words, loc="left", fontsize=9.5)
    for axes in panels[len(methods) :]:
        axes.set_visible(False)
    _add_order(figure, panels, len(names))
    figure.supxlabel("number of tasks learned", fontsize=10)
    figure.supylabel(CHANGE_LABEL, fontsize=10)
    return figure


def changes_of(method: Method) -> np.ndarray:
    """Mean over seeds of R[i, j] - R[j, j], float64 [T, T]; NaN above the diagonal."""
    return change_since_learned(method.matrices).mean(axis=0)


def _title(method: Method, names: Sequence[str]) -> str:
    """The method, and which tasks lost most."""
    last = last_changes(changes_of(method))
    worst = [task for task in np.argsort(last)[:WORST] if last[task] < 0]
    notes = [f"{names[task]} {signed(float(last[task]))}" for task in worst]
    notes = [f"most lost: {notes[0]}", *notes[1:]] if notes else ["no task is worse at the end"]
    texts = [full_name(method), *notes]
    return "\n".join(line for text in texts for line in textwrap.wrap(text, LINE))


def _add_order(figure: Figure, panels: Sequence[Axes], num_tasks: int) -> None:
    """The scale of colours: which number in the stream a curve's task has."""
    norm = BoundaryNorm(np.arange(num_tasks + 1) + 0.5, num_tasks)
    mappable = ScalarMappable(norm, ListedColormap(shades(num_tasks)))
    bar = figure.colorbar(mappable, ax=list(panels), aspect=40, pad=0.01)
    step = max(1, num_tasks // 6)
    few = list(range(1, num_tasks + 1, step))
    bar.set_ticks(task_ticks(num_tasks) if is_many(num_tasks) else few)
    bar.minorticks_off()
    bar.set_label("curve of task number (in the order of the stream)")
