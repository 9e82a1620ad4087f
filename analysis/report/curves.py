"""Charts of a report with a selector: scores over the stream, losses, the probe.

T is the number of tasks.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from analysis.report.charts import TASKS_LEARNED, line_mode, task_axis, task_names
from analysis.report.plot import Chart, figure, layout, line, numbers, said_of
from analysis.report.plot import require_plotly as graph_objects
from analysis.runs.estimate import INTERVAL, mean_and_half_width
from analysis.runs.methods import Method
from stream.formatting import percent, signed, visible
from stream.metrics.changes import change_since_learned, last_changes
from stream.record.run_record import ProbeRecord, RunRecord
from stream.report.canvas import GREY
from stream.report.chance import chance_scores
from stream.report.many import changed_most, thinned

MOST_POINTS = 60  # of one learning curve; longer ones are averaged over neighbouring steps
CYCLE = ("#440154", "#3B528B", "#21918C", "#5EC962", "#E69F00")  # viridis, the last darkened
SYMBOLS = ("circle", "square", "diamond", "triangle-down", "triangle-up")


def scores_chart(methods: Sequence[Method], record: RunRecord) -> Chart:
    """Score of each task over the stream: one task of all methods, or one method's tasks."""
    data = _curves(methods, record, [method.matrices for method in methods], percent)
    chance = chance_scores(record)
    levels = {t: chance[t] for t in _shown_tasks(methods) if not math.isnan(chance[t])}
    data += [_chance_line(task, len(chance), level) for task, level in levels.items()]
    note = f"From right after it was learned; means over seeds, after ± half of the {INTERVAL}. "
    note += "Dashed grey: guessing among the labels, where that is defined. " * bool(levels)
    note += "Point at a line for its name." + _which(methods)
    axes = layout(TASKS_LEARNED, "score (%)", xaxis=task_axis(methods[0].matrix))
    title = "Score of each task over the stream"
    return Chart("scores", title, note, figure(data, axes), _choices(methods, record))


def changes_chart(methods: Sequence[Method], record: RunRecord) -> Chart:
    """Forgetting curves: one method's tasks, or one task of all methods."""
    changes = [change_since_learned(method.matrices) for method in methods]
    data = _curves(methods, record, changes, signed)
    note = "Score minus the score right after learning; below 0 is forgotten. Means over seeds, "
    note += f"after ± half of the {INTERVAL}. Point at a line for its name.{_which(methods)}"
    label = "change since learned (points)"
    axes = layout(TASKS_LEARNED, label, xaxis=task_axis(methods[0].matrix))
    choices = _choices(methods, record)
    return Chart("changes", "Forgetting curves", note, figure(data, axes), choices)


def _curves(
    methods: Sequence[Method],
    record: RunRecord,
    values: Sequence[np.ndarray],
    show: Callable[[float], str],
) -> list[Any]:
    """Each task's column from its own row on, once for each view that the selector offers.

    Args:
        methods: those of the chart.
        record: a run of the stream.
        values: of each method, fractions, float64 [n, T, T].
        show: how a value is written.
    """
    names = task_names(record, 40)
    shown_tasks, rows = _shown_tasks(methods), thinned(len(names))
    data = []
    for method, scores in zip(methods, values, strict=True):
        mean, half_widths = mean_and_half_width(scores)
        for task in shown_tasks:
            own = rows[rows >= task]
            x, y = (own + 1).tolist(), numbers(mean[own, task], 100)
            half = half_widths[own, task] if len(method.counted) > 1 else None
            changes: dict[str, Any] = {
                "customdata": said_of(mean[own, task], half, show),
                "hovertemplate": "%{fullData.name}<br>after %{x} tasks: %{customdata}"
                "<extra></extra>",
                "mode": line_mode(len(names)),
            }
            shown = {"meta": {"method": method.index, "view": f"task-{task}"}}
            data.append(line(method, x, y, **changes, **shown))
            data.append(line(method, x, y, **changes, **_look_of_task(method, task, names[task])))
    return data


def _shown_tasks(methods: Sequence[Method]) -> list[int]:
    """Return the tasks that have curves: all, or of many those whose score changed most."""
    changes = [last_changes(change_since_learned(m.matrices).mean(axis=0)) for m in methods]
    return changed_most(np.abs(np.nan_to_num(changes)).max(axis=0))


def _which(methods: Sequence[Method]) -> str:
    """Say which tasks have curves where not all of them do."""
    number, total = len(_shown_tasks(methods)), len(methods[0].matrix)
    return "" if number == total else f" The {number} of {total:,} tasks that changed most."


