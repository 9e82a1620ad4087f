"""One HTML file about one run or many, that needs no network to be read.

It is put together here, from tables and charts; how it looks and moves is in ``page/``.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from analysis.report.charts import average_chart, cost_charts, forgetting_chart, growth_chart
from analysis.report.curves import loss_chart, matrix_charts, probe_chart, scores_chart
from analysis.report.facts import data_facts, run_table, settings_table, shared_settings, versions
from analysis.runs.methods import Method, Results, build_methods
from analysis.report.plot import MARKERS, Chart, looks, require_plotly
from analysis.report.tables import headline_table, task_table
from analysis.text import script_json, visible
from analysis.runs.collect import Run
from analysis.runs.comparable import largest_comparable
from stream.atomic_io import write_atomic
from stream.formatting import count, data_label

PAGE = "page"
NO_PROBE = "No stability gap: no run has a probe (probe.every=N records one)."
NO_LOSSES = "No learning curves: no run recorded its losses."
SVG_DASHES = {"solid": "", "dash": "6 3", "dashdot": "6 3 2 3", "dot": "2 3"}


def write_report(runs: Sequence[Run], problems: Sequence[str], out: Path) -> list[str]:
    """Write the report of the largest comparable group of runs, whole or not at all.

    Args:
        runs: at least one.
        problems: what could not be read, a line each; the report repeats them.
        out: the HTML file.

    Returns:
        A line for each run that is not in the report.

    Raises:
        UserError: plotly is not installed.
    """
    require_plotly()
    chosen, left_out = largest_comparable(runs)
    page = render(chosen, [*problems, *left_out])
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(out, page.encode())
    return left_out


def render(runs: Sequence[Run], problems: Sequence[str] = ()) -> str:
    """Return the page about comparable runs."""
    methods, results = build_methods(runs), runs[0].results
    matrices = matrix_charts(methods, results)
    sections = _sections(methods, results)
    charts = [*matrices, *(chart for _, _, members, _ in sections for chart in members)]
    # Brings the configuration's schema along, which no other command needs.
    from analysis.report.rerun import command

    environment = Environment(
        loader=PackageLoader("analysis.report", PAGE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        summary=summary(methods, results),
        title=f"{visible(results['stream'])}: {count(len(methods), 'method')}",
        is_generated=results["source"] == "generated",
        problems=[visible(line, 400) for line in problems],
        methods=[_chip(method) for method in methods],
        num_tasks=len(results["order"]),
        matrices=matrices,
        sections=sections,
        headline=headline_table(methods),
        tasks=task_table(methods, results),
        facts=data_facts(results),
        settings=settings_table(methods),
        shared=shared_settings(methods),
        runs=run_table(methods),
        versions=versions(methods),
        commands=[(method, visible(command(method.runs), 4000)) for method in methods],
        data=Markup(script_json({chart.name: chart.figure for chart in charts})),
        style=_asset(environment, "page.css"),
        script=_asset(environment, "page.js"),
        plotly=Markup(importlib.import_module("plotly.offline").get_plotlyjs()),
    )


def _asset(environment: Environment, name: str) -> Markup:
    """Return a file of the page as it stands; none of them holds anything of a run."""
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


Section = tuple[str, str, list[Chart], str]  # anchor, heading, charts, what is missing


def _sections(methods: Sequence[Method], results: Results) -> list[Section]:
    """The charts by heading; a sentence where there is nothing to draw."""
    losses, probe = loss_chart(methods, results), probe_chart(methods, results)
    absent = [text for chart, text in ((losses, NO_LOSSES), (probe, NO_PROBE)) if chart is None]
    within = [chart for chart in (losses, probe) if chart is not None]
    return [
        (
            "stream",
            "Over the stream",
            [average_chart(methods), scores_chart(methods, results)],
            "",
        ),
        ("forgetting", "What was lost", [forgetting_chart(methods, results)], ""),
        (
            "cost",
            "What it cost",
            [growth_chart(methods, results), *cost_charts(methods)],
            "",
        ),
        ("within", "Within tasks", within, " ".join(absent)),
    ]


def _chip(method: Method) -> dict[str, Any]:
    """What the list of methods shows of one."""
    colour, dashes, marker = looks(method.index)
    number, total = len(method.counted), len(method.runs)
    notes = [count(number, "seed") if method.partial is None else "PARTIAL"]
    if total > number:
        notes.append(f"{total - number} more not counted")
    if method.is_reference:
        notes.append("reference")
    return {
        "index": method.index,
        "label": method.label,
        "is_reference": method.is_reference,
        "is_partial": method.partial is not None,
        "notes": ", ".join(notes),
        "colour": colour,
        "dashes": SVG_DASHES[dashes],
        "letter": MARKERS[marker],
    }


def summary(methods: Sequence[Method], results: Results) -> str:
    """Say in one sentence what the report is about."""
    runs = sum(len(method.runs) for method in methods)
    backbones = sorted({visible(run.results["backbone"]) for m in methods for run in m.runs})
    data = data_label(visible(results["source"]))
    split = visible(results.get("split", "test"))
    return (
        f"{count(len(methods), 'method')}, {count(runs, 'run')} on {visible(results['stream'])}: "
        f"{count(len(results['order']), 'task')}, {data}, {', '.join(backbones)}, {split} scores"
    )
