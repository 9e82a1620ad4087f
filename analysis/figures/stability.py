"""The stability gap: scores of earlier tasks while the next ones are learned."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.style import NothingToDrawError, full_name, heading, show_percent, tidy
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import build_methods
from stream.formatting import count, percent
from stream.metrics import minimum_score
from stream.record.run_record import ProbeRecord
from stream.report.canvas import BLUE, GREY, new_figure


def stability(runs: Sequence[RecordedRun]) -> Figure:
    """Scores of earlier tasks while the next ones are learned (De Lange et al. 2023), a panel each.

    Of each method the first seed with a probe: its curves would blur in a mean over seeds.
    """
    probed = [
        (method, *found[0]) for method in build_methods(runs) if (found := _probes(method.counted))
    ]
    if not probed:
        raise NothingToDrawError("no run has a probe (probe.every=N)")
    sizes = sorted({(probe.every, probe.rows) for _, _, probe in probed})
    kinds = ", ".join(
        f"every {'step' if every == 1 else f'{every} steps'} on at most {rows} rows"
        for every, rows in sizes
    )
    title = f"stability gap: scores while learning, {kinds} a task"
    figure = new_figure(10, 2.4 * len(probed) + 1.8, heading(runs, title))
    panels = figure.subplots(len(probed), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (method, seed, probe) in zip(panels, probed, strict=True):
        lowest = _draw_curves(axes, probe)
        num_tasks = 1 + max(point.task for point in probe.points)
        name = f"{full_name(method)}, seed {seed}, {count(num_tasks, 'task')}"
        axes.set_title(name + lowest, loc="left", fontsize=10)
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[-1].set_xlabel("steps of learning; a line where the next task begins")
    figure.supylabel("score on the task's own metric (%)", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", frameon=False, ncols=2)
    return figure


def _probes(runs: Sequence[RecordedRun]) -> list[tuple[int, ProbeRecord]]:
    """The seeds and probes of the runs that have points."""
    probes = [(run.record.seed, run.record.probe) for run in runs]
    return [(seed, probe) for seed, probe in probes if probe is not None and probe.points]


def _draw_curves(axes: Axes, probe: ProbeRecord) -> str:
    """Draw every task from its own learning on in grey, the mean of earlier ones in blue.

    Returns:
        The mean of the tasks' lowest scores, in words; nothing where it is not known.
    """
    points = probe.points
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
    show_percent(axes)
    tidy(axes)
    lowest = minimum_score(points)
    note = f", mean of the tasks' lowest scores (min-ACC) {percent(lowest)} %"
    return note * (lowest is not None)
