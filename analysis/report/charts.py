"""Charts of a report that show all methods at once: averages, forgetting, growth, cost."""

from collections.abc import Sequence

import numpy as np

from analysis.runs.methods import Method, Results, Value, metric, spread
from analysis.report.plot import (
    INK,
    Chart,
    figure,
    grey_line,
    layout,
    line,
    log_ticks,
    looks,
    numbers,
)
from analysis.report.plot import require_plotly as graph_objects
from analysis.text import chart_text
from analysis.runs.collect import train_flops, train_s
from stream.formatting import TIMES
from stream.metrics import forgetting_by_task
from stream.report.plots import running_average

TASKS_LEARNED = "tasks learned"
MOST_BANDS = 8  # methods; bands of more hide each other
BARS = {"type": "data", "thickness": 1, "width": 3}  # error bars


def task_names(results: Results, limit: int = 22) -> list[str]:
    """Return the T numbered titles as chart labels."""
    titles = results.get("titles") or results["order"]
    return [f"{n} {chart_text(title, limit)}" for n, title in enumerate(titles, start=1)]


def task_axis(matrix: np.ndarray) -> dict[str, object]:
    """Return an axis of the T tasks learned, with whole numbers."""
    return {"range": [0.5, len(matrix) + 0.5], "dtick": max(1, len(matrix) // 5), "tick0": 0}


def average_chart(methods: Sequence[Method]) -> Chart:
    """The average over the tasks learned so far, with one sample deviation over seeds."""
    data, has_bands = [], len(methods) <= MOST_BANDS
    for method in methods:
        averages = np.array([running_average(run.results) for run in method.counted])  # n x T
        x, mean, sd = range(1, averages.shape[1] + 1), averages.mean(axis=0), spread(averages)
        if len(averages) > 1 and has_bands:
            data.append(_band(method, mean, sd))
        text = numbers(sd, 100)
        after = "%{fullData.name}<br>after %{x} tasks: %{y:.1f}"
        hover = after + (" ± %{customdata:.1f}" if len(averages) > 1 else "") + "<extra></extra>"
        data.append(line(method, x, numbers(mean, 100), customdata=text, hovertemplate=hover))
    note = "Mean of the scores on all tasks learned so far, over seeds. "
    note += f"{'Bands' if has_bands else 'Numbers after ±'}: one sample deviation over seeds."
    axes = layout(TASKS_LEARNED, "average score (%)", xaxis=task_axis(methods[0].matrix))
    return Chart("average", "Average over the stream", note, figure(data, axes))


def _band(method: Method, mean: np.ndarray, sd: np.ndarray) -> object:
    """Return the area between one deviation below and above."""
    known = ~np.isnan(mean)
    x = np.arange(1, len(mean) + 1)[known]
    low, high = (mean - sd)[known], (mean + sd)[known]
    return graph_objects().Scatter(
        x=[*x.tolist(), *x[::-1].tolist()],
        y=numbers([*high, *low[::-1]], 100),
        fill="toself",
        fillcolor=looks(method.index)[0],
        opacity=0.18,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        meta={"method": method.index},
    )


def forgetting_chart(methods: Sequence[Method], results: Results) -> Chart:
    """How far each task but the last fell from its best, at the end; methods a little apart."""
    names, data = task_names(results)[:-1], []
    for method in methods:
        drops = np.full((len(method.counted), len(names)), np.nan)
        for row, matrix in zip(drops, method.matrices, strict=True):
            found = forgetting_by_task(matrix)
            row[: len(found)] = found
        apart = 0.6 * ((method.index + 0.5) / len(methods) - 0.5)
        changes = {
            "mode": "markers",
            "text": names,
            "error_x": {**BARS, "array": numbers(spread(drops), 100)},
            "hovertemplate": "%{fullData.name}<br>%{text}: %{x:.1f}<extra></extra>",
        }
        x, y = numbers(drops.mean(axis=0), 100), numbers(np.arange(len(names)) + apart)
        data.append(line(method, x, y, **changes))
    note = (
        "Best score since it was learned minus the score at the end (Chaudhry et al. 2018), in "
        "percentage points; left of 0: better than ever before. Bars: one sample deviation."
    )
    axes = layout("forgetting (points)", "")
    axes["xaxis"] |= {"zeroline": True, "zerolinecolor": INK}
    axes["yaxis"] |= {"tickvals": list(range(len(names))), "ticktext": names}
    axes["yaxis"] |= {"range": [len(names) - 0.4, -0.6], "tickfont": {"size": 11}}
    height = 110 + max(24, 5 * len(methods)) * len(names)
    return Chart("forgetting", "Forgetting by task", note, figure(data, axes), height=height)


def growth_chart(methods: Sequence[Method], results: Results) -> Chart:
    """Stored parameters as a multiple of the base, beside one copy of the model a task."""
    tasks = list(range(len(results["order"]) + 1))
    data = []
    for method in methods:
        ledger = method.counted[0].results["ledger"]
        stored = [row["stored_parameters"] / ledger["base_parameters"] for row in ledger["tasks"]]
        hover = f"%{{fullData.name}}<br>after %{{x}} tasks: %{{y:.2f}}{TIMES}<extra></extra>"
        data.append(line(method, tasks[1:], numbers(stored), hovertemplate=hover))
    data.append(grey_line(tasks[1:], tasks[1:], "one copy of the model a task"))
    note = (
        "All that is stored to serve the tasks so far, as a multiple of the encoder's parameters, "
        "first seed. Dashed grey: one fine-tuned copy a task."
    )
    axes = layout(TASKS_LEARNED, f"stored ({TIMES} encoder, log)", yaxis={"type": "log"})
    axes["xaxis"] |= task_axis(methods[0].matrix)
    axes["yaxis"] |= log_ticks([value for trace in data for value in trace.y])
    return Chart("growth", "Growth of parameters", note, figure(data, axes))


def cost_charts(methods: Sequence[Method]) -> list[Chart]:
    """Average score at the end against seconds, and where they were counted, operations."""
    seconds = "Seconds of learning depend on the machine; see which in the table of runs. "
    charts = [_cost("seconds", "Training time against score", seconds, train_s, methods)]
    if any(method.estimate(train_flops).n for method in methods):
        counted = "Floating-point operations of learning, as torch counts them. "
        title = "Training operations against score"
        charts.append(_cost("operations", title, counted, train_flops, methods))
    return charts


def _cost(name: str, title: str, note: str, cost: Value, methods: Sequence[Method]) -> Chart:
    data, absent = [], []
    for method in methods:
        spent, score = method.estimate(cost), method.estimate(metric("average_score"))
        if not (spent.n and score.n and spent.mean > 0):
            absent.append(chart_text(method.label, 60))
            continue
        colour, _, marker = looks(method.index)
        changes = {
            "mode": "markers",
            "marker": {"size": 13, "color": colour, "symbol": marker},
            "error_x": {**BARS, "array": numbers([spent.sd])},
            "error_y": {**BARS, "array": numbers([score.sd], 100)},
            "hovertemplate": f"%{{fullData.name}}<br>%{{x:.4s}} {name}: %{{y:.1f}}<extra></extra>",
        }
        data.append(line(method, numbers([spent.mean]), numbers([score.mean], 100), **changes))
    axes = layout(f"{name} of learning, all tasks (log)", "average score at the end (%)")
    axes["xaxis"] |= {"type": "log", **log_ticks([trace.x[0] for trace in data])}
    missing = f" Without: {', '.join(absent)}." if absent else ""
    note += "Bars: one sample deviation over seeds." + missing
    return Chart(name, title, note, figure(data, axes), height=400)
