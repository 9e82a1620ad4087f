"""Which figures there are, and where they go: those of each run, and those of several together."""

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from analysis.figures.ablations import ablation, orders, tradeoff
from analysis.figures.along_stream import cost, forgetting, growth, stability
from analysis.figures.style import (
    Method,
    NothingToDrawError,
    heading,
    legend_label,
    mean_and_sd,
    methods_of,
    show_percent,
    tidy,
)
from analysis.runs.collect import Run
from analysis.runs.comparable import largest_comparable, method_labels
from stream.errors import choose
from stream.formatting import DASH, count, percent
from stream.report.plots import (
    FIGURES,
    add_colour_bar,
    display_names,
    draw_matrix,
    new_figure,
    plain,
    running_average,
    save,
    score_matrix,
)

FORMATS = ("png", "svg", "pdf")
MAX_PANELS = 9  # heat maps of single runs in one figure


@dataclass
class Drawn:
    """What became of a wish for figures.

    Attributes:
        paths: the files written.
        notes: figures that had nothing to show, a line each.
        left_out: runs that are in no figure of several runs, a line each.
    """

    paths: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def write_figures(
    runs: Sequence[Run], folder: Path, *, only: Sequence[str] = (), setting: str | None = None
) -> Drawn:
    """Draw runs, each by itself and those of one stream together, into a folder.

    Args:
        runs: runs of any streams; the largest group of one stream is drawn together.
        folder: where to write; it is made.
        only: names out of ``runs`` and `TOGETHER`; none means all.
        setting: what to draw scores against (`ablation`); then only that figure, unless ``only``
            names others.

    Raises:
        UserError: an unknown name or setting.
    """
    names = [choose("figure", name, ["runs", *TOGETHER]) for name in only]
    wanted = names or ([] if setting else ["runs", *TOGETHER])
    drawn = Drawn()
    same_stream, drawn.left_out = largest_comparable(runs)
    if "orders" in wanted:
        same_tasks, drawn.left_out = largest_comparable(runs, any_order=True)
    else:
        same_tasks = []
    if setting:
        figure, left_out = ablation(same_stream, setting)
        drawn.left_out += left_out
        name = re.sub(r"[^A-Za-z0-9.]+", "_", setting)
        drawn.paths += save(figure, folder, f"ablation_{name}", FORMATS)
    if "runs" in wanted:
        drawn.paths += write_run_figures(runs, folder)
    for name, draw in TOGETHER.items():
        members = same_tasks if name == "orders" else same_stream
        if name in wanted and (len(members) > 1 or name in ALSO_OF_ONE or names):
            try:
                drawn.paths += save(draw(members), folder, name, FORMATS)
            except NothingToDrawError as error:
                drawn.notes.append(f"no figure {name}: {error}")
    return drawn


def write_run_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write each run's three figures as METHOD_seedN_FIGURE.FORMAT; return the paths."""
    written: list[Path] = []
    taken: set[str] = set()
    for label, run in zip(method_labels(runs), runs, strict=True):
        stem = re.sub(r"[^A-Za-z0-9.]+", "_", f"{label} seed{run.results['seed']}")[:100]
        unique, number = stem, 2
        while unique in taken:
            unique, number = f"{stem}_{number}", number + 1
        taken.add(unique)
        for name, draw in FIGURES.items():
            written += save(draw(run.results), folder, f"{unique}_{name}", FORMATS)
    return written


def matrices(runs: Sequence[Run]) -> Figure:
    """Heat maps side by side with one colour bar: each run's; of many runs each method's mean."""
    shown = _panels(runs)
    names = display_names(runs[0].results)
    num_columns = min(len(shown), 3 if len(names) > 6 else 6)
    num_rows = math.ceil(len(shown) / num_columns)
    label_size, size = 0.08 * max(map(len, names)), max(0.32 * len(names), 3.0)  # inches
    height = num_rows * (size + label_size + 1.2) + 1.2
    figure = new_figure(num_columns * (size + 0.2) + label_size + 2, height, heading(runs))
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    meshes = []
    for index, (title, matrix) in enumerate(shown):
        axes = panels[index]
        meshes.append(draw_matrix(axes, runs[0].results | {"matrix": matrix}))
        lines = textwrap.wrap(plain(title, 150), int(10 * size))
        axes.set_title("\n".join(lines), loc="left", fontsize=11)
        axes.tick_params(labelleft=index % num_columns == 0)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    negative = any((np.array(matrix, dtype=float) < 0).any() for _, matrix in shown)
    add_colour_bar(figure, meshes[0], panels, negative=negative, shrink=1 / num_rows)
    figure.supxlabel("score on task (accuracy where no metric is named)", fontsize=10)
    figure.supylabel("after learning task", fontsize=10)
    return figure


