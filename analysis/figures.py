"""Figures of runs: those of each run, and two that put several runs side by side."""

import math
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis.collect import Run
from analysis.compare import check_comparable, group, method_labels, repetitions
from stream.plots import (
    BLUE,
    FIGURES,
    GREEN,
    GREY,
    ORANGE,
    add_colour_bar,
    display_names,
    draw_matrix,
    new_figure,
    plain,
    running_average,
    save,
    score_matrix,
    stream_name,
)
from stream.wording import DASH, percent

# Okabe and Ito 2008, without the yellow that is hard to see on white.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000", GREY)
DASHES = ("-", "--", "-.", ":")


def write_run_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write each run's three figures as METHOD_seedN_FIGURE.png and .svg; return the paths."""
    written: list[Path] = []
    taken: set[str] = set()
    for label, run in zip(method_labels(runs), runs, strict=True):
        stem = re.sub(r"[^A-Za-z0-9.]+", "_", f"{label} seed{run.results['seed']}")[:100]
        unique, number = stem, 2
        while unique in taken:
            unique, number = f"{stem}_{number}", number + 1
        taken.add(unique)
        for name, draw in FIGURES.items():
            written += save(draw(run.results), folder, f"{unique}_{name}")
    return written


def write_comparison_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write the figures of several runs together; return the paths.

    Raises:
        IncomparableRunsError: the runs did not see the same stream.
    """
    check_comparable(runs)
    drawn = {"matrices": matrices(runs), "average": average(runs)}
    return [path for name, figure in drawn.items() for path in save(figure, folder, name)]


def matrices(runs: Sequence[Run]) -> Figure:
    """The heat maps of several runs of one stream side by side, with one colour bar."""
    ordered = [(label, run) for label, members in group(runs).items() for run in members]
    names = display_names(runs[0].results)
    num_columns = min(len(runs), 3)
    num_rows = math.ceil(len(runs) / num_columns)
    label_size, size = 0.08 * max(map(len, names)), max(0.32 * len(names), 3.0)  # inches
    height = num_rows * (size + label_size + 1.2) + 1.2
    figure = new_figure(num_columns * (size + 0.2) + label_size + 2, height, _heading(runs))
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    meshes = []
    for index, (label, run) in enumerate(ordered):
        axes, score = panels[index], percent(run.results["metrics"]["average_score"])
        meshes.append(draw_matrix(axes, run.results))
        title = f"{label}, seed {run.results['seed']}: average score {score}"
        lines = textwrap.wrap(plain(title, 150), int(10 * size))
        axes.set_title("\n".join(lines), loc="left", fontsize=11)
        axes.tick_params(labelleft=index % num_columns == 0)
    for axes in panels[len(runs) :]:
        axes.set_visible(False)
    negative = any((score_matrix(run.results) < 0).any() for run in runs)
    add_colour_bar(figure, meshes[0], panels, negative=negative)
    figure.supxlabel("score on task (accuracy where no metric is named)", fontsize=10)
    figure.supylabel("after learning task", fontsize=10)
    return figure


def average(runs: Sequence[Run]) -> Figure:
    """The average over the tasks learned so far, one line a method, with its deviation."""
    names = display_names(runs[0].results)
    groups = group(runs)
    height = 5.2 + 0.08 * max(map(len, names)) + 0.25 * len(groups)
    figure = new_figure(max(0.36 * len(names) + 2, 8), height, _heading(runs))
    axes = figure.add_subplot()
    numbers = np.arange(1, len(names) + 1)
    for index, (label, members) in enumerate(groups.items()):
        shown = repetitions(members) or members[:1]  # a partial run only where there is no other
        averages = np.array([running_average(run.results) for run in shown])  # runs x T
        line = averages.mean(axis=0)
        style: dict[str, Any] = {"color": COLOURS[index % len(COLOURS)], "marker": "o"}
        style["linestyle"] = DASHES[index // len(COLOURS) % len(DASHES)]
        axes.plot(numbers, line, lw=2, ms=4, label=_legend(label, shown, line), **style)
        if len(shown) > 1:
            spread = averages.std(axis=0, ddof=1)
            axes.fill_between(
                numbers, line - spread, line + spread, color=style["color"], alpha=0.2
            )
    axes.set_xticks(numbers, names, rotation=90, fontsize=8.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda score, _: percent(score, 0)))
    axes.set(xlabel="after learning task", ylabel="average score on the tasks learned so far (%)")
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower left", frameon=False, alignment="left")
    return figure


def _legend(label: str, shown: Sequence[Run], line: np.ndarray) -> str:
    """The method, how many seeds its line stands for, and where it ends."""
    measured = line[~np.isnan(line)]
    end = f"{percent(measured[-1] if len(measured) else None)} %".replace(f"{DASH} %", DASH)
    note = f", mean ± sd of {len(shown)} seeds" if len(shown) > 1 else ""
    if shown[0].results["status"] != "complete":
        note = f", partial: {len(measured)} tasks"
    return f"{plain(label, 80)}: {end} at the end{note}"


def _heading(runs: Sequence[Run]) -> str:
    results = runs[0].results
    backbones = ", ".join(sorted({run.results["backbone"] for run in runs}))
    note = ", validation scores" if results.get("split") == "validation" else ""
    return f"{stream_name(results)}, {len(results['order'])} tasks, {plain(backbones)}{note}"
