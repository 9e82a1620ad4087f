"""One HTML file about one run or many, that needs no network to be read.

It is put together here, from tables, charts and drawings; how it looks and moves is in ``page/``.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from analysis.looks import look_of
from analysis.report.charts import average_chart, matrix_charts
from analysis.report.curves import changes_chart, loss_chart, probe_chart, scores_chart
from analysis.report.drawings import COST, LOST, MAP, Image, images
from analysis.report.facts import data_facts, run_table, settings_table, shared_settings, versions
from analysis.report.plot import Chart, require_plotly
from analysis.report.rerun import commands
from analysis.report.tables import headline_table, task_table
from analysis.report.text import script_json
from analysis.runs.cautions import cautions
from analysis.runs.collect import RecordedRun
from analysis.runs.comparable import largest_comparable
from analysis.runs.estimate import INTERVAL
from analysis.runs.methods import Method, build_methods
from stream.files.atomic import write_atomic
from stream.formatting import count, data_label, stream_title, visible
from stream.record.run_record import RunRecord

PAGE = "page"
NO_PROBE = "No stability gap: no run has a probe (probe.every=N records one)."
NO_LOSSES = "No learning curves: no run recorded its losses."


@dataclass(frozen=True)
class Section:
    """A part of the page: its heading, what is drawn in it, and a sentence on what is missing."""

    anchor: str
    heading: str
    charts: Sequence[Chart] = ()
    images: Sequence[Image] = ()
    missing: str = ""


def write_report(runs: Sequence[RecordedRun], problems: Sequence[str], out: Path) -> list[str]:
    """Write the report of the largest comparable group of runs, whole or not at all.

    Args:
        runs: at least one.
        problems: what could not be read, one line each; the report repeats them.
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


def render(runs: Sequence[RecordedRun], problems: Sequence[str] = ()) -> str:
    """Return the page about comparable runs."""
    methods, record = _for_readers(build_methods(runs)), runs[0].record
    sections = _sections(methods, runs)
    matrices = matrix_charts(methods, record)
    charts = [*matrices, *(chart for section in sections for chart in section.charts)]
    environment = Environment(
        loader=PackageLoader("analysis.report", PAGE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        **_words(methods, record),
        problems=[visible(line, 400) for line in problems],
        cautions=[visible(line, 400) for line in cautions(runs)],
        chips={method.index: _chip(method) for method in methods},
        overview=_overview(runs),
        matrices=list(zip(methods, matrices, strict=True)),
        sections=sections,
        data=Markup(script_json({chart.name: chart.figure for chart in charts})),
        style=_asset(environment, "page.css"),
        script=_asset(environment, "page.js"),
        plotly=Markup(importlib.import_module("plotly.offline").get_plotlyjs()),
    )


def _for_readers(methods: Sequence[Method]) -> list[Method]:
    """Return the methods in the order of the page: references last."""
    return sorted(methods, key=lambda method: method.is_reference)


def _words(methods: Sequence[Method], record: RunRecord) -> Mapping[str, Any]:
    """What the page says in words and tables."""
    return {
        "summary": summary(methods, record),
        "title": f"{stream_title(visible(record.stream))}: {count(len(methods), 'method')}",
        "is_generated": record.source == "generated",
        "num_tasks": len(record.order),
        "headline": headline_table(methods),
        "interval": INTERVAL,
        "tasks": task_table(methods, record),
        "facts": data_facts(record),
        "settings": settings_table(methods),
        "shared": shared_settings(methods),
        "runs": run_table(methods),
        "versions": versions(methods),
        "commands": [visible(line, 4000) for m in methods for line in commands(m.runs)],
    }


def _asset(environment: Environment, name: str) -> Markup:
    """Return a file of the page as it stands; none of them holds anything of a run."""
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


def _overview(runs: Sequence[RecordedRun]) -> Section:
    """The picture that says most, next to the numbers."""
    found, missing = images(MAP, runs)
    return Section("overview", "Forgetting at a glance", images=found, missing=" ".join(missing))


def _sections(methods: Sequence[Method], runs: Sequence[RecordedRun]) -> list[Section]:
    """What is drawn, by heading."""
    record = runs[0].record
    losses, probe = loss_chart(methods, record), probe_chart(methods, record)
    missing = " ".join(
        text for chart, text in ((losses, NO_LOSSES), (probe, NO_PROBE)) if chart is None
    )
    stream = average_chart(methods), scores_chart(methods, record)
    within = [chart for chart in (losses, probe) if chart is not None]
    lost, not_lost = images(LOST, runs)
    curves = [changes_chart(methods, record)] if lost else []
    costs, no_costs = images(COST, runs)
    return [
        Section("stream", "Over the stream", charts=stream),
        Section("forgetting", "What was lost", curves, lost, " ".join(not_lost)),
        Section("cost", "What it cost", images=costs, missing=" ".join(no_costs)),
        Section("within", "Within tasks", charts=within, missing=missing),
    ]


def _chip(method: Method) -> dict[str, Any]:
    """What the list of methods shows of one."""
    look, number, total = look_of(method.index), len(method.counted), len(method.runs)
    notes = [count(number, "seed") if method.is_complete else "PARTIAL"]
    if total > number:
        notes.append(f"{total - number} more not counted")
    if method.is_reference:
        notes.append("reference")
    return {
        "index": method.index,
        "label": method.label,
        "settings": method.settings,
        "is_reference": method.is_reference,
        "is_partial": not method.is_complete,
        "notes": ", ".join(notes),
        "colour": look.colour,
        "dashes": look.dashes.svg,
        "filling": look.filling,
        "shape": look.marker.svg,
    }


def summary(methods: Sequence[Method], record: RunRecord) -> str:
    """Say in one sentence what the report is about."""
    runs = sum(len(method.runs) for method in methods)
    backbones = sorted({visible(run.record.backbone) for m in methods for run in m.runs})
    data = data_label(visible(record.source))
    where = stream_title(visible(record.stream))
    return (
        f"{count(len(methods), 'method')}, {count(runs, 'run')} on {where}: "
        f"{count(len(record.order), 'task')}, {data}, {', '.join(backbones)}, "
        f"{visible(record.split)} scores"
    )
