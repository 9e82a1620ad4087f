"""Figures of methods along one stream: what was lost, stored and spent, and the stability gap.

T is the number of tasks.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from analysis.figures.style import (
    Method,
    NothingToDrawError,
    complete_methods,
    heading,
    label_log_axis,
    legend_label,
    mean_and_sd,
    methods_of,
    num_seeds,
    seeds_note,
    show_percent,
    tidy,
)
from analysis.runs.collect import Run, train_flops, train_s
from stream.formatting import TIMES, count, percent
from stream.metrics import forgetting_by_task, minimum_score, probe_points
from stream.report.plots import BLUE, GREY, display_names, new_figure, plain, score_matrix


def forgetting(runs: Sequence[Run]) -> Figure:
    """What each task lost since its best score (Chaudhry et al. 2018, eq. 3), methods side by side.

    The last task is learned last and can have lost nothing: it is left out.
    """
    methods = complete_methods(runs)
    names = display_names(runs[0].results)[:-1]
    if not names:
        raise NothingToDrawError("a stream of one task forgets nothing")
    below = 0.08 * max(map(len, names)) + 0.22 * len(methods)
    width = max(len(names) * min(0.1 * len(methods) + 0.25, 0.75) + 1.5, 8)
    title = f"best earlier score minus score at the end, {seeds_note(num_seeds(methods))}"
    figure = new_figure(width, 5 + below, heading(runs, title))
    axes = figure.add_subplot()
    axes.axhline(0, color=GREY, lw=1)
    offsets = np.linspace(-0.36, 0.36, len(methods)) if len(methods) > 1 else np.zeros(1)
    for method, offset in zip(methods, offsets, strict=True):
        lost = np.array([forgetting_by_task(score_matrix(run.results)) for run in method.runs])
        mean, sd = mean_and_sd(lost)
        where = np.arange(len(names)) + offset
        axes.vlines(where, 0, mean, color=method.colour, lw=2, alpha=0.5)
        error = sd if len(method.runs) > 1 else None
        label = f"{legend_label(method)}: {percent(float(mean.mean()))} points on average"
        axes.errorbar(where, mean, error, label=label, ms=4.5, lw=1, **method.marks)
    for edge in np.arange(1, len(names)) - 0.5:
        axes.axvline(edge, color=GREY, lw=0.5, alpha=0.4)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8.5)
    axes.set(xlim=(-0.5, len(names) - 0.5), xlabel="task, in the order of the stream")
    axes.set_ylabel("forgetting (percentage points)")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -0.01), max(high, 0.01))  # no magnified zero
    show_percent(axes)
    tidy(axes)
    figure.legend(loc="outside lower left", frameon=False, alignment="left")
    return figure


def growth(runs: Sequence[Run]) -> Figure:
    """Stored parameters of all methods over the stream, beside a fine-tuned copy for each task."""
    methods = methods_of(runs)
    names = display_names(runs[0].results)
    height = 4.6 + 0.08 * max(map(len, names)) + 0.22 * len(methods)
    title = "parameters that all tasks so far need, replayed examples not counted"
    figure = new_figure(max(0.36 * len(names) + 2, 8), height, heading(runs, title))
    axes = figure.add_subplot()
    copies = np.arange(1, len(names) + 1)
    label = f"a full copy a task: {len(names)}"
    axes.plot(copies, copies, color="black", ls=(0, (1, 1.5)), zorder=3, label=label)
    sizes = np.linspace(9, 4, len(methods))  # of marks: equal lines show inside each other
    for method, size in zip(methods, sizes, strict=True):
        ledger = method.runs[0].results["ledger"]  # the same for every seed
        multiples = np.array([row["stored_parameters"] for row in ledger["tasks"]], dtype=float)
        multiples[multiples <= 0] = np.nan  # a logarithm has no place for nothing
        multiples /= ledger["base_parameters"]
        end = f"{multiples[-1]:.3g}" if multiples[-1] > 0 else "no parameters"
        label, where = f"{legend_label(method)}: {end}", copies[: len(multiples)]
        axes.plot(where, multiples, lw=1.8, ms=size, label=label, **method.line)
    axes.set(yscale="log", xlabel="after learning task")
    axes.set_ylabel(f"stored in total ({TIMES} the pretrained encoder)")
    label_log_axis(axes.yaxis, FuncFormatter(lambda value, _: f"{value:g}{TIMES}"))
    axes.set_xticks(copies, names, rotation=90, fontsize=8.5)
    tidy(axes)
    title = f"{TIMES} the encoder at the end of the stream"
    figure.legend(loc="outside lower left", frameon=False, alignment="left", title=title)
    return figure


Cost = Callable[[dict[str, Any]], float | None]


def cost(runs: Sequence[Run]) -> Figure:
    """Average score at the end against seconds of learning, and operations where counted."""
    methods = complete_methods(runs)
    devices = ", ".join(sorted({str(run.results.get("device", "?")) for run in runs}))
    panels: list[tuple[Cost, str]] = [(train_s, f"seconds of learning, whole stream ({devices})")]
    if any(train_flops(run.results) for method in methods for run in method.runs):
        panels.append((train_flops, "floating-point operations of learning, whole stream"))
    title = f"cost against score, {seeds_note(num_seeds(methods))}"
    height = 5.4 + 0.22 * len(methods)
    figure = new_figure(5.2 * len(panels) + 2.5, height, heading(runs, title))
    axes_list = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (read, label) in zip(axes_list, panels, strict=True):
        missing = [m.label for m in methods if not _draw_cost(axes, m, read)]
        axes.set(xscale="log")
        plain_number = FuncFormatter(lambda value, _: f"{value:g}")
        label_log_axis(axes.xaxis, plain_number if read is train_s else EngFormatter())
        note = f"\nnothing recorded: {plain(', '.join(missing), 60)}" if missing else ""
        axes.set_xlabel(label + note)
        tidy(axes, "both")
    axes_list[0].set_ylabel("average score at the end (%)")
    show_percent(axes_list[0])
    handles, labels = axes_list[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", frameon=False, alignment="left")
    return figure


def _draw_cost(axes: Axes, method: Method, read: Cost) -> bool:
    """Draw a method's mean cost and score with both deviations; False where it has no cost."""
    costs = [read(run.results) for run in method.runs]
    known = [value for value in costs if value]
    if len(known) < len(costs):
        return False
    scores = np.array([run.results["metrics"]["average_score"] for run in method.runs])
    (x, dx), (y, dy) = mean_and_sd(np.array(known)), mean_and_sd(scores)
    bars = {} if len(known) == 1 else {"xerr": min(dx, 0.99 * x), "yerr": dy}
    label = f"{legend_label(method)}: {percent(float(y))} %"
    axes.errorbar(x, y, ms=7, lw=1, label=label, **bars, **method.marks)
    return True


