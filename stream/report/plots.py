"""Figures of one run, drawn from its record.

T is the number of tasks. Scores are fractions, shown as percent; undefined shows as a dash.
"""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stream.formatting import MINUS, TIMES, percent, signed, storage
from stream.metrics.changes import change_since_learned, last_changes
from stream.record.run_record import LedgerRecord, RunRecord
from stream.report.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SCORE_LABEL,
    all_encoded,
    display_names,
    headline,
    name_tasks,
    new_figure,
    plain,
    running_average,
    task_ticks,
)
from stream.report.chance import chance_scores
from stream.report.forgetting_curves import forgetting_curves
from stream.report.many import changed_most, inches, is_many, thinned


def column_names(record: RunRecord) -> list[str]:
    """The display names, with the metric of each task where it is not accuracy."""
    pairs = zip(display_names(record), record.metric_names, strict=True)
    return [n if m == "accuracy" else f"{n} ({plain(m.replace('_', ' '))})" for n, m in pairs]


def draw_matrix(
    axes: Axes, scores: np.ndarray, record: RunRecord, *, is_small: bool = False
) -> QuadMesh:
    """Draw scores as coloured cells, of few tasks with their percent; negative ones are orange.

    Args:
        axes: where to draw.
        scores: float64 [T, T], NaN where nothing was evaluated.
        record: a run of the stream, which names the tasks.
        is_small: whether only colours can be seen; tasks have their numbers for names.

    Returns:
        The cells, for `add_colour_bar`.
    """
    names = display_names(record)
    colours = matplotlib.colormaps["viridis"].with_extremes(under=ORANGE)
    masked = np.ma.masked_invalid(scores)
    many = is_many(len(names))
    edges: dict[str, Any] = {"rasterized": True} if many else {"edgecolors": "white"}
    if not many:
        edges["lw"] = 0.2 if is_small else 0.6
    mesh = axes.pcolormesh(masked, cmap=colours, vmin=0, vmax=1, **edges)
    if is_small:
        ticks = task_ticks(len(names))
        axes.set(xticks=np.array(ticks) - 0.5, yticks=np.array(ticks) - 0.5)
        axes.set(xticklabels=ticks, yticklabels=ticks)
    else:
        if not many:
            _write_scores(axes, scores)
        name_tasks(axes.xaxis, column_names(record), 0.5)
        name_tasks(axes.yaxis, names, 0.5)
    axes.set_ylim(len(names), 0)  # the first row on top
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def _write_scores(axes: Axes, scores: np.ndarray) -> None:
    """Write the percent of each score into its cell."""
    for (row, column), score in np.ndenumerate(scores):
        if column <= row or not np.isnan(score):
            colour = GREY if np.isnan(score) else "black" if score > 0.45 else "white"
            text = axes.text(column + 0.5, row + 0.5, percent(score, 0), color=colour, size=8)
            text.set(ha="center", va="center")


def add_colour_bar(
    figure: Figure, mesh: QuadMesh, axes: Any, *, negative: bool, shrink: float = 1.0
) -> None:
    """Add the scale of `draw_matrix`.

    Args:
        figure: the figure to add it to.
        mesh: the cells.
        axes: the panels beside which it stands.
        negative: whether some scores are negative: it shows their colour, too.
        shrink: its length as a fraction of the panels' height.
    """
    ends = "min" if negative else "neither"
    bar = figure.colorbar(mesh, ax=axes, extend=ends, aspect=40 * shrink, shrink=shrink)
    bar.set_ticks([0, 0.2, 0.4, 0.6, 0.8, 1], labels=["0", "20", "40", "60", "80", "100"])
    bar.set_label(SCORE_LABEL + ("; orange: below 0" if negative else ""))


def matrix_heatmap(record: RunRecord) -> Figure:
    """Heat map of the matrix: rows "after learning task i", columns "score on task j"."""
    left = 0.08 * max(map(len, display_names(record)))
    below = 0.08 * max(map(len, column_names(record)))
    size = max(inches(len(record.order), 0.36), 3.2)  # all in inches
    figure = new_figure(size + left + 1.6, size + below + 1.7, headline(record))
    axes = figure.add_subplot()
    mesh = draw_matrix(axes, record.scores, record)
    label = "score on task (accuracy where no metric is named)"
    axes.set(xlabel=label, ylabel="after learning task")
    add_colour_bar(figure, mesh, axes, negative=bool((record.scores < 0).any()))
    return figure


