"""Figures of methods along one stream: what was reached and stored.

T is the number of tasks.
"""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis.figures.line_ends import LineEnd, beside, height_of, name_ends, width_of
from analysis.figures.style import (
    add_notes,
    far_below,
    heading,
    label_log_axis,
    line_style,
    num_seeds,
    partial_note,
    show_percent,
    show_possible,
    tidy,
)
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import INTERVAL, mean_and_half_width, over_seeds
from analysis.runs.methods import Method, build_methods
from analysis.runs.names import method_names
from stream.formatting import TIMES, count, percent
from stream.report.canvas import display_names, name_tasks, new_figure, plain, running_average
from stream.report.many import AXIS_NAMES, inches, is_many, round_step

FEW = 4  # methods whose bands can be told apart, however wide they are
A_TASK = 0.36  # inches
LEAST_MULTIPLE = 0.001


def growth(runs: Sequence[RecordedRun]) -> Figure:
    """Stored parameters of all methods over the stream, beside a fine-tuned copy for each task."""
    methods, names = build_methods(runs), display_names(runs[0].record)
    copies = np.arange(1, len(names) + 1)
    lines = [_multiples(method) for method in methods]
    ends = [float(line[-1]) if len(line) else math.nan for line in lines]
    below = far_below([*ends, len(names)])
    texts = [
        _growth_text(*pair, n in below) for n, pair in enumerate(zip(methods, ends, strict=True))
    ]
    texts.append(f"a full copy per task: {len(names)}{TIMES}")
    what = "parameters that all tasks so far need, replayed examples not counted"
    figure, axes, room = _canvas(runs, what, texts)
    dotted = {"color": "black", "ls": (0, (1, 1.5)), "zorder": 3, "marker": "None"}
    axes.plot(copies, copies, label=texts[-1], **dotted)
    found = [LineEnd(len(names), len(names), texts[-1], dotted)]
    sizes = np.linspace(9, 4, len(methods))  # of marks: equal lines show inside each other
    for number, (method, line, text) in enumerate(zip(methods, lines, texts, strict=False)):
        style = {**line_style(method), "markevery": _every(len(names))}
        is_drawn = number not in below
        if is_drawn:
            axes.plot(copies[: len(line)], line, lw=1.8, ms=sizes[number], label=text, **style)
        last = ends[number] if is_drawn else math.nan
        found.append(LineEnd(len(line), last, text, style))
    label = f"stored ({TIMES} the pretrained encoder)"
    label_log_axis(axes.yaxis, label, FuncFormatter(lambda value, _: f"{value:g}{TIMES}"))
    _finish(axes, room, names, found)
    return figure


def _multiples(method: Method) -> np.ndarray:
    """Return what is stored after each task over the encoder, NaN for nothing; any seed's."""
    ledger = method.counted[0].record.ledger  # the same for every seed
    stored = np.array([row.stored_parameters for row in ledger.tasks], dtype=float)
    return np.where(stored > 0, stored, np.nan) / ledger.base_parameters


def _growth_text(method: Method, end: float, is_below: bool) -> str:  # noqa: FBT001
    known = "no parameters" if math.isnan(end) else f"{_multiple(end)}{TIMES}"
    note = ", below this axis" if is_below else ""
    return f"{plain(method.label, 160)}: {known}{note}{partial_note(method)}"


def _multiple(value: float) -> str:
    """Return three digits of a multiple, or that it is next to nothing."""
    return f"{value:.3g}" if value >= LEAST_MULTIPLE else f"< {LEAST_MULTIPLE}"


