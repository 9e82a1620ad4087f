"""Charts of a report that show the whole stream: averages of all methods, a matrix of each.

T is the number of tasks.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.figures.along_stream import are_bands_clear, running_averages
from analysis.looks import look_of
from analysis.report.plot import Chart, figure, layout, line, numbers, said_of
from analysis.report.plot import require_plotly as graph_objects
from analysis.report.text import chart_text
from analysis.runs.estimate import INTERVAL, mean_and_half_width
from analysis.runs.methods import Method
from stream.formatting import percent
from stream.record.run_record import RunRecord
from stream.report.canvas import ORANGE
from stream.report.many import is_many, round_step

TASKS_LEARNED = "tasks learned"
MOST_CELLS = 200  # of a heat map, along each side
MOST_WRITTEN = 8  # tasks whose scores are written into the cells


def task_names(record: RunRecord, limit: int = 22) -> list[str]:
    """Return the T numbered titles as chart labels."""
    return [f"{n} {chart_text(title, limit)}" for n, title in enumerate(record.titles, start=1)]


def task_axis(matrix: np.ndarray) -> dict[str, object]:
    """Return an axis of the T tasks learned, with whole numbers."""
    return {"range": [0.5, len(matrix) + 0.5], "dtick": max(1, len(matrix) // 5), "tick0": 0}


def line_mode(num_points: int) -> str:
    """Return whether a line has marks; of many points they hide each other."""
    return "lines" if is_many(num_points) else "lines+markers"


def average_chart(methods: Sequence[Method]) -> Chart:
    """The average over the tasks learned so far, with its interval over seeds."""
    data = []
    stats = [mean_and_half_width(running_averages(method)) for method in methods]
    has_bands = are_bands_clear(stats)
    for method, (mean, half_width) in zip(methods, stats, strict=True):
        x, number = range(1, len(mean) + 1), len(method.counted)
        if number > 1 and has_bands:
            data.append(_band(method, mean, half_width))
        hover = "%{fullData.name}<br>after %{x} tasks: %{customdata}<extra></extra>"
        said = said_of(mean, half_width if number > 1 else None)
        style = {"customdata": said, "hovertemplate": hover, "mode": line_mode(len(mean))}
        data.append(line(method, x, numbers(mean, 100), **style))
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
    rows = [row[steps - 1] for row in method.matrix[steps - 1]]
    averages = [row[: after + 1].mean() for after, row in enumerate(method.matrix)]
    found: dict[str, Any] = {
        "z": [numbers(row, 100) for row in rows],
        "x": steps.tolist(),
        "y": steps.tolist(),
        "customdata": [said_of(row) for row in rows],
        "hovertemplate": "after task %{y}<br>on task %{x}: %{customdata}<extra></extra>",
        "meta": {"method": method.index, "averages": said_of(averages)},
    }
    if not is_many(len(names)):
        found["text"] = [[f"after {row}<br>on {column}" for column in names] for row in names]
        found["hovertemplate"] = "%{text}: %{customdata}<extra></extra>"
        found["xgap"] = found["ygap"] = 1
    return found


def _written(scores: np.ndarray, cells: dict[str, Any]) -> dict[str, Any]:
    """Return cells with their scores in them, in whole percent."""
    said = zip(cells["text"], cells["customdata"], strict=True)
    both = [[f"{where}: {score}" for where, score in zip(*row, strict=True)] for row in said]
    whole = [["" if np.isnan(s) else percent(s, 0) for s in row] for row in scores]
    hover = "%{customdata}<extra></extra>"
    return {**cells, "text": whole, "texttemplate": "%{text}", "customdata": both} | {
        "hovertemplate": hover
    }


def _matrix(method: Method, names: Sequence[str]) -> Chart:
    cells = _cells(method, names)
    if len(names) <= MOST_WRITTEN:
        cells = _written(method.matrix, cells)
    viridis = graph_objects().Heatmap(colorscale="Viridis").colorscale
    below = [[0, ORANGE], [0.4999, ORANGE]]
    scale = [*below, *([0.5 + position / 2, colour] for position, colour in viridis)]
    heat = graph_objects().Heatmap(
        zmin=-100,
        zmax=100,
        colorscale=scale,
        showscale=False,
        **cells,
    )
    ends = [0.5, len(names) + 0.5]  # also where no task is learned yet
    axes = layout(
        *("score on task", "after learning task"),
        xaxis={"range": ends},
        yaxis={"range": ends[::-1]},
    )
    for axis in (axes["xaxis"], axes["yaxis"]):
        ticks = {"dtick": max(1, len(names) // 6), "tick0": 1}
        if is_many(len(names)):
            ticks = {"dtick": round_step(len(names), 6), "tick0": 0}
        axis |= {"showgrid": False, "ticks": "", **ticks}
    axes["margin"] |= {"l": 44, "r": 4, "t": 4, "b": 40}
    number = len(method.counted)
    note = f"mean of {number} seeds" if number > 1 else "one seed"
    if not method.is_complete:
        note = f"PARTIAL: {method.num_learned} of {len(names)} tasks learned"
    if is_many(len(names)):
        note += f"; a cell for each {_every(len(names))} tasks and rows"
    return Chart(f"matrix-{method.index}", method.label, note, figure([heat], axes), height=330)
