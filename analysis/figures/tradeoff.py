"""Scores relative to full fine-tuning against parameters (Houlsby et al. 2019, figures 1, 3)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from analysis.figures.style import (
    NothingToDrawError,
    add_legend,
    complete_methods,
    heading,
    in_lines,
    label_log_axis,
    legend_height,
    legend_width,
    mark_style,
    num_seeds,
    panels_beside,
    show_percent,
    tidy,
)
from analysis.looks import look_of
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import over_seeds
from analysis.runs.methods import Method
from analysis.runs.values import trained_parameters
from stream.report.canvas import GREY, new_figure, plain

PERCENTILES = (20, 50, 80)
BASELINE = "independent"  # full fine-tuning of a copy per task, the paper's baseline


class Point(NamedTuple):
    """One setting of a learner.

    Attributes:
        size: parameters trained for a task, mean over the tasks.
        percentiles: `PERCENTILES` over the tasks of score minus baseline, float64 [3].
    """

    size: float
    percentiles: np.ndarray


def tradeoff(runs: Sequence[RecordedRun]) -> Figure:
    """Score relative to full fine-tuning against trained parameters (figures 1 and 3).

    Percentiles over the tasks of the difference of the scores at the end, each a mean over seeds;
    one line per learner, one point for each of its settings.
    """
    methods = complete_methods(runs)
    baselines = [method for method in methods if method.learner == BASELINE]
    if len(baselines) != 1:
        which = f"{len(baselines)} methods are" if baselines else "no complete run is"
        raise NothingToDrawError(f"{which} {BASELINE}, the full fine-tuning to compare with")
    families: defaultdict[str, list[Point]] = defaultdict(list)
    untrained = []
    for method in methods:
        if method.learner == BASELINE:
            continue
        if (size := _size(method)) > 0:
            found = relative_percentiles(method, baselines[0])
            families[method.learner].append(Point(size, found))
        else:
            untrained.append(method.label)
    if not families:
        raise NothingToDrawError(f"no run beside {BASELINE} trains parameters")
    percentiles = ", ".join(map(str, PERCENTILES))
    title = f"score minus full fine-tuning: percentiles {percentiles} over the tasks, "
    title += over_seeds(num_seeds(methods), "means")
    note = f"\nnot shown, trains none: {plain(', '.join(untrained), 80)}" if untrained else ""
    return draw_tradeoff(heading(runs, title), families, _size(baselines[0]), note)


def draw_tradeoff(
    title: str, families: Mapping[str, Sequence[Point]], full_size: float, note: str = ""
) -> Figure:
    """Draw points of learners against full fine-tuning, which is at 0.

    Args:
        title: the heading.
        families: by learner, one point for each of its settings.
        full_size: parameters that full fine-tuning trains for a task.
        note: follows the label of the x axis.
    """
    full = f"full fine-tuning of a copy per task ({BASELINE})"
    labels = [in_lines(plain(label, 160)) for label in (full, *families)]
    height = max(4.8, legend_height(labels)) + 1.4
    figure = new_figure(7.5 + legend_width(labels), height, title)
    ((axes,),), room = panels_beside(figure, (1, 1), labels)
    _draw_families(axes, families, full_size)
    label_log_axis(axes.xaxis, f"parameters trained for each task (mean){note}", EngFormatter())
    axes.set_ylabel("score minus full fine-tuning (percentage points)")
    show_percent(axes)
    tidy(axes)
    add_legend(room, axes.get_legend_handles_labels()[0], labels)
    return figure


def _draw_families(axes: Axes, families: Mapping[str, Sequence[Point]], full_size: float) -> None:
    """Draw the baseline at 0 and each learner's percentiles over its settings."""
    axes.axhline(0, color=GREY, ls="--", lw=1)
    axes.plot(full_size, 0, color=GREY, marker="*", ms=14, ls="none", label=BASELINE)
    for index, (learner, points) in enumerate(families.items()):
        style: dict[str, Any] = mark_style(index)
        dashes = look_of(index).dashes.matplotlib
        style |= {"linestyle": dashes, "capsize": 3, "elinewidth": 1}
        members = sorted(points, key=lambda point: point.size)
        sizes = [point.size for point in members]
        low, middle, high = np.transpose([point.percentiles for point in members])
        if len(members) > 1:
            axes.fill_between(sizes, low, high, color=style["color"], alpha=0.15, lw=0)
        bars = np.array([middle - low, high - middle])
        axes.errorbar(sizes, middle, bars, lw=2, ms=6, label=plain(learner), **style)


def _size(method: Method) -> float:
    """Parameters trained for a task, mean over the tasks; the same for every seed."""
    return trained_parameters(method.counted[0].record) or 0.0


def relative_percentiles(method: Method, baseline: Method) -> np.ndarray:
    """`PERCENTILES` over the tasks of score minus baseline, float64 [3]; seeds averaged first."""
    difference = method.matrix[-1] - baseline.matrix[-1]
    return np.percentile(difference, PERCENTILES)
