"""Forgetting of every task by every method as one heat map: who lost what, at a glance.

M methods, T tasks.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import NothingToDrawError, full_name, heading, num_seeds
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import over_seeds
from analysis.runs.methods import Method, build_methods
from stream.formatting import percent
from stream.metrics import NotEvaluatedError, forgetting_by_task
from stream.report.canvas import display_names, new_figure
from stream.report.many import AXIS_NAMES, inches, is_many, named

NOTHING = 1e-9  # fractions: less is an error of rounding, and drawn as exactly nothing
SHADES = 24  # on each side of zero
FAINTEST = 0.12  # of the colour scale: what lost anything at all is seen not to be white
LONGEST_LINE = 34  # characters of a method's name at the left
CELL = 0.44, 0.3  # inches
HATCH = {"facecolor": "#EDEDED", "edgecolor": "#9A9A9A", "hatch": "////", "lw": 0}


def lost_by_task(method: Method) -> np.ndarray:
    """What a method forgot of each task (Chaudhry et al. 2018, eq. 3), seeds averaged, float64 [T].

    NaN where it is undefined: of the task that was learned last, of tasks not learned, and of all
    where scores of earlier tasks are missing.
    """
    lost = np.full(len(method.matrix), np.nan)
    try:
        drops = np.array([forgetting_by_task(matrix) for matrix in method.matrices])
    except NotEvaluatedError:
        return lost
    lost[: drops.shape[1]] = drops.mean(axis=0)
    return lost


def forgetting_map(runs: Sequence[RecordedRun]) -> Figure:
    """A row a method, a column a task, the mean over its tasks at the right; least lost on top.

    Zero is white, losses are orange and gains purple; what is undefined is hatched.
    """
    methods, names = build_methods(runs), display_names(runs[0].record)
    lost = np.array([lost_by_task(method) for method in methods])
    if np.isnan(lost).all():
        raise NothingToDrawError("no run has learned two tasks, so nothing can be forgotten")
    means = np.array([_mean(row) for row in lost])
    order = np.argsort(means, kind="stable")  # unknown ones last
    labels = [textwrap.wrap(full_name(methods[n]), LONGEST_LINE) for n in order]
    left, below = 0.075 * max(len(line) for lines in labels for line in lines), max(map(len, names))
    height = len(methods) * max(CELL[1], 0.16 * max(map(len, labels)) + 0.08)
    width = max(inches(len(names), CELL[0]) + 1.3 * CELL[0] + left + 0.4, 7)
    title = f"forgetting: best earlier score minus score at the end, {_means(methods)}"
    figure = new_figure(width, height + 0.08 * below + 2.6, heading(runs, title))
    axes = figure.add_subplot()
    colours, norm = scale_of(lost)
    mesh = _draw_cells(axes, lost[order], 0, (colours, norm))
    wide = len(names) / AXIS_NAMES if is_many(len(names)) else 1.0  # of the last column, in tasks
    _draw_cells(axes, means[order, None], len(names) + 0.3 * wide, (colours, norm), wide)
    _label(axes, names, ["\n".join(lines) for lines in labels], wide)
    bar = figure.colorbar(mesh, ax=axes, location="bottom", spacing="proportional", aspect=50)
    bar.set_ticks(_ticks(norm))
    bar.ax.set_xticklabels([_points(tick) for tick in _ticks(norm)])
    bar.minorticks_off()
    bar.set_label("forgetting (percentage points)\nwhite: exactly 0; purple, below 0: a gain")
    undefined = Patch(**HATCH, label="undefined: learned last, not learned, or not evaluated")
    figure.legend(handles=[undefined], loc="outside lower left", frameon=False)
    return figure


def _means(methods: Sequence[Method]) -> str:
    return over_seeds(num_seeds(methods), "means").replace(", no interval", "")


def _mean(row: np.ndarray) -> float:
    """The mean over the tasks that can have lost something: the table's forgetting."""
    known = row[~np.isnan(row)]
    return float(known.mean()) if len(known) else np.nan


def scale_of(lost: np.ndarray) -> tuple[Colormap, BoundaryNorm]:
    """Colours from purple over white to orange, and their bounds; equal on both sides of zero.

    White is for what lost nothing, and for that alone.

    Args:
        lost: fractions, NaN where undefined.
    """
    most = max(float(np.nanmax(np.abs(lost))), 0.01)  # no magnified zero
    half = np.linspace(FAINTEST, 1, SHADES) / 2
    palette = matplotlib.colormaps["PuOr_r"]
    positions = [*(0.5 - half[::-1]), *(0.5 + half)]
    shades = [to_hex(palette(position)) for position in positions]
    shades.insert(SHADES, "#FFFFFF")
    side = np.linspace(0, most, SHADES + 1)[1:]
    bounds = [*-side[::-1], -NOTHING, NOTHING, *side]
    bounds[0], bounds[-1] = bounds[0] - NOTHING, bounds[-1] + NOTHING
    return ListedColormap(shades), BoundaryNorm(bounds, len(shades))


def _draw_cells(
    axes: Axes,
    lost: np.ndarray,
    first: float,
    scale: tuple[Colormap, BoundaryNorm],
    wide: float = 1.0,
) -> QuadMesh:
    """Draw cells, with their percentage points unless they are many; what is NaN is hatched.

    Args:
        axes: where to draw.
        lost: fractions, float64 [M, columns].
        first: where the first column begins.
        scale: colours and their bounds.
        wide: how wide a column is.
    """
    rows, columns = lost.shape
    axes.axvspan(first, first + columns * wide, **HATCH)
    edges = first + wide * np.arange(columns + 1), np.arange(rows + 1)
    colours, norm = scale
    lines = {"rasterized": True} if is_many(columns) else {"edgecolors": "white", "lw": 0.8}
    style: dict[str, Any] = {"cmap": colours, "norm": norm, **lines}
    mesh = axes.pcolormesh(*edges, np.ma.masked_invalid(lost), **style)
    for (row, column), value in () if is_many(columns) else np.ndenumerate(lost):
        shade = colours(norm(value)) if not np.isnan(value) else (1, 1, 1)
        colour = "white" if luminance(shade) < 0.3 else "black"
        text = axes.text(
            first + wide * (column + 0.5), row + 0.5, _points(value), color=colour, size=7.5
        )
        text.set(ha="center", va="center")
    return mesh


def luminance(colour: Sequence[float]) -> float:
    """Relative luminance of an sRGB colour of fractions (WCAG 2): 0 for black, 1 for white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def _points(lost: float) -> str:
    """Percentage points; "0" for exactly nothing."""
    if abs(lost) <= NOTHING:
        return "0"
    return percent(lost)


def _ticks(norm: BoundaryNorm) -> list[float]:
    most = float(norm.vmax or 0.0)
    return [part * most for part in (-1, -0.5, 0, 0.5, 1)]


def _label(axes: Axes, names: Sequence[str], labels: Sequence[str], wide: float) -> None:
    """Name the columns, the last of which, so ``wide``, stands apart, and the rows."""
    shown = named(len(names))
    where = [*(at + 0.5 for at in shown), len(names) + 0.8 * wide]
    texts = [*(names[at] for at in shown), "mean of the tasks"]
    axes.set_xticks(where, texts, rotation=90, fontsize=9)
    axes.set_yticks(np.arange(len(labels)) + 0.5, labels, fontsize=9)
    axes.set(xlim=(0, len(names) + 1.3 * wide), ylim=(len(labels), 0))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
