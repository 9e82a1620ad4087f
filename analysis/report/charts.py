"""Charts of a report that show the whole stream: averages of all methods, a matrix of each.

T is the number of tasks.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.looks import look_of
from analysis.report.plot import Chart, figure, layout, line, numbers
from analysis.report.plot import require_plotly as graph_objects
from analysis.report.text import chart_text
from analysis.runs.estimate import INTERVAL, mean_and_half_width
from analysis.runs.methods import Method
from stream.record.run_record import RunRecord
from stream.report.canvas import ORANGE, running_average
from stream.report.many import is_many

TASKS_LEARNED = "tasks learned"
MOST_CELLS = 200  # of a heat map, along each side
MOST_BANDS = 8  # methods; bands of more hide each other


def task_names(record: RunRecord, limit: int = 22) -> list[str]:
    """Return the T numbered titles as chart labels."""
    return [f"{n} {chart_text(title, limit)}" for n, title in enumerate(record.titles, start=1)]


def task_axis(matrix: np.ndarray) -> dict[str, object]:
    """Return an axis of the T tasks learned, with whole numbers."""
    return {"range": [0.5, len(matrix) + 0.5], "dtick": max(1, len(matrix) // 5), "tick0": 0}


def average_chart(methods: Sequence[Method]) -> Chart:
    """The average over the tasks learned so far, with its interval over seeds."""
    data, has_bands = [], len(methods) <= MOST_BANDS
    for method in methods:
        averages = np.array([running_average(run.record) for run in method.counted])  # n x T
        x, (mean, half_width) = range(1, averages.shape[1] + 1), mean_and_half_width(averages)
        if len(averages) > 1 and has_bands:
            data.append(_band(method, mean, half_width))
        text = numbers(half_width, 100)
        after = "%{fullData.name}<br>after %{x} tasks: %{y:.1f}"
        hover = after + (" ± %{customdata:.1f}" if len(averages) > 1 else "") + "<extra></extra>"
        data.append(line(method, x, numbers(mean, 100), customdata=text, hovertemplate=hover))
    note = "Mean of the scores on all tasks learned so far, over seeds. "
    note += "Bands and numbers after ±" if has_bands else "Numbers after ±"
    note += f": {INTERVAL} over the seeds, none of one seed."
    axes = layout(TASKS_LEARNED, "average score (%)", xaxis=task_axis(methods[0].matrix))
    return Chart("average", "Average over the stream", note, figure(data, axes))


def _band(method: Method, mean: np.ndarray, half_width: np.ndarray) -> object:
    """Return the area between the bounds of the interval."""
    known = ~np.isnan(mean)
    x = np.arange(1, len(mean) + 1)[known]
    low, high = (mean - half_width)[known], (mean + half_width)[known]
    return graph_objects().Scatter(
        x=[*x.tolist(), *x[::-1].tolist()],
        y=numbers([*high, *low[::-1]], 100),
        fill="toself",
        fillcolor=look_of(method.index).colour,
        opacity=0.18,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        meta={"method": method.index},
    )


def matrix_charts(methods: Sequence[Method], record: RunRecord) -> list[Chart]:
    """One heat map per method; the page shows rows up to the slider's task."""
    return [_matrix(method, task_names(record, 40)) for method in methods]


def _every(num_tasks: int) -> int:
    """Return how many tasks stand for one cell of a heat map."""
    return math.ceil(num_tasks / MOST_CELLS) if is_many(num_tasks) else 1


def _cells(method: Method, names: Sequence[str]) -> dict[str, Any]:
    """Return the scores of a heat map, where they stand, and what is said of one."""
    every = _every(len(names))
    steps = np.arange(every, len(names) + 1, every)  # of many tasks, some
    found: dict[str, Any] = {
        "z": [numbers(row[steps - 1], 100) for row in method.matrix[steps - 1]],
        "x": steps.tolist(),
        "y": steps.tolist(),
        "meta": {"method": method.index},
    }
    if is_many(len(names)):
        averages = [row[: after + 1].mean() for after, row in enumerate(method.matrix)]
        found["meta"]["averages"] = numbers(averages, 100)
        found["hovertemplate"] = "after task %{y}<br>on task %{x}: %{z:.1f}<extra></extra>"
    else:
        found["text"] = [[f"after {row}<br>on {column}" for column in names] for row in names]
        found["hovertemplate"] = "%{text}: %{z:.1f}<extra></extra>"
        found["xgap"] = found["ygap"] = 1
    return found


def _matrix(method: Method, names: Sequence[str]) -> Chart:
    cells = _cells(method, names)
    viridis = graph_objects().Heatmap(colorscale="Viridis").colorscale
    below = [[0, ORANGE], [0.4999, ORANGE]]
    scale = [*below, *([0.5 + position / 2, colour] for position, colour in viridis)]
    heat = graph_objects().Heatmap(
        zmin=-100,
        zmax=100,
        colorscale=scale,
        showscale=False,
        texttemplate="%{z:.0f}" if len(names) <= 8 else None,
        **cells,
    )
    axes = layout("score on task", "after learning task", yaxis={"autorange": "reversed"})
    for axis in (axes["xaxis"], axes["yaxis"]):
        axis |= {"showgrid": False, "dtick": max(1, len(names) // 6), "tick0": 1, "ticks": ""}
    axes["margin"] |= {"l": 44, "r": 4, "t": 4, "b": 40}
    number = len(method.counted)
    note = f"mean of {number} seeds" if number > 1 else "one seed"
    if not method.is_complete:
        note = f"PARTIAL: {method.num_learned} of {len(names)} tasks learned"
    if is_many(len(names)):
        note += f"; a cell for each {_every(len(names))} tasks and rows"
    return Chart(f"matrix-{method.index}", method.label, note, figure([heat], axes), height=330)