def score_lines(record: RunRecord) -> Figure:
    """The average over the stream on top, then a small panel for each task, or for some of many."""
    scores, names = record.scores, display_names(record)
    listed = changed_most(last_changes(change_since_learned(scores)))
    width = max(2.3, max(map(len, names)) * 0.07 + 0.2)  # inches a panel, for its whole title
    num_columns = min(math.ceil(math.sqrt(len(listed))), max(1, int(16 / width)))
    num_rows = math.ceil(len(listed) / num_columns)
    figure = new_figure(max(width * num_columns + 0.6, 7), 1.5 * num_rows + 3.6, headline(record))
    grid = figure.add_gridspec(num_rows + 1, num_columns, height_ratios=[1.9] + [1] * num_rows)
    top = figure.add_subplot(grid[0, :])
    _draw_average(top, scores, running_average(record))
    untrained, chance = record.baseline or [math.nan] * len(names), chance_scores(record)
    for panel, task in enumerate(listed):
        row, column = divmod(panel, num_columns)
        axes = figure.add_subplot(grid[row + 1, column], sharex=top, sharey=top)
        _draw_task(axes, scores[task:, task], len(names), names[task])
        _draw_references(axes, untrained[task], chance[task])
        axes.tick_params(labelleft=column == 0, labelbottom=panel + num_columns >= len(listed))
    top.set_xticks(task_ticks(len(names)))
    lowest = float(np.nanmin(scores, initial=0.0)) - 0.05
    top.set(xlim=(0.5, len(names) + 0.5), ylim=(lowest, 1.05))
    shown = [score for score in (-1, -0.5, 0, 0.5, 1) if score >= lowest]
    top.set_yticks(shown, [percent(score, 0) for score in shown])
    figure.supylabel(SCORE_LABEL, fontsize=10)
    notes = ["number of tasks learned"]
    if len(listed) < len(names):
        of_all = f"the {len(listed)} of {len(names):,} tasks whose score changed most"
        notes.append(f"small panels: {of_all}")
    notes += ["dotted: score before any learning"] * bool(record.baseline)
    notes += ["dashed: guessing among the labels"] * (not np.isnan(chance).all())
    figure.supxlabel("; ".join(notes), fontsize=10)
    return figure


def _tidy(axes: Axes, title: str, size: float = 10, pad: float = 6) -> None:
    axes.set_title(title, loc="left", fontsize=size, pad=pad)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_average(axes: Axes, scores: np.ndarray, averages: np.ndarray) -> None:
    numbers = np.arange(1, len(averages) + 1)
    if is_many(len(averages)):
        low, high = _middle(scores)
        axes.fill_between(numbers, low, high, color=GREY, alpha=0.3, lw=0)
        axes.plot(numbers, averages, color=BLUE, lw=2)
        _tidy(axes, "average over the tasks learned so far (grey: eight tasks of ten)")
        return
    axes.plot(numbers, scores, color=GREY, alpha=0.4, lw=0.8)
    axes.plot(numbers, averages, color=BLUE, lw=2.5, marker="o", ms=4)
    _tidy(axes, "average over the tasks learned so far (grey: each task)")


