"""Charts of a report that show all methods at once: averages, forgetting, growth, cost."""

from collections.abc import Sequence

import numpy as np

from analysis.report_methods import Method, Results, Value, metric, spread, train_flops, train_s
from analysis.report_plot import Chart, figure, grey_line, layout, line, looks, numbers
from analysis.report_plot import require_plotly as graph_objects
from analysis.report_text import chart_text
from stream.metrics import forgetting_by_task
from stream.plots import running_average
from stream.wording import TIMES

TASKS_LEARNED = "tasks learned"


def task_names(results: Results, limit: int = 22) -> list[str]:
    """Return the T numbered titles as chart labels."""
    titles = results.get("titles") or results["order"]
    return [f"{n} {chart_text(title, limit)}" for n, title in enumerate(titles, start=1)]


def average_chart(methods: Sequence[Method]) -> Chart:
    """The average over the tasks learned so far, with one sample deviation over seeds."""
    data = []
    for method in methods:
        averages = np.array([running_average(run.results) for run in method.counted])  # n x T
        x, mean, sd = range(1, averages.shape[1] + 1), averages.mean(axis=0), spread(averages)
        if len(averages) > 1:
            data.append(_band(method, mean, sd))
        text = numbers(sd, 100)
        after = "%{fullData.name}<br>after %{x} tasks: %{y:.1f}"
        hover = after + (" ± %{customdata:.1f}" if len(averages) > 1 else "") + "<extra></extra>"
        data.append(line(method, x, numbers(mean, 100), customdata=text, hovertemplate=hover))
    note = "Mean of the scores on all tasks learned so far. Bands: one sample deviation over seeds."
    axes = layout(TASKS_LEARNED, "average score (%)")
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
    """How far each task but the last fell from its best, at the end."""
    names, data = task_names(results), []
    for method in methods:
        drops = np.full((len(method.counted), len(names)), np.nan)
        for row, matrix in zip(drops, method.matrices, strict=True):
            found = forgetting_by_task(matrix)
            row[: len(found)] = found
        error = {"type": "data", "array": numbers(spread(drops), 100), "thickness": 1, "width": 3}
        hover = "%{fullData.name}<br>%{y}: %{x:.1f}<extra></extra>"
        changes = {"mode": "markers", "error_x": error, "hovertemplate": hover}
        x = numbers(drops.mean(axis=0), 100)
        data.append(line(method, x, names, **changes))  # type: ignore[arg-type]
    note = (
        "Best score since it was learned minus the score at the end (Chaudhry et al. 2018); left "
        "of 0: better than ever before. Bars: one sample deviation over seeds."
    )
    axes = layout(
        "forgetting (percentage points)",
        "",
        xaxis={"zeroline": True, "zerolinecolor": "#222222"},
        yaxis={"autorange": "reversed", "type": "category", "categoryarray": names},
    )
    axes["yaxis"]["tickfont"] = {"size": 11}
    height = 110 + 22 * len(names)
    return Chart("forgetting", "Forgetting by task", note, figure(data, axes), height=height)


def growth_chart(methods: Sequence[Method], results: Results) -> Chart:
    """Stored parameters as a multiple of the base, beside one copy of the model a task."""
    tasks = list(range(len(results["order"]) + 1))
    data = [grey_line(tasks[1:], tasks[1:], "one copy of the model a task")]
    for method in methods:
        ledger = method.counted[0].results["ledger"]
        stored = [row["stored_parameters"] / ledger["base_parameters"] for row in ledger["tasks"]]
        hover = f"%{{fullData.name}}<br>after %{{x}} tasks: %{{y:.2f}}{TIMES}<extra></extra>"
        data.append(line(method, tasks[1:], numbers(stored), hovertemplate=hover))
    note = (
        "All that is stored to serve the tasks so far, as a multiple of the encoder's parameters, "
        "first seed. Dashed grey: one fine-tuned copy a task. Methods that train nothing of the "
        "encoder lie on top of each other near 1."
    )
    axes = layout(TASKS_LEARNED, f"stored ({TIMES} encoder, log)", yaxis={"type": "log"})
    axes["yaxis"]["dtick"] = "D2"  # 1, 2, 5, 10, ...
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
        error = {"type": "data", "thickness": 1, "width": 3}
        hover = "%{fullData.name}<br>%{x:.4s} " + name + ": %{y:.1f}<extra></extra>"
        changes = {
            "mode": "markers",
            "marker": {
                "size": 13,
                "color": looks(method.index)[0],
                "symbol": looks(method.index)[2],
            },
            "error_x": {**error, "array": numbers([spent.sd])},
            "error_y": {**error, "array": numbers([score.sd], 100)},
            "hovertemplate": hover,
        }
        data.append(line(method, numbers([spent.mean]), numbers([score.mean], 100), **changes))  # type: ignore[arg-type]
    axes = layout(f"{name} of learning, all tasks (log)", "average score at the end (%)")
    axes["xaxis"] |= {"type": "log", "dtick": "D2", "exponentformat": "SI"}
    missing = f" Without: {', '.join(absent)}." if absent else ""
    note += "Bars: one sample deviation over seeds." + missing
    return Chart(name, title, note, figure(data, axes), height=400)