def _look_of_task(method: Method, task: int, name: str) -> dict[str, Any]:
    """How a task's line looks where all are of one method."""
    colour = CYCLE[task % len(CYCLE)]
    symbol = SYMBOLS[task // len(CYCLE) % len(SYMBOLS)]
    return {
        "meta": {"method": method.index, "view": f"method-{method.index}"},
        "name": name,
        "line": {"color": colour, "width": 1.5},
        "marker": {"color": colour, "symbol": symbol, "size": 5},
    }


def _chance_line(task: int, num_tasks: int, level: float) -> Any:
    """What guessing scores on a task, where all methods are shown on it."""
    return graph_objects().Scatter(
        x=[0.5, num_tasks + 0.5],
        y=numbers([level, level], 100),
        mode="lines",
        line={"color": GREY, "dash": "dash", "width": 1},
        name="guessing",
        hovertemplate=f"guessing among the labels: {percent(level)}<extra></extra>",
        meta={"view": f"task-{task}"},
    )


def _choices(
    methods: Sequence[Method], record: RunRecord
) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        ("one task, all methods", _task_choices(record, _shown_tasks(methods))),
        ("one method, all tasks", [(f"method-{m.index}", m.label) for m in methods]),
    ]


def _task_choices(record: RunRecord, tasks: Sequence[int]) -> list[tuple[str, str]]:
    return [(f"task-{n}", visible(f"{n + 1} {record.titles[n]}", 60)) for n in tasks]


def loss_chart(methods: Sequence[Method], record: RunRecord) -> Chart | None:
    """Training loss of a task by step, mean over seeds; None where no run kept any."""
    data, cut, tasks = [], False, _shown_tasks(methods)
    for method in methods:
        for task in tasks:
            curves = [run.record.losses.get(record.order[task]) for run in method.counted]
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
    note += _which(methods)
    axes = layout("step of the task", "loss")
    choices = [("task", _task_choices(record, tasks))]
    return Chart("losses", "Learning curves", note, figure(data, axes), choices, height=360)


def _thinned(curve: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Return (last steps, means) of at most MOST_POINTS runs of neighbouring steps."""
    parts = np.array_split(np.arange(len(curve)), min(len(curve), MOST_POINTS))
    return [float(part[-1] + 1) for part in parts], np.array([curve[p].mean() for p in parts])


def probe_chart(methods: Sequence[Method], record: RunRecord) -> Chart | None:
    """Score of each task while later tasks are learned, mean over seeds; None without a probe."""
    data, without, tasks = [], [], _shown_tasks(methods)
    for method in methods:
        probes = [(run.record.probe, run.record) for run in method.counted]
        curves = [_probe_curves(probe, own) for probe, own in probes if probe is not None]
        if not curves:
            without.append(visible(method.label, 160))
        for task in sorted(set().union(*curves) & set(tasks)):
            own = [curve[task] for curve in curves if task in curve]
            same = [y for x, y in own if x == own[0][0]]  # of the same steps as the first seed's
            shown = {"meta": {"method": method.index, "view": f"task-{task}"}}
            hover = "%{fullData.name}<br>%{x:.2f} tasks: %{customdata}<extra></extra>"
            mean = np.mean(same, axis=0)
            style = {"mode": "lines", "customdata": said_of(mean), "hovertemplate": hover, **shown}
            data.append(line(method, own[0][0], numbers(mean, 100), **style))
    if not data:
        return None
    note = (
        "Scores of the probe, on some rows of the task, while it and later tasks were learned; "
        "means over seeds with the same steps. A whole number on the axis is the end of a task."
    )
    note += f" Without a probe: {', '.join(without)}." if without else ""
    axes = layout(TASKS_LEARNED, "score of the task (%)")
    axes["xaxis"] |= {"dtick": max(1, len(record.order) // 10), "tick0": 0}
    choices = [("task", _task_choices(record, tasks))]
    return Chart("probe", "Stability gap", note, figure(data, axes), choices, height=380)


def _probe_curves(
    probe: ProbeRecord, record: RunRecord
) -> dict[int, tuple[list[float], list[float]]]:
    """Return (tasks learned, score) of every probe of each task, in order of time."""
    last = {point.task: point.step for point in probe.points}
    steps = record.timing.by_task.steps
    curves: dict[int, tuple[list[float], list[float]]] = {}
    for point in probe.points:
        length = steps[point.task] if point.task < len(steps) else last[point.task]
        position = point.task + (point.step / length if length else 0.0)
        for task, score in enumerate(point.scores):
            x, y = curves.setdefault(task, ([], []))
            x.append(round(position, 4))
            y.append(score)
    return curves
