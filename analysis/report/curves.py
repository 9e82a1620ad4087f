"""Charts of a report with a selector, and the matrices: scores over the stream, losses, the probe.

T is the number of tasks.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.report.charts import TASKS_LEARNED, task_axis, task_names
from analysis.runs.methods import Method, Results, spread
from analysis.report.plot import Chart, figure, layout, line, numbers
from analysis.report.plot import require_plotly as graph_objects
from analysis.text import chart_text, visible
from stream.metrics import probe_points
from stream.report.plots import ORANGE

MOST_POINTS = 60  # of one learning curve; longer ones are averaged over neighbouring steps
CYCLE = ("#440154", "#3B528B", "#21918C", "#5EC962", "#E69F00")  # viridis, the last darkened


def matrix_charts(methods: Sequence[Method], results: Results) -> list[Chart]:
    """One heat map a method; the page shows rows up to the slider's task."""
    return [_matrix(method, task_names(results, 40)) for method in methods]


def _matrix(method: Method, names: Sequence[str]) -> Chart:
    steps = list(range(1, len(names) + 1))
    viridis = graph_objects().Heatmap(colorscale="Viridis").colorscale
    below = [[0, ORANGE], [0.4999, ORANGE]]
    scale = [*below, *([0.5 + position / 2, colour] for position, colour in viridis)]
    heat = graph_objects().Heatmap(
        z=[numbers(row, 100) for row in method.matrix],
        x=steps,
        y=steps,
        text=[[f"after {row}<br>on {column}" for column in names] for row in names],
        zmin=-100,
        zmax=100,
        colorscale=scale,
        showscale=False,
        xgap=1,
        ygap=1,
        hovertemplate="%{text}: %{z:.1f}<extra></extra>",
        texttemplate="%{z:.0f}" if len(names) <= 8 else None,
        meta={"method": method.index},
    )
    axes = layout("score on task", "after learning task", yaxis={"autorange": "reversed"})
    for axis in (axes["xaxis"], axes["yaxis"]):
        axis |= {"showgrid": False, "dtick": max(1, len(names) // 6), "tick0": 1, "ticks": ""}
    axes["margin"] |= {"l": 44, "r": 4, "t": 4, "b": 40}
    number = len(method.counted)
    note = f"mean of {number} seeds" if number > 1 else "one seed"
    if method.partial is not None:
        note = f"PARTIAL: {method.partial} of {len(names)} tasks learned"
    return Chart(f"matrix-{method.index}", method.label, note, figure([heat], axes), height=330)


def scores_chart(methods: Sequence[Method], results: Results) -> Chart:
    """Score of each task over the stream: one task of all methods, or one method's tasks."""
    names = task_names(results, 40)
    steps = range(1, len(names) + 1)
    data = []
    for method in methods:
        sds = spread(method.matrices)
        for task in range(len(names)):
            x, y = steps[task:], numbers(method.matrix[task:, task], 100)
            hover = "%{fullData.name}<br>after %{x} tasks: %{y:.1f}"
            several = " ± %{customdata:.1f}" if len(method.counted) > 1 else ""
            changes: dict[str, Any] = {
                "customdata": numbers(sds[task:, task], 100),
                "hovertemplate": f"{hover}{several}<extra></extra>",
            }
            shown = {"meta": {"method": method.index, "view": f"task-{task}"}}
            data.append(line(method, x, y, **changes, **shown))
            colour = CYCLE[task % len(CYCLE)]
            shown = {
                "meta": {"method": method.index, "view": f"method-{method.index}"},
                "name": names[task],
                "line": {"color": colour, "width": 1.5},
                "marker": {"color": colour, "symbol": _symbol(task), "size": 5},
            }
            data.append(line(method, x, y, **changes, **shown))
    choices = [
        ("one task, all methods", _task_choices(results)),
        ("one method, all tasks", [(f"method-{m.index}", m.label) for m in methods]),
    ]
    note = "From right after it was learned; means over seeds. Point at a line for its name."
    axes = layout(TASKS_LEARNED, "score (%)", xaxis=task_axis(methods[0].matrix))
    return Chart("scores", "Score of each task over the stream", note, figure(data, axes), choices)


def _symbol(task: int) -> str:
    return ("circle", "square", "diamond", "triangle-down", "triangle-up")[task // len(CYCLE) % 5]


def _task_choices(results: Results) -> list[tuple[str, str]]:
    titles = results.get("titles") or results["order"]
    return [(f"task-{n}", visible(f"{n + 1} {title}", 60)) for n, title in enumerate(titles)]


def loss_chart(methods: Sequence[Method], results: Results) -> Chart | None:
    """Training loss of a task by step, mean over seeds; None where no run kept any."""
    data, cut = [], False
    for method in methods:
        for task, name in enumerate(results["order"]):
            curves = [(run.results.get("losses") or {}).get(name) for run in method.counted]
            known = [curve for curve in curves if curve]
            if not known:
                continue
            shortest = min(map(len, known))
            cut = cut or any(len(curve) != shortest for curve in known)
            mean = np.array([curve[:shortest] for curve in known], dtype=np.float64).mean(axis=0)
            x, y = _thinned(mean)
            shown = {"mode": "lines", "meta": {"method": method.index, "view": f"task-{task}"}}
            hover = "%{fullData.name}<br>step %{x:.0f}: %{y:.3f}<extra></extra>"
            data.append(line(method, x, numbers(y), hovertemplate=hover, **shown))
    if not data:
        return None
    note = f"Training loss, mean over seeds; at most {MOST_POINTS} points, each a mean of steps."
    note += " Curves of unequal length end with the shortest seed." if cut else ""
    axes = layout("step of the task", "loss")
    choices = [("task", _task_choices(results))]
    return Chart("losses", "Learning curves", note, figure(data, axes), choices, height=360)


def _thinned(curve: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Return (last steps, means) of at most MOST_POINTS runs of neighbouring steps."""
    parts = np.array_split(np.arange(len(curve)), min(len(curve), MOST_POINTS))
    return [float(part[-1] + 1) for part in parts], np.array([curve[p].mean() for p in parts])


def probe_chart(methods: Sequence[Method], results: Results) -> Chart | None:
    """Score of each task while later tasks are learned, mean over seeds; None without a probe."""
    data, without = [], []
    for method in methods:
        runs = [run.results for run in method.counted if run.results.get("probe")]
        curves = [_probe_curves(run) for run in runs]
        if not curves:
            without.append(chart_text(method.label, 60))
        for task in sorted(set().union(*curves)):
            own = [curve[task] for curve in curves if task in curve]
            same = [y for x, y in own if x == own[0][0]]  # of the same steps as the first seed's
            shown = {"meta": {"method": method.index, "view": f"task-{task}"}}
            hover = "%{fullData.name}<br>%{x:.2f} tasks: %{y:.1f}<extra></extra>"
            style = {"mode": "lines", "hovertemplate": hover, **shown}
            data.append(line(method, own[0][0], numbers(np.mean(same, axis=0), 100), **style))
    if not data:
        return None
    note = (
        "Scores of the probe, on some rows of the task, while it and later tasks were learned; "
        "means over seeds with the same steps. A whole number on the axis is the end of a task."
    )
    note += f" Without a probe: {', '.join(without)}." if without else ""
    axes = layout(TASKS_LEARNED, "score of the task (%)")
    axes["xaxis"] |= {"dtick": max(1, len(results["order"]) // 10), "tick0": 0}
    choices = [("task", _task_choices(results))]
    return Chart("probe", "Stability gap", note, figure(data, axes), choices, height=380)


def _probe_curves(results: Results) -> dict[int, tuple[list[float], list[float]]]:
    """Return (tasks learned, score) of every probe of each task, in order of time."""
    points = probe_points(results["probe"]["points"])
    last = {point.task: point.step for point in points}
    steps = (results["timing"].get("by_task") or {}).get("steps") or []
    curves: dict[int, tuple[list[float], list[float]]] = {}
    for point in points:
        length = steps[point.task] if point.task < len(steps) else last[point.task]
        position = point.task + (point.step / length if length else 0.0)
        for task, score in enumerate(point.scores):
            x, y = curves.setdefault(task, ([], []))
            x.append(round(position, 4))
            y.append(score)
    return curves
