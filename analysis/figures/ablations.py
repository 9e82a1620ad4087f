"""Figures 1, 3, 4 and 6 of Houlsby et al. 2019, and order sweeps: scores against a choice.

T is the number of tasks, n that of seeds.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter

from analysis.figures.one_setting import TRAINED, Ablation, find_ablation
from analysis.figures.style import (
    COLOURS,
    MARKERS,
    Method,
    NothingToDrawError,
    complete_methods,
    heading,
    label_log_axis,
    looks,
    mean_and_sd,
    num_seeds,
    seeds_note,
    show_percent,
    tidy,
)
from analysis.runs.collect import Run
from analysis.runs.comparable import group
from stream.formatting import percent
from stream.report.plots import GREY, display_names, new_figure, plain

PERCENTILES = (20, 50, 80)  # of the paper's figures 1 and 3
BASELINE = "independent"  # full fine-tuning of a copy a task, the paper's baseline


def ablation(runs: Sequence[Run], setting: str) -> tuple[Figure, list[str]]:
    """Draw the score of every task against a setting, a panel a task; also return what is left out.

    Full fine-tuning (`independent`) without that setting is a band: its mean and deviation.

    Raises:
        UserError: no such setting, or it is the same in all runs.
    """
    found = find_ablation(runs, setting)
    results = runs[0].results
    num_tasks = len(results["order"])
    num_columns = min(num_tasks, 4)
    num_rows = math.ceil(num_tasks / num_columns)
    longest = 0 if found.is_numeric else max(len(str(x)) for s in found.series for x in s.values)
    width = max(4.6, 0.32 * found.num_values + 1.2) * num_columns + 0.5
    height = (3.4 + 0.075 * min(longest, 60)) * num_rows + 1.6 + 0.25 * len(found.series)
    note = f"scores after the whole stream, {seeds_note(found.num_seeds)}"
    figure = new_figure(max(width, 8), height, heading(runs, note))
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    titles = zip(display_names(results), results["metric_names"], strict=True)
    for task, (axes, (name, metric)) in enumerate(zip(panels, titles, strict=False)):
        _draw_panel(axes, found, task)
        if task + num_columns >= num_tasks:
            axes.set_xlabel(found.axis_label)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_ylabel(f"{metric.replace('_', ' ')} (%)")
    for axes in panels[num_tasks:]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", frameon=False, alignment="left")
    return figure, found.left_out


def _draw_panel(axes: Axes, found: Ablation, task: int) -> None:
    """Draw one task: the band of full fine-tuning, and every series with its deviation."""
    if found.band is not None:
        mean, sd = map(float, mean_and_sd(found.band[:, task]))
        axes.axhspan(mean - sd, mean + sd, color=GREY, alpha=0.3, lw=0)
        axes.axhline(mean, color=GREY, ls="--", label=f"full fine-tuning ({BASELINE})")
    for index, series in enumerate(found.series):
        colour, marker, _ = looks(index)
        style: dict[str, Any] = {"color": colour, "marker": marker, "ms": 5, "capsize": 2.5}
        style["ls"] = "-" if found.is_numeric else "none"
        where = found.positions(series, task)
        stats = [mean_and_sd(scores[:, task]) for scores in series.scores]
        means, deviations = zip(*stats, strict=True)
        axes.errorbar(where, means, deviations, label=plain(series.label, 80), **style)
    if found.is_numeric:
        axes.set_xscale("log" if found.is_log else "linear")
        if found.setting == TRAINED and found.is_log:
            label_log_axis(axes.xaxis, EngFormatter())
        elif found.setting != TRAINED:
            ticks = sorted(found.categories)
            axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
            axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        names = [plain(str(x), 60) for x in found.categories]
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8.5)
    show_percent(axes)
    tidy(axes)


def tradeoff(runs: Sequence[Run]) -> Figure:
    """Score relative to full fine-tuning against trained parameters (figures 1 and 3).

    Percentiles over the tasks of the difference of the scores at the end, each a mean over seeds;
    one line a learner, one point each of its settings.
    """
    methods = complete_methods(runs)
    baselines = [method for method in methods if method.learner == BASELINE]
    if len(baselines) != 1:
        which = f"{len(baselines)} methods are" if baselines else "no complete run is"
        raise NothingToDrawError(f"{which} {BASELINE}, the full fine-tuning to compare with")
    families: defaultdict[str, list[Method]] = defaultdict(list)
    untrained = []
    for method in methods:
        if method.learner == BASELINE:
            continue
        if trained_parameters(method) > 0:
            families[method.learner].append(method)
        else:
            untrained.append(method.label)
    if not families:
        raise NothingToDrawError(f"no run beside {BASELINE} trains parameters")
    percentiles = ", ".join(map(str, PERCENTILES))
    title = f"score minus full fine-tuning: percentiles {percentiles} over the tasks, "
    title += seeds_note(num_seeds(methods), "means")
    figure = new_figure(10, 6 + 0.25 * len(families), heading(runs, title))
    axes = figure.add_subplot()
    _draw_families(axes, families, baselines[0])
    note = f"\nnot shown, trains none: {plain(', '.join(untrained), 80)}" if untrained else ""
    axes.set(xscale="log", xlabel=f"parameters trained for each task (mean){note}")
    label_log_axis(axes.xaxis, EngFormatter())
    axes.set_ylabel("score minus full fine-tuning (percentage points)")
    show_percent(axes)
    tidy(axes)
    figure.legend(loc="outside lower left", frameon=False, alignment="left")
    return figure


def _draw_families(axes: Axes, families: dict[str, list[Method]], baseline: Method) -> None:
    """Draw the baseline at 0 and each learner's percentiles over its settings."""
    size = trained_parameters(baseline)
    axes.axhline(0, color=GREY, ls="--", lw=1)
    label = f"full fine-tuning of a copy a task ({BASELINE})"
    axes.plot(size, 0, color=GREY, marker="*", ms=14, ls="none", label=label)
    for index, (learner, methods) in enumerate(families.items()):
        colour, marker, _ = looks(index)
        members = sorted(methods, key=trained_parameters)
        sizes = [trained_parameters(method) for method in members]
        low, middle, high = np.transpose([relative_percentiles(m, baseline) for m in members])
        if len(members) > 1:
            axes.fill_between(sizes, low, high, color=colour, alpha=0.15, lw=0)
        bars = np.array([middle - low, high - middle])
        style: dict[str, Any] = {"color": colour, "marker": marker, "capsize": 3, "elinewidth": 1}
        axes.errorbar(sizes, middle, bars, lw=2, ms=6, label=plain(learner), **style)