def _middle(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds between which eight of ten scores of a row are; NaN of an empty row."""
    bounds = np.full((2, len(scores)), np.nan)
    for number, row in enumerate(scores):
        known = row[~np.isnan(row)]
        if len(known):
            bounds[:, number] = np.quantile(known, (0.1, 0.9))
    return bounds[0], bounds[1]


def _draw_references(axes: Axes, untrained: float, chance: float) -> None:
    """The score before any learning (dotted) and that of guessing (dashed); NaN: no line."""
    for level, style in ((untrained, ":"), (chance, (0, (6, 4)))):
        if not math.isnan(level):
            axes.axhline(level, color=GREY, lw=1, ls=style)


def _draw_task(axes: Axes, scores: np.ndarray, num_tasks: int, name: str) -> None:
    """One task since it was learned: its score (blue), the loss (orange) or gain (green) since.

    Args:
        axes: where to draw.
        scores: since the task was learned.
        num_tasks: of the stream.
        name: the title.
    """
    rows, first = thinned(len(scores)), scores[0]
    numbers, scores = rows + num_tasks - len(scores) + 1, scores[rows]
    for bound, colour in ((np.minimum, ORANGE), (np.maximum, GREEN)):
        axes.fill_between(numbers, first, bound(scores, first), color=colour, alpha=0.35, lw=0)
    axes.plot(numbers, scores, color=BLUE, lw=1.5, marker="o", ms=3, markevery=[0])
    note, colour, measured = "not evaluated", GREY, scores[~np.isnan(scores)]
    if len(measured):
        change = signed(measured[-1] - first)
        note = f"{percent(first)} → {percent(measured[-1])} ({change})"
        colour = ORANGE if change.startswith(MINUS) else "#444444"
    axes.text(0, 1.06, note, transform=axes.transAxes, fontsize=8, color=colour)
    axes.tick_params(labelsize=7.5)
    _tidy(axes, name, size=8.5, pad=14)


def parameter_growth(record: RunRecord) -> Figure:
    """By task: stored parameters as a multiple of the base, trained ones, and any buffer."""
    tasks, names = record.ledger.tasks, display_names(record)
    buffers = [row.buffer_examples for row in tasks]
    heights = [3, 1.2, 1.2] if any(buffers) else [3, 1.2]
    height = 1.3 * sum(heights) + 0.08 * max(map(len, names)) + 1.6  # inches
    figure = new_figure(max(inches(len(names), 0.36) + 2, 7), height, headline(record))
    panels = figure.subplots(len(heights), sharex=True, height_ratios=heights)
    _draw_growth(panels[0], record.ledger, len(names))
    numbers = np.arange(1, len(tasks) + 1)
    _draw_bars(panels[1], numbers, [100 * row.trained_fraction for row in tasks], BLUE)
    _tidy(panels[1], "trained for each task (% of the base)")
    if any(buffers):
        _draw_bars(panels[2], numbers, buffers, ORANGE)
        _tidy(panels[2], f"examples kept ({storage(tasks[-1].buffer_bytes)} at the end)")
    name_tasks(panels[-1].xaxis, names, 1, "pretrained")
    panels[-1].set(xlim=(-0.6, len(names) + 0.6), xlabel="after learning task")
    return figure


def _draw_bars(axes: Axes, numbers: np.ndarray, heights: Sequence[float], colour: str) -> None:
    """Draw a bar a task; of many tasks the outline that their bars have."""
    if is_many(len(numbers)):
        axes.fill_between(numbers, 0, heights, step="mid", color=colour, lw=0)
    else:
        axes.bar(numbers, heights, color=colour)
    if not len(heights):
        axes.set_ylim(0, 1)  # of nothing, matplotlib's axis goes below zero


def _draw_growth(axes: Axes, ledger: LedgerRecord, num_tasks: int) -> None:
    """Stored multiples beside a fine-tuned copy for each task, k times (Houlsby et al. 2019)."""
    base, copies = ledger.base_parameters, np.arange(1, num_tasks + 1)
    multiples = [1.0] + [row.stored_parameters / base for row in ledger.tasks]
    mark = "" if is_many(num_tasks) else "o"
    axes.plot(
        copies, copies, color=GREY, ls="--", marker=mark, ms=3.5, label="a full copy per task"
    )
    axes.plot(multiples, color=BLUE, lw=2.2, marker=mark, ms=4, label="this run")
    ends = ((len(multiples) - 1, multiples[-1], BLUE), (num_tasks, num_tasks, GREY))
    style: dict[str, Any] = {"ha": "center", "weight": "bold", "textcoords": "offset points"}
    top = max(num_tasks, *multiples)
    for number, multiple, colour in ends:
        is_just_below = 0.7 * top < multiple < top  # its label would cover the upper line
        offset = (0, -14 if is_just_below else 6)
        axes.annotate(f"{multiple:.2f}{TIMES}", (number, multiple), offset, color=colour, **style)
    axes.set_ylim(0, 1.15 * top)  # linear: a copy per task is a straight line
    ticks = [t for t in MaxNLocator(6, integer=True).tick_values(0, top) if t <= 1.15 * top]
    axes.set_yticks(ticks, [f"{tick:g}{TIMES}" for tick in ticks])
    _tidy(axes, f"stored in total, as a multiple of the base ({base / 1e6:.3g} million parameters)")
    axes.legend(loc="upper left", frameon=False)


FIGURES = {
    "matrix": matrix_heatmap,
    "scores": score_lines,
    "forgetting": forgetting_curves,
    "parameters": parameter_growth,
}


def drawn(record: RunRecord, name: str) -> dict[str, bytes]:
    """Return a figure of a run as the contents of its files, by format."""
    return all_encoded(FIGURES[name](record), ("png", "svg"))
