"""Average scores over different orders of the same tasks."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import NothingToDrawError, heading, show_percent, tidy
from analysis.looks import look_of
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import Estimate
from analysis.runs.names import group, method_names
from analysis.runs.values import setting
from stream.formatting import percent
from stream.report.canvas import new_figure, plain


def orders(runs: Sequence[RecordedRun]) -> Figure:
    """Average score of each method over different orders of the same tasks: points and range.

    Several seeds of one order are averaged into one point.
    """
    found = order_scores(runs)
    if not any(len(scores) > 1 for scores in found.values()):
        raise NothingToDrawError("no method has complete runs in several orders")
    kinds = sorted({kind for scores in found.values() for kind, _ in scores})
    below = 0.08 * max(len(plain(label, 60)) for label in found)
    title = "average score at the end: one point per order, a line their range"
    width = max(0.9 * len(found) + 2, 8)
    figure = new_figure(width, 5 + below + 0.22 * len(kinds), heading(runs, title))
    axes = figure.add_subplot()
    for position, scores in enumerate(found.values()):
        _draw_method(axes, position, scores, kinds)
    names = [plain(label, 60) for label in found]
    axes.set_xticks(range(len(found)), names, rotation=90 if max(map(len, names)) > 11 else 0)
    axes.set(xlim=(-0.6, len(found) - 0.4), ylabel="average score at the end (%)")
    axes.margins(y=0.15)
    show_percent(axes)
    tidy(axes)
    handles, labels = axes.get_legend_handles_labels()
    first = dict(zip(labels, handles, strict=True))
    shown = [first[kind] for kind in kinds], [f"order={kind}" for kind in kinds]
    figure.legend(*shown, loc="outside lower left", frameon=False)
    return figure


def _draw_method(
    axes: Axes, position: int, scores: Sequence[tuple[str, float]], kinds: Sequence[str]
) -> None:
    """Draw the points of one method and their range.

    Args:
        axes: where to draw.
        position: of the method on the x axis.
        scores: (kind of order, average score) of each order.
        kinds: all kinds of the figure, which decide the looks.
    """
    values = np.array([score for _, score in scores])
    axes.vlines(position, values.min(), values.max(), color="black", lw=2, zorder=1)
    note = f"{len(values)} orders\nrange {percent(values.max() - values.min())}"
    if len(values) > 1:
        offset = {"xytext": (0, 9), "textcoords": "offset points", "ha": "center"}
        axes.annotate(note, (position, values.max()), fontsize=8, **offset)
    for (kind, score), shift in zip(scores, _shifts(len(scores)), strict=True):
        look = look_of(kinds.index(kind))
        style: dict[str, Any] = {"color": look.colour, "marker": look.marker.matplotlib}
        axes.plot(position + shift, score, ms=7, ls="none", alpha=0.85, label=kind, **style)


def _shifts(number: int) -> np.ndarray:
    """Sideways shifts, so that equal points do not hide each other."""
    return np.linspace(-0.2, 0.2, number) if number > 1 else np.zeros(1)


def order_scores(runs: Sequence[RecordedRun]) -> dict[str, list[tuple[str, float]]]:
    """By method: (kind of order, average score) of each order, seeds averaged; complete runs only.

    The kind is what the configuration asked for (given, reversed, by_size, random).
    """
    found: dict[str, list[tuple[str, float]]] = {}
    names = method_names(runs).by_label
    for label, members in group(runs).items():
        by_order: defaultdict[tuple[str, ...], list[RecordedRun]] = defaultdict(list)
        for run in members:
            if run.record.status == "complete":
                by_order[tuple(run.record.order)].append(run)
        if by_order:
            found[names[label]] = [
                (
                    str(setting(same[0].record, "order") or "given"),
                    Estimate.of(run.record.metrics["average_score"] for run in same).mean,
                )
                for same in by_order.values()
            ]
    return found
