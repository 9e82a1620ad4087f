"""Where the numbers of a report come from: data, settings, runs, versions."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from analysis.runs.methods import Method, Results
from analysis.report.tables import Cell, Column, Table
from analysis.text import visible
from analysis.runs.comparable import num_learned, settings_of
from stream.formatting import DASH, percent


def settings_table(methods: Sequence[Method]) -> list[tuple[Method, list[tuple[str, str]]]]:
    """The settings of each method that not all methods share."""
    settings = [settings_of(method.runs[0].results) for method in methods]
    shared = _shared(settings)
    return [
        (method, [(visible(k), visible(v)) for k, v in sorted(own.items()) if k not in shared])
        for method, own in zip(methods, settings, strict=True)
    ]


def shared_settings(methods: Sequence[Method]) -> list[tuple[str, str]]:
    """The settings that all methods share."""
    shared = _shared([settings_of(method.runs[0].results) for method in methods])
    return [(visible(key), visible(value)) for key, value in sorted(shared.items())]


def _shared(settings: Sequence[dict[str, str]]) -> dict[str, str]:
    first = settings[0]
    return {k: v for k, v in first.items() if all(own.get(k) == v for own in settings)}


def run_table(methods: Sequence[Method]) -> Table:
    """One line a run: method, seed, what is counted, device, folder."""
    names = ["method", "seed", "tasks learned", "counted", "average score %", "device", "folder"]
    rows = []
    for method in methods:
        counted = {id(run) for run in method.counted}
        for run in method.runs:
            results = run.results
            done, total = num_learned(results), len(results["order"])
            whole = results["status"] == "complete"
            score = results["metrics"]["average_score"]
            why = "yes" if id(run) in counted else "no: seed repeated" if whole else "no: partial"
            rows.append(
                [
                    Cell(method.label, method.label, method.index),
                    Cell(str(results["seed"]), results["seed"]),
                    Cell(
                        f"{done} of {total}" + ("" if whole else " PARTIAL"), done, loud=not whole
                    ),
                    Cell(why, why),
                    Cell(percent(score), score),
                    Cell(visible(results.get("device") or DASH), visible(results.get("device"))),
                    Cell(visible(run.path), visible(run.path)),
                ]
            )
    return [Column(name) for name in names], rows


def versions(methods: Sequence[Method]) -> list[tuple[str, str]]:
    """Each package and its versions; with the number of runs where runs differ."""
    runs = [run.results for method in methods for run in method.runs]
    found: dict[str, Counter[str]] = {}
    for results in runs:
        for name, version in (results.get("versions") or {}).items():
            found.setdefault(name, Counter())[visible(version)] += 1
    return [
        (visible(name), next(iter(counts)) if len(counts) == 1 else _counted(counts))
        for name, counts in found.items()
    ]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{version} ({number} runs)" for version, number in counts.items())


def data_facts(results: Results) -> list[tuple[str, str]]:
    """Stream, source, split, rows and hash of the data, in words."""
    rows: dict[str, Any] = results["data"].get("rows") or {}
    sums = {s: sum(row.get(s, 0) for row in rows.values()) for s in ("train", "validation", "test")}
    leaks = results["data"].get("leaks")
    facts = [
        ("stream", f"{visible(results['stream'])}, {len(results['order'])} tasks"),
        ("source", visible(results["source"])),
        ("scores on", f"the {visible(results.get('split', 'test'))} split"),
        ("rows in all", ", ".join(f"{n:,} {s}" for s, n in sums.items()) if rows else DASH),
        ("SHA-256 of the rows", visible(results["data"]["hash"])),
    ]
    if leaks is not None:
        facts.append(("held-out texts found in train sets", f"{sum(x['count'] for x in leaks):,}"))
    return facts
