"""Scores without the adapters of each range of layers, one heat map per task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis.figures.style import panel_grid
from stream.formatting import percent
from stream.record.run_record import RunRecord
from stream.report.canvas import new_figure, plain, stream_name

if TYPE_CHECKING:
    from stream.run.layer_ablation import LayerRangeScores

LEAST_SPAN = 0.05  # of the colours: five points, so that the numbers beside them differ


def layer_range_figure(records: Sequence[RunRecord], found: "Sequence[LayerRangeScores]") -> Figure:
    """Draw one heat map per task: first removed layer down, last removed layer across.

    Args:
        records: the runs, which differ in their seeds.
        found: the scores of each task; of several runs their mean.
    """
    record = records[0]
    layers = len(found[0].without)
    size = max(0.5 * layers, 3.0)  # inches
    seeds = f"seed {record.seed}" if len(records) == 1 else f"mean of {len(records)} seeds"
    heading = (
        f"{plain(record.learner)} on {stream_name(record)}, {plain(record.backbone)}, "
        f"{seeds}, {found[0].split} scores\n"
        "trained adapters removed from a range of layers, nothing learned again"
    )
    rows, columns = panel_grid(len(found))
    figure = new_figure((size + 2.2) * columns, (size + 1.4) * rows + 0.8, heading)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    titles = dict(zip(record.order, record.titles, strict=True))
    metrics = dict(zip(record.order, record.metric_names, strict=True))
    for axes, scores in zip(panels, found, strict=False):
        metric = metrics[scores.task].replace("_", " ")
        _draw(figure, axes, f"{plain(titles[scores.task])}, {plain(metric)}", scores)
    for axes in panels[len(found) :]:
        axes.set_visible(False)
    return figure


def _draw(figure: Figure, axes: Axes, title: str, scores: "LayerRangeScores") -> None:
    """Draw the ranges of one task, with the majority line in the colour bar.

    Args:
        figure: the figure to draw in.
        axes: its panel.
        title: the task's.
        scores: of the task.
    """
    low = min(float(np.nanmin(scores.without)), scores.majority)
    high = max(float(np.nanmax(scores.without)), scores.full, scores.majority)
    high = max(high, low + LEAST_SPAN)
    mesh = axes.imshow(scores.without, vmin=low, vmax=high, aspect="auto")
    middle = (low + high) / 2
    for first, row in enumerate(scores.without):
        for last in range(first, len(row)):
            colour = "white" if row[last] < middle else "black"
            label = percent(row[last])
            axes.text(last, first, label, ha="center", va="center", color=colour, size=8)
    numbers = range(len(scores.without))
    axes.set_xticks(numbers)
    axes.set_yticks(numbers)
    axes.set(xlabel="last removed layer", ylabel="first removed layer")
    note = f"all adapters {percent(scores.full)}, majority {percent(scores.majority)}"
    axes.set_title(f"{title}\n{note}", loc="left", size=10)
    bar = figure.colorbar(mesh, ax=axes, shrink=0.85)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda s, _: percent(s, 0)))
    bar.ax.axhline(scores.majority, color="#D55E00", lw=3)
    bar.set_label("score (%); orange: always the most frequent label")