def average(runs: Sequence[RecordedRun]) -> Figure:
    """The average over the tasks learned so far, one line per method, with its interval.

    Intervals are bands, unless so many are so wide that they would hide the lines: then numbers.
    """
    names, methods = display_names(runs[0].record), build_methods(runs)
    stats = [mean_and_half_width(running_averages(method)) for method in methods]
    is_uneven = len(set(num_seeds(methods))) > 1
    texts = [
        _average_text(method, *found) + f", {count(len(method.counted), 'seed')}" * is_uneven
        for method, found in zip(methods, stats, strict=True)
    ]
    has_bands = are_bands_clear(stats)
    estimates = "mean and" if has_bands else "mean ± half of the"
    what = f"average so far, {over_seeds(num_seeds(methods), f'{estimates} {INTERVAL}')}"
    figure, axes, room = _canvas(runs, what, texts)
    numbers, ends = np.arange(1, len(names) + 1), []
    for method, text, (line, half_width) in zip(methods, texts, stats, strict=True):
        style = {**line_style(method), "markevery": _every(len(names))}
        axes.plot(numbers, line, lw=2, ms=5, label=text, **style)
        if len(method.counted) > 1 and has_bands:
            _draw_band(axes, line, half_width, style["color"])
        known = np.flatnonzero(~np.isnan(line))
        last = known[-1] if len(known) else 0
        ends.append(LineEnd(float(numbers[last]), float(line[last]), text, style))
    show_percent(axes)
    show_possible(axes)
    axes.set_ylabel("average score on the tasks learned so far (%)")
    _finish(axes, room, names, ends)
    return figure


def _draw_band(axes: Axes, line: np.ndarray, half_width: np.ndarray, colour: str) -> None:
    """Draw the intervals of a line; of a single task, which has no width, as a bar.

    Args:
        axes: where to draw.
        line: means, float64 [T].
        half_width: of their intervals, float64 [T].
        colour: of the line.
    """
    numbers = np.arange(1, len(line) + 1)
    if len(line) == 1:
        axes.errorbar(numbers, line, half_width, color=colour, capsize=2.5, lw=1)
    else:
        area = {"color": colour, "alpha": 0.2, "lw": 0}
        axes.fill_between(numbers, line - half_width, line + half_width, **area)


def _canvas(
    runs: Sequence[RecordedRun], what: str, texts: Sequence[str]
) -> tuple[Figure, Axes, Axes]:
    """Return a figure with axes of the tasks, and room for the names of lines beside them.

    Args:
        runs: runs of one stream.
        what: the figure shows.
        texts: the names of lines.
    """
    names = display_names(runs[0].record)
    wide = max(inches(len(names), A_TASK) + 0.8, 5.0)
    notes = method_names(runs).notes
    height = max(3.6, height_of(len(texts))) + 0.08 * max(map(len, names)) + 1.6 + 0.2 * len(notes)
    figure = new_figure(wide + width_of(texts), height, heading(runs, what))
    add_notes(figure, notes)
    return figure, *beside(figure, texts)


def _finish(axes: Axes, room: Axes, names: Sequence[str], ends: Sequence[LineEnd]) -> None:
    """Name the tasks at the axis and the lines at their ends.

    Args:
        axes: with all lines.
        room: for the names of lines.
        names: of the tasks.
        ends: of the lines.
    """
    name_tasks(axes.xaxis, names, 1)
    axes.set_xlabel("after learning task")
    tidy(axes)
    name_ends(axes, room, ends)


def are_bands_clear(stats: Sequence[tuple[np.ndarray, np.ndarray]]) -> bool:
    """Return whether bands leave the lines to be seen: few, or narrow beside what lines span."""
    if len(stats) <= FEW:
        return True
    lines = np.concatenate([line[~np.isnan(line)] for line, _ in stats])
    widths = [2 * np.median(half[~np.isnan(half)]) for _, half in stats if not np.isnan(half).all()]
    return not len(lines) or sum(widths) <= np.ptp(lines)


def _every(num_tasks: int) -> int:
    """Return how many tasks lie between two marks of a line."""
    return round_step(num_tasks, AXIS_NAMES) if is_many(num_tasks) else 1


def running_averages(method: Method) -> np.ndarray:
    """The averages over tasks 1..k after learning task k of each seed, float64 [n, T]."""
    return np.array([running_average(run.record) for run in method.counted])


def _average_text(method: Method, line: np.ndarray, half_width: np.ndarray) -> str:
    """The method, where its line ends with half of the interval, and what is missing of it.

    Args:
        method: of the line.
        line: means over seeds, float64 [T].
        half_width: of their intervals, float64 [T].
    """
    known = np.flatnonzero(~np.isnan(line))
    last, number = known[-1] if len(known) else 0, len(method.counted)
    half = f" ± {percent(half_width[last])}" if number > 1 and len(known) else ""
    return f"{plain(method.label, 160)}: {percent(line[last])}{half}{partial_note(method)}"
