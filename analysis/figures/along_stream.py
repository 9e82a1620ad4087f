"""Figures of methods along one stream: what was reached and stored.

T is the number of tasks.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis.figures.style import (
    heading,
    in_lines,
    label_log_axis,
    legend_height,
    legend_label,
    line_style,
    num_seeds,
    show_percent,
    tidy,
)
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import mean_and_half_width, over_seeds
from analysis.runs.methods import Method, build_methods
from stream.formatting import DASH, TIMES, count, percent
from stream.report.canvas import display_names, name_tasks, new_figure, plain, running_average
from stream.report.many import AXIS_NAMES, inches, is_many, round_step

LONGEST = 1.05  # end of an axis of scores, which lie in [-1, 1]; intervals can go beyond


def growth(runs: Sequence[RecordedRun]) -> Figure:
    """Stored parameters of all methods over the stream, beside a fine-tuned copy for each task."""
    methods = build_methods(runs)
    names = display_names(runs[0].record)
    least = 5.6 if is_many(len(names)) else 4.6
    height = least + 0.08 * max(map(len, names)) + legend_height(methods)
    title = "parameters that all tasks so far need, replayed examples not counted"
    figure = new_figure(max(inches(len(names), 0.36) + 2, 8), height, heading(runs, title))
    axes = figure.add_subplot()
    copies = np.arange(1, len(names) + 1)
    label = f"a full copy per task: {len(names)}"
    axes.plot(copies, copies, color="black", ls=(0, (1, 1.5)), zorder=3, label=label)
    sizes = np.linspace(9, 4, len(methods))  # of marks: equal lines show inside each other
    for method, size in zip(methods, sizes, strict=True):
        ledger = method.counted[0].record.ledger  # the same for every seed
        multiples = np.array([row.stored_parameters for row in ledger.tasks], dtype=float)
        multiples[multiples <= 0] = np.nan  # a logarithm has no place for nothing
        multiples /= ledger.base_parameters
        end = f"{multiples[-1]:.3g}" if np.any(multiples[-1:] > 0) else "no parameters"
        label, where = f"{legend_label(method)}: {end}", copies[: len(multiples)]
        style = {**line_style(method), "markevery": _every(len(names))}
        axes.plot(where, multiples, lw=1.8, ms=size, label=label, **style)
    axes.set_xlabel("after learning task")
    label = f"stored ({TIMES} the pretrained encoder)"
    label_log_axis(axes.yaxis, label, FuncFormatter(lambda value, _: f"{value:g}{TIMES}"))
    name_tasks(axes.xaxis, names, 1)
    tidy(axes)
    title = f"{TIMES} the encoder at the end of the stream"
    figure.legend(loc="outside lower left", frameon=False, alignment="left", title=title)
    return figure


def average(runs: Sequence[RecordedRun]) -> Figure:
    """The average over the tasks learned so far, one line per method, with its interval."""
    names = display_names(runs[0].record)
    methods = build_methods(runs)
    height = 5.2 + 0.08 * max(map(len, names)) + legend_height(methods)
    title = f"average so far, {over_seeds(num_seeds(methods))}"
    figure = new_figure(max(inches(len(names), 0.36) + 2, 8), height, heading(runs, title))
    axes = figure.add_subplot()
    numbers = np.arange(1, len(names) + 1)
    for method in methods:
        line, half_width = mean_and_half_width(running_averages(method))
        style = {**line_style(method), "markevery": _every(len(names))}
        axes.plot(numbers, line, lw=2, ms=4, label=_average_label(method, line), **style)
        if len(method.counted) > 1:
            area = {"color": style["color"], "alpha": 0.2, "lw": 0}
            axes.fill_between(numbers, line - half_width, line + half_width, **area)
    name_tasks(axes.xaxis, names, 1)
    show_percent(axes)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -LONGEST), min(high, LONGEST))
    axes.set(xlabel="after learning task", ylabel="average score on the tasks learned so far (%)")
    tidy(axes)
    figure.legend(loc="outside lower left", frameon=False, alignment="left")
    return figure


def _every(num_tasks: int) -> int:
    """Return how many tasks lie between two marks of a line."""
    return round_step(num_tasks, AXIS_NAMES) if is_many(num_tasks) else 1


def running_averages(method: Method) -> np.ndarray:
    """The averages over tasks 1..k after learning task k of each seed, float64 [n, T]."""
    return np.array([running_average(run.record) for run in method.counted])


def _average_label(method: Method, line: np.ndarray) -> str:
    """The method, how many seeds its line stands for, and where it ends."""
    measured, number = line[~np.isnan(line)], len(method.counted)
    end = f"{percent(measured[-1] if len(measured) else None)} %".replace(f"{DASH} %", DASH)
    note = f", {count(number, 'seed')}" if number > 1 else ""
    if not method.is_complete:
        note = f", partial: {count(len(measured), 'task')}"
    return in_lines(f"{plain(method.label, 160)}: {end} at the end{note}")
