"""Average scores at the end against what they take: time, operations, parameters."""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter

from analysis.figures.style import (
    add_legend,
    complete_methods,
    far_below,
    full_name,
    heading,
    in_lines,
    label_log_axis,
    legend_height,
    legend_width,
    mark_style,
    num_seeds,
    panels_beside,
    show_percent,
    show_possible,
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

FRONT = in_lines("Pareto front: no other learner of a stream scores as high with as few")
NOTE_LINE = 56  # characters below a panel
PANEL = 5.0  # inches
LEAST = 0.001  # of what is stored, as a multiple of the encoder
Form = Callable[[], Formatter]


@dataclass(frozen=True)
class Panel:
    """What stands on an x axis: how to read it from a record, its label, how ticks are written."""

    read: Value
    label: str
    form: Form
    has_front: bool = False


def _times(value: float, _: object) -> str:
    return f"{value:.3g}{TIMES}" if value >= LEAST else f"< {LEAST}{TIMES}"


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
    return _score_against(runs, panels, "cost against score")


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
    methods = sorted(complete_methods(runs), key=_score, reverse=True)
    labels = [_label(method) for method in methods]
    title = f"{what}, {over_seeds(num_seeds(methods))}"
    listed = [*labels, FRONT] if any(panel.has_front for panel in panels) else labels
    height = max(4.6, legend_height(listed)) + 1.6
    width = PANEL * len(panels) + 0.5 + legend_width(listed)
    figure = new_figure(width, height, heading(runs, title))
    (axes_list,), room = panels_beside(figure, (1, len(panels)), listed)
    for axes, panel in zip(axes_list, panels, strict=True):
        _draw_panel(axes, panel, methods)
    axes_list[0].set_ylabel("average score at the end (%)")
    show_percent(axes_list[0])
    show_possible(axes_list[0])
    labelled = [axes.get_legend_handles_labels() for axes in axes_list]
    handles = {label: handle for found in labelled for handle, label in zip(*found, strict=True)}
    shown = [label for label in listed if label != FRONT or label in handles]
    nothing = Line2D([], [], ls="none")  # of a method that is on no axis
    add_legend(room, [handles.get(label, nothing) for label in shown], shown)
    return figure


def _score(method: Method) -> float:
    return method.estimate(metric("average_score")).mean


def _label(method: Method) -> str:
    """The method and its score; which learn all tasks at once."""
    at_once = "" if method.is_streamed else ", all tasks at once, not a stream"
    return in_lines(f"{full_name(method)}{at_once}: {percent(_score(method))}")


def _draw_panel(axes: Axes, panel: Panel, methods: Sequence[Method]) -> None:
    """Draw the marks of one measure and name below it who has none on the axis.

    Args:
        axes: where to draw.
        panel: the measure.
        methods: those of the figure, in order of their scores.
    """
    axes.set_xscale("log")
    spent = [method.estimate(panel.read).mean for method in methods]
    is_far = far_below([0.0 if math.isnan(value) else value for value in spent])
    missing = [
        method.label
        for number, method in enumerate(methods)
        if number not in is_far and not _draw_method(axes, method, panel.read)
    ]
    notes = [f"none or not recorded: {', '.join(missing)}"] * bool(missing)
    if is_far:
        axes.set_xlim(axes.get_xlim())  # the front does not go there, either
        form = panel.form()
        told = [f"{methods[n].label} ({form(spent[n], None)})" for n in sorted(is_far)]
        notes.append(f"far left of this axis: {', '.join(told)}")
    if panel.has_front:
        notes.append(_draw_front(axes, methods, panel.read))
    lines = [line for note in notes for line in textwrap.wrap(plain(note, 999), NOTE_LINE)]
    label_log_axis(axes.xaxis, "\n".join([panel.label, *lines]), panel.form())
    tidy(axes, "both")


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
    style = mark_style(method.index)
    axes.errorbar(spent.mean, score.mean, error, ms=7, lw=1, label=_label(method), **style)
    return True