def _panels(runs: Sequence[Run]) -> list[tuple[str, list[list[float | None]]]]:
    """Titles and T x T scores of what `matrices` draws."""
    if len(runs) <= MAX_PANELS:
        labelled = sorted(
            zip(method_labels(runs), runs, strict=True), key=lambda pair: pair[1].results["seed"]
        )
        by_method = list(dict.fromkeys(method_labels(runs)))
        labelled.sort(key=lambda pair: by_method.index(pair[0]))  # stable: by seed within
        return [
            (
                f"{label}, seed {run.results['seed']}: average score "
                f"{percent(run.results['metrics']['average_score'])}",
                run.results["matrix"],
            )
            for label, run in labelled
        ]
    found = []
    for method in methods_of(runs):
        mean = np.mean([score_matrix(run.results) for run in method.runs], axis=0)
        scores = [run.results["metrics"]["average_score"] for run in method.runs]
        score = float(np.mean([np.nan if score is None else score for score in scores]))
        seed = method.runs[0].results["seed"]
        which = f"mean of {len(scores)} seeds" if len(scores) > 1 else f"seed {seed}"
        title = f"{legend_label(method)}, {which}: average score {percent(score)}"
        found.append((title, mean.tolist()))
    return found


def average(runs: Sequence[Run]) -> Figure:
    """The average over the tasks learned so far, one line a method, with its deviation."""
    names = display_names(runs[0].results)
    methods = methods_of(runs)
    height = 5.2 + 0.08 * max(map(len, names)) + 0.25 * len(methods)
    figure = new_figure(max(0.36 * len(names) + 2, 8), height, heading(runs))
    axes = figure.add_subplot()
    numbers = np.arange(1, len(names) + 1)
    for method in methods:
        line, spread = mean_and_sd(running_averages(method))
        axes.plot(numbers, line, lw=2, ms=4, label=_legend(method, line), **method.line)
        if len(method.runs) > 1:
            area = {"color": method.colour, "alpha": 0.2, "lw": 0}
            axes.fill_between(numbers, line - spread, line + spread, **area)
    axes.set_xticks(numbers, names, rotation=90, fontsize=8.5)
    show_percent(axes)
    axes.set(xlabel="after learning task", ylabel="average score on the tasks learned so far (%)")
    tidy(axes)
    figure.legend(loc="outside lower left", frameon=False, alignment="left")
    return figure


def running_averages(method: Method) -> np.ndarray:
    """The averages over tasks 1..k after learning task k of each seed, float64 [n, T]."""
    return np.array([running_average(run.results) for run in method.runs])


def _legend(method: Method, line: np.ndarray) -> str:
    """The method, how many seeds its line stands for, and where it ends."""
    measured = line[~np.isnan(line)]
    end = f"{percent(measured[-1] if len(measured) else None)} %".replace(f"{DASH} %", DASH)
    note = f", mean ± sd of {len(method.runs)} seeds" if len(method.runs) > 1 else ""
    if not method.is_complete:
        note = f", partial: {count(len(measured), 'task')}"
    return f"{plain(method.label, 80)}: {end} at the end{note}"


TOGETHER: dict[str, Callable[[Sequence[Run]], Figure]] = {
    "matrices": matrices,
    "average": average,
    "forgetting": forgetting,
    "growth": growth,
    "cost": cost,
    "stability": stability,
    "tradeoff": tradeoff,
    "orders": orders,
}
ALSO_OF_ONE = ("stability",)  # a single run without a probe gets a line, too
