"""Average scores at the end against what they take: time, operations, parameters."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter

from analysis.figures.style import (
    complete_methods,
    heading,
    label_log_axis,
    legend_height,
    legend_label,
    mark_style,
    num_seeds,
    show_percent,
    tidy,
)
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import over_seeds
from analysis.runs.methods import Method
from analysis.runs.pareto import pareto_front
from analysis.runs.values import (
    Value,
    metric,
    total_multiple,
    train_flops,
    train_s,
    trained_parameters,
)
from stream.formatting import TIMES, percent
from stream.report.canvas import new_figure, plain

FRONT = "Pareto front: no other learner of a stream scores as high with as few"
NOTE_LINE = 62  # characters below a panel
MOST_BELOW = 20  # methods of the legend below each other
Form = Callable[[], Formatter]


@dataclass(frozen=True)
class Panel:
    """What stands on an x axis: how to read it from a record, its label, how ticks are written."""

    read: Value
    label: str
    form: Form
    has_front: bool = False


def _times(value: float, _: object) -> str:
    return f"{value:g}{TIMES}"


TRAINED = Panel(
    trained_parameters, "parameters trained for a task (mean)", EngFormatter, has_front=True
)
STORED = Panel(
    total_multiple,
    f"stored for all tasks ({TIMES} the encoder)",
    lambda: FuncFormatter(_times),
    has_front=True,
)


def cost(runs: Sequence[RecordedRun]) -> Figure:
    """Score against seconds of learning, and against operations where they were counted."""
    devices = plain(", ".join(sorted({run.record.computed_on for run in runs})))
    seconds = f"seconds of learning, whole stream ({devices})"
    panels = [Panel(train_s, seconds, lambda: FuncFormatter(lambda value, _: f"{value:g}"))]
    if any(train_flops(run.record) for run in runs):
        label = "floating-point operations of learning, whole stream"
        panels.append(Panel(train_flops, label, EngFormatter))
    return _score_against(runs, panels, "mean cost against score")


def parameters(runs: Sequence[RecordedRun]) -> Figure:
    """Score against the parameters trained for a task, and against all that are stored."""
    return _score_against(runs, [TRAINED, STORED], "parameters against score")


def _score_against(runs: Sequence[RecordedRun], panels: Sequence[Panel], what: str) -> Figure:
    """Draw a panel for each measure, one mark per method with a complete run.

    Args:
        runs: runs of one stream.
        panels: the measures.
        what: the figure shows, for its heading.
    """
    methods = complete_methods(runs)
    title = f"{what}, {over_seeds(num_seeds(methods))}"
    columns = -(-len(methods) // MOST_BELOW)
    height = 5.4 + legend_height(methods) / columns
    figure = new_figure(5.2 * len(panels) + 2.5, height, heading(runs, title))
    axes_list = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(axes_list, panels, strict=True):
        missing = [m.label for m in methods if not _draw_method(axes, m, panel.read)]
        notes = [f"none or not recorded: {', '.join(missing)}"] * bool(missing)
        if panel.has_front:
            notes.append(_draw_front(axes, methods, panel.read))
        lines = [line for note in notes for line in textwrap.wrap(plain(note, 999), NOTE_LINE)]
        label_log_axis(axes.xaxis, "\n".join([panel.label, *lines]), panel.form())
        tidy(axes, "both")
    axes_list[0].set_ylabel("average score at the end (%)")
    show_percent(axes_list[0])
    labelled = [axes.get_legend_handles_labels() for axes in axes_list]
    by_label = {label: handle for found in labelled for handle, label in zip(*found, strict=True)}
    handles, labels = list(by_label.values()), list(by_label)
    place: Any = "outside lower left"
    figure.legend(handles, labels, loc=place, frameon=False, alignment="left", ncols=columns)
    return figure


def _draw_front(axes: Axes, methods: Sequence[Method], read: Value) -> str:
    """Draw the steps of the Pareto front of what sees one task after another.

    Args:
        axes: where to draw.
        methods: those of the figure.
        read: the measure.

    Returns:
        The front in words. A method that takes nothing is on no logarithmic axis, but named.
    """
    score = metric("average_score")
    points = [(m.estimate(read).mean, m.estimate(score).mean) for m in methods if m.is_streamed]
    streamed = [method for method in methods if method.is_streamed]
    front = pareto_front(points)
    steps = sorted({points[n] for n in front if points[n][0] > 0})
    if len(steps) > 1:
        style = {"drawstyle": "steps-post", "color": "black", "lw": 1, "ls": ":", "zorder": 1}
        axes.plot(*zip(*steps, strict=True), label=FRONT, **style)
    names = "; ".join(streamed[n].label for n in front)
    return f"Pareto front by the means: {names or 'no method'}"


def _draw_method(axes: Axes, method: Method, read: Value) -> bool:
    """Draw a method's mean measure and its score, with the interval of the score.

    Args:
        axes: where to draw.
        method: what to draw.
        read: the measure.

    Returns:
        False where a run has no such measure, or zero of it: then nothing is drawn.
    """
    spent, score = method.estimate(read), method.estimate(metric("average_score"))
    if spent.n < len(method.counted) or not score.n or spent.mean <= 0:
        return False
    error = score.half_width if score.n > 1 else None
    at_once = "" if method.is_streamed else ", all tasks at once, not a stream"
    label = f"{legend_label(method)}{at_once}: {percent(score.mean)} %"
    style = mark_style(method.index)
    axes.errorbar(spent.mean, score.mean, error, ms=7, lw=1, label=label, **style)
    return True
