"""Score matrices side by side: each run's; of many runs each method's mean."""

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from analysis.figures.style import heading, legend_label
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import build_methods
from analysis.runs.names import method_labels
from analysis.runs.values import metric
from stream.formatting import percent
from stream.report.canvas import display_names, new_figure, plain
from stream.report.many import is_many
from stream.report.plots import add_colour_bar, draw_matrix

MAX_PANELS = 9  # heat maps of single runs in one figure


def matrices(runs: Sequence[RecordedRun]) -> Figure:
    """Heat maps side by side with one colour bar: each run's; of many runs each method's mean."""
    shown = _panels(runs)
    names = display_names(runs[0].record)
    num_columns = min(len(shown), 3 if len(names) > 6 else 6)
    num_rows = math.ceil(len(shown) / num_columns)
    label_size, size = 0.08 * max(map(len, names)), max(_side(len(names)), 3.0)  # inches
    height = num_rows * (size + label_size + 1.2) + 1.2
    figure = new_figure(num_columns * (size + 0.2) + label_size + 2, height, heading(runs))
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    meshes = []
    for index, (title, scores) in enumerate(shown):
        axes = panels[index]
        meshes.append(draw_matrix(axes, scores, runs[0].record))
        lines = textwrap.wrap(plain(title, 150), int(10 * size))
        axes.set_title("\n".join(lines), loc="left", fontsize=11)
        axes.tick_params(labelleft=index % num_columns == 0)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    negative = any((scores < 0).any() for _, scores in shown)
    add_colour_bar(figure, meshes[0], panels, negative=negative, shrink=1 / num_rows)
    figure.supxlabel("score on task (accuracy where no metric is named)", fontsize=10)
    figure.supylabel("after learning task", fontsize=10)
    return figure


def _side(num_tasks: int) -> float:
    """Return the length of a panel's side in inches."""
    return 6.0 if is_many(num_tasks) else 0.32 * num_tasks


def _panels(runs: Sequence[RecordedRun]) -> list[tuple[str, np.ndarray]]:
    """Titles and T x T scores of what `matrices` draws."""
    if len(runs) <= MAX_PANELS:
        labelled = sorted(
            zip(method_labels(runs), runs, strict=True), key=lambda pair: pair[1].record.seed
        )
        by_method = list(dict.fromkeys(method_labels(runs)))
        labelled.sort(key=lambda pair: by_method.index(pair[0]))  # stable: by seed within
        return [
            (
                f"{label}, seed {run.record.seed}: average score "
                f"{percent(run.record.metrics['average_score'])}",
                run.record.scores,
            )
            for label, run in labelled
        ]
    found = []
    for method in build_methods(runs):
        number, score = len(method.counted), method.estimate(metric("average_score"))
        seed = method.counted[0].record.seed
        which = f"mean of {number} seeds" if number > 1 else f"seed {seed}"
        title = f"{legend_label(method)}, {which}: average score {percent(score.mean)}"
        found.append((title, method.matrix))
    return found