def stability(runs: Sequence[Run]) -> Figure:
    """Scores of earlier tasks while the next ones are learned (De Lange et al. 2023), a panel each.

    Of each method the first seed with a probe: its curves would blur in a mean over seeds.
    """
    probed = [
        (method, run)
        for method in methods_of(runs)
        for run in [
            next((r for r in method.runs if (r.results.get("probe") or {}).get("points")), None)
        ]
        if run is not None
    ]
    if not probed:
        raise NothingToDrawError("no run has a probe (probe.every=N)")
    sizes = sorted({(r.results["probe"]["every"], r.results["probe"]["rows"]) for _, r in probed})
    kinds = ", ".join(f"every {every} steps on at most {rows} rows" for every, rows in sizes)
    title = f"stability gap: scores while learning, {kinds} a task"
    figure = new_figure(10, 2.4 * len(probed) + 1.8, heading(runs, title))
    panels = figure.subplots(len(probed), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (method, run) in zip(panels, probed, strict=True):
        _draw_stability(axes, method, run)
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[-1].set_xlabel("steps of learning; a line where the next task begins")
    figure.supylabel("score on the task's own metric (%)", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", frameon=False, ncols=2)
    return figure


def _draw_stability(axes: Axes, method: Method, run: Run) -> None:
    """Every task's curve from its own learning on in grey, the mean of earlier ones in blue."""
    points = probe_points(run.results["probe"]["points"])
    num_tasks = 1 + max(point.task for point in points)
    last = [max(p.step for p in points if p.task == task) for task in range(num_tasks)]
    starts = np.concatenate([[0], np.cumsum(last)])
    for task in range(num_tasks):
        since = [p for p in points if p.task >= task]
        steps = [starts[p.task] + p.step for p in since]
        label = "each task, from the first step of its own learning" if task == 0 else None
        curve = [p.scores[task] for p in since]
        axes.plot(steps, curve, color=GREY, lw=0.9, alpha=0.7, label=label)
    for task in range(1, num_tasks):  # broken at each start: then one more task counts
        during = [p for p in points if p.task == task]
        steps = [starts[task] + p.step for p in during]
        means = [float(np.mean(p.scores[:task])) for p in during]
        label = "mean over the tasks learned before" if task == 1 else None
        axes.plot(steps, means, color=BLUE, lw=2.2, marker="o", ms=3, label=label)
    for start in starts[1:-1]:
        axes.axvline(start, color=GREY, lw=0.8, ls=":")
    lowest = minimum_score(points)
    note = f", mean of the tasks' lowest scores (min-ACC) {percent(lowest)} %"
    name = f"{legend_label(method)}, seed {run.results['seed']}, {count(num_tasks, 'task')}"
    axes.set_title(name + note * (lowest is not None), loc="left", fontsize=10)
    show_percent(axes)
    tidy(axes)