def trained_parameters(method: Method) -> float:
    """Parameters trained for a task, mean over the tasks."""
    return float(
        np.mean([row["trained_parameters"] for row in method.runs[0].results["ledger"]["tasks"]])
    )


def relative_percentiles(method: Method, baseline: Method) -> np.ndarray:
    """`PERCENTILES` over the tasks of score minus baseline, float64 [3]; seeds averaged first."""
    difference = method.final_scores().mean(axis=0) - baseline.final_scores().mean(axis=0)
    return np.percentile(difference, PERCENTILES)


def orders(runs: Sequence[Run]) -> Figure:
    """Average score of each method over different orders of the same tasks: points and range.

    Several seeds of one order are averaged into one point.
    """
    found = order_scores(runs)
    if not any(len(scores) > 1 for scores in found.values()):
        raise NothingToDrawError("no method has complete runs in several orders")
    kinds = sorted({kind for scores in found.values() for kind, _ in scores})
    below = 0.08 * max(len(plain(label, 60)) for label in found)
    title = "average score at the end: a point an order, a line their range"
    width = max(0.9 * len(found) + 2, 8)
    figure = new_figure(width, 5 + below + 0.22 * len(kinds), heading(runs, title))
    axes = figure.add_subplot()
    for position, scores in enumerate(found.values()):
        values = np.array([score for _, score in scores])
        axes.vlines(position, values.min(), values.max(), color="black", lw=2, zorder=1)
        note = f"{len(values)} orders\nrange {percent(values.max() - values.min())}"
        if len(values) > 1:
            offset = {"xytext": (0, 9), "textcoords": "offset points", "ha": "center"}
            axes.annotate(note, (position, values.max()), fontsize=8, **offset)
        for (kind, score), shift in zip(scores, _shifts(len(scores)), strict=True):
            number = kinds.index(kind)
            style: dict[str, Any] = {"color": COLOURS[number], "marker": MARKERS[number]}
            axes.plot(position + shift, score, ms=7, ls="none", alpha=0.85, label=kind, **style)
    names = [plain(label, 60) for label in found]
    axes.set_xticks(range(len(found)), names, rotation=90 if max(map(len, names)) > 11 else 0)
    axes.set(xlim=(-0.6, len(found) - 0.4), ylabel="average score at the end (%)")
    axes.margins(y=0.15)
    show_percent(axes)
    tidy(axes)
    handles, labels = axes.get_legend_handles_labels()
    first = dict(zip(labels, handles, strict=True))
    figure.legend(
        [first[kind] for kind in kinds],
        [f"order={kind}" for kind in kinds],
        loc="outside lower left",
        frameon=False,
    )
    return figure


def _shifts(number: int) -> np.ndarray:
    """Sideways shifts, so that equal points do not hide each other."""
    return np.linspace(-0.2, 0.2, number) if number > 1 else np.zeros(1)


def order_scores(runs: Sequence[Run]) -> dict[str, list[tuple[str, float]]]:
    """By method: (kind of order, average score) of each order, seeds averaged; complete runs only.

    The kind is what the configuration asked for (given, reversed, by_size, random).
    """
    found: dict[str, list[tuple[str, float]]] = {}
    for label, members in group(runs).items():
        by_order: defaultdict[tuple[str, ...], list[Run]] = defaultdict(list)
        for run in members:
            if run.results["status"] == "complete":
                by_order[tuple(run.results["order"])].append(run)
        if by_order:
            found[label] = [
                (
                    str(same[0].results["config"].get("order", "given")),
                    float(np.mean([run.results["metrics"]["average_score"] for run in same])),
                )
                for same in by_order.values()
            ]
    return found
