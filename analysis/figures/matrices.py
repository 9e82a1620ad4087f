"""Score matrices side by side: each run's; of many runs each method's mean."""

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from analysis.figures.style import full_name, heading
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import Method, build_methods
from analysis.runs.values import metric
from stream.formatting import percent
from stream.report.canvas import display_names, new_figure
from stream.report.many import is_many
from stream.report.plots import add_colour_bar, draw_matrix

MAX_PANELS = 9  # heat maps of single runs in one figure
FEW_TASKS, FEW_PANELS = 6, 6  # more of both are small maps, without numbers in their cells
SMALL = 2.8  # inches


def matrices(runs: Sequence[RecordedRun]) -> Figure:
    """Heat maps side by side with one colour bar: each run's; of many runs each method's mean."""
    shown = _panels(runs)
    names = display_names(runs[0].record)
    is_small = len(names) > FEW_TASKS and len(shown) > FEW_PANELS
    num_columns = min(len(shown), 3 if len(names) > FEW_TASKS and not is_small else 6)
    num_rows = math.ceil(len(shown) / num_columns)
    label_size = 0.4 if is_small else 0.08 * max(map(len, names))  # inches
    size = SMALL if is_small else max(_side(len(names)), 3.0)
    height = num_rows * (size + 1.2) + label_size + 1.2
    figure = new_figure(num_columns * (size + 0.2) + label_size + 2, height, heading(runs))
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    meshes = []
    for index, (title, scores) in enumerate(shown):
        axes = panels[index]
        meshes.append(draw_matrix(axes, scores, runs[0].record, is_small=is_small))
        lines = [line for part in title for line in textwrap.wrap(part, int(12.5 * size))]
        axes.set_title("\n".join(lines), loc="left", fontsize=10)
        is_lowest = index + num_columns >= len(shown)
        axes.tick_params(labelleft=index % num_columns == 0, labelbottom=is_lowest)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    negative = any((scores < 0).any() for _, scores in shown)
    add_colour_bar(figure, meshes[0], panels, negative=negative, shrink=1 / num_rows)
    note = "its number in the stream" if is_small else "accuracy where no metric is named"
    figure.supxlabel(f"score on task ({note})", fontsize=10)
    figure.supylabel("after learning task", fontsize=10)
    return figure


def _side(num_tasks: int) -> float:
    """Return the length of a panel's side in inches."""
    return 6.0 if is_many(num_tasks) else 0.32 * num_tasks


def _panels(runs: Sequence[RecordedRun]) -> list[tuple[tuple[str, str], np.ndarray]]:
    """Titles, of two parts, and T x T scores of what `matrices` draws."""
    methods = build_methods(runs)
    if len(runs) <= MAX_PANELS:
        return [
            (
                _title(method, run.record.metrics["average_score"], f"seed {run.record.seed}"),
                run.record.scores,
            )
            for method in methods
            for run in method.runs
        ]
    found = []
    for method in methods:
        number, score = len(method.counted), method.estimate(metric("average_score"))
        seed = method.counted[0].record.seed
        which = f"mean of {number} seeds" if number > 1 else f"seed {seed}"
        found.append((_title(method, score.mean, which), method.matrix))
    return found


def _title(method: Method, score: float | None, which: str) -> tuple[str, str]:
    """Return the method, and its average score with what that is of."""
    return full_name(method), f"average score {percent(score)}, {which}"
