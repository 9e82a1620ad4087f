"""Where the numbers of a report come from: data, settings, runs, versions."""

from collections import Counter
from collections.abc import Sequence

from analysis.report.tables import SortedTable, TableCell, TableColumn
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import Method
from analysis.runs.names import settings_of
from analysis.runs.values import num_learned
from stream.formatting import DASH, percent, stream_title, visible
from stream.record.run_record import RunRecord


def settings_table(methods: Sequence[Method]) -> list[tuple[Method, list[tuple[str, str]]]]:
    """The settings of each method that not all methods share."""
    settings = [settings_of(method.runs[0].record) for method in methods]
    shared = _shared(settings)
    return [
        (method, [(visible(k), visible(v)) for k, v in sorted(own.items()) if k not in shared])
        for method, own in zip(methods, settings, strict=True)
    ]


def shared_settings(methods: Sequence[Method]) -> list[tuple[str, str]]:
    """The settings that all methods share."""
    shared = _shared([settings_of(method.runs[0].record) for method in methods])
    return [(visible(key), visible(value)) for key, value in sorted(shared.items())]


def _shared(settings: Sequence[dict[str, str]]) -> dict[str, str]:
    first = settings[0]
    return {k: v for k, v in first.items() if all(own.get(k) == v for own in settings)}


def run_table(methods: Sequence[Method]) -> SortedTable:
    """One line per run: method, seed, what is counted, device, folder."""
    names = ["method", "seed", "tasks learned", "counted", "average score %", "device", "folder"]
    rows = []
    for method in methods:
        counted = {id(run) for run in method.counted}
        rows += [_run_cells(method, run, is_counted=id(run) in counted) for run in method.runs]
    return SortedTable([TableColumn(name) for name in names], rows)


def _run_cells(method: Method, run: RecordedRun, *, is_counted: bool) -> list[TableCell]:
    record = run.record
    done, total = num_learned(record), len(record.order)
    is_whole = record.status == "complete"
    score = record.metrics["average_score"]
    why = "yes" if is_counted else "no: seed repeated" if is_whole else "no: partial"
    device, folder = visible(record.computed_on), visible(run.path)
    learned = f"{done} of {total}" + ("" if is_whole else " PARTIAL")
    return [
        TableCell(method.label, method.label, method.index),
        TableCell(str(record.seed), record.seed),
        TableCell(learned, done, loud=not is_whole),
        TableCell(why, why),
        TableCell(percent(score), score),
        TableCell(device, device),
        TableCell(folder, folder),
    ]


def versions(methods: Sequence[Method]) -> list[tuple[str, str]]:
    """Each package and its versions; with the number of runs where runs differ."""
    found: dict[str, Counter[str]] = {}
    for record in (run.record for method in methods for run in method.runs):
        for name, version in record.versions.items():
            found.setdefault(name, Counter())[visible(version)] += 1
    return [
        (visible(name), next(iter(counts)) if len(counts) == 1 else _counted(counts))
        for name, counts in found.items()
    ]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{version} ({number} runs)" for version, number in counts.items())


def data_facts(record: RunRecord) -> list[tuple[str, str]]:
    """Stream, source, split, rows and hash of the data, in words."""
    rows, leaks = record.data.rows.values(), record.data.leaks
    sums = {s: sum(row.get(s, 0) for row in rows) for s in ("train", "validation", "test")}
    return [
        ("stream", f"{stream_title(visible(record.stream))}, {len(record.order)} tasks"),
        ("source", visible(record.source)),
        ("scores on", f"the {visible(record.split)} split"),
        ("rows in all", ", ".join(f"{n:,} {s}" for s, n in sums.items()) if rows else DASH),
        ("SHA-256 of the rows", visible(record.data.hash)),
        ("held-out texts found in train sets", f"{sum(leak['count'] for leak in leaks):,}"),
    ]
