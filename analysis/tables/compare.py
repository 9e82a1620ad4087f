"""Compares runs of one stream: one table with means over seeds, and one CSV."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from analysis.runs.collect import Run
from analysis.runs.comparable import check_comparable, group, num_learned, repetitions
from analysis.tables.paired import differences
from analysis.tables.references import REFERENCE_METRICS, References
from analysis.tables.text_table import Row, Sheet
from stream.formatting import DASH, TIMES, percent

Results = dict[str, Any]

METRICS = ("average_score", "learning_score", "bwt", "forgetting")


@dataclass(frozen=True)
class Column:
    """One value of a run: its header, how to read it from results.json, how to show it."""

    header: str
    read: Callable[[Results], float | None]
    show: Callable[[float | None], str] = percent


def trained_fraction(results: Results) -> float | None:
    """Mean over the tasks of the trained parameters as a fraction of the base."""
    fractions = [entry["trained_fraction"] for entry in results["ledger"]["tasks"]]
    return mean(fractions) if fractions else None


def elapsed_s(results: Results) -> float | None:
    """Seconds of training and evaluation together."""
    parts = [results["timing"][name] for name in ("train_s", "evaluate_s")]
    return None if None in parts else sum(parts)


def show_multiple(value: float | None) -> str:
    """A multiple of the base model's parameters."""
    return DASH if value is None else f"{value:.2f}"


def show_seconds(value: float | None) -> str:
    """Seconds, the tenths only of small ones."""
    return DASH if value is None else f"{value:.{1 if value < 10 else 0}f}"


SCORES = (
    Column("average\nscore %", lambda results: results["metrics"]["average_score"]),
    Column("learning\nscore %", lambda results: results["metrics"]["learning_score"]),
    Column("BWT\n%", lambda results: results["metrics"]["bwt"]),
    Column("forget-\nting %", lambda results: results["metrics"]["forgetting"]),
)
COSTS = (
    Column("trained\n%/task", trained_fraction, lambda value: percent(value, 2)),
    Column(f"total\n{TIMES} base", lambda r: r["ledger"]["total_multiple"], show_multiple),
    Column("time\ns", elapsed_s, show_seconds),
)
REFERENCE_HEADERS = dict(
    zip(
        REFERENCE_METRICS,
        (
            "gap to\njoint %",
            "gap to\nindependent %",
            "intran-\nsigence %",
            "intransigence\njoint_final %",
            "FWT_ind\n%",
        ),
        strict=True,
    )
)


def comparison_sheet(runs: Sequence[Run]) -> Sheet:
    """One line a run, and mean and deviation of each method that was run with several seeds.

    Metrics against reference runs have a column where at least one run has a value.

    Raises:
        IncomparableRunsError: the runs did not see the same stream.
    """
    check_comparable(runs)
    references = References(runs)
    columns = [*SCORES, *_reference_columns(runs, references), *COSTS]
    sections = []
    for label, members in group(runs).items():
        rows = [_run_row(label, run.results, columns) for run in members]
        if len(repeated := repetitions(members)) > 1:
            rows.append(_mean_row(repeated, columns))
        sections.append(rows)
    names = ("learner", "data", "seed", "tasks")
    header = [*names, *(column.header for column in columns), "memory"]
    return Sheet(table_title(runs[0].results), header, len(names), sections, references.notes)


def _reference_columns(runs: Sequence[Run], references: References) -> list[Column]:
    found = [references.values(run.results) for run in runs]
    return [
        Column(header, lambda results, name=name: references.values(results)[name])
        for name, header in REFERENCE_HEADERS.items()
        if any(values[name] is not None for values in found)
    ]


def table_title(results: Results) -> str:
    """What all runs of a table have in common."""
    data = "generated data" if results["source"] == "generated" else f"data: {results['source']}"
    note = ", validation scores" if results.get("split") == "validation" else ""
    return f"{results['stream']}, {len(results['order'])} tasks, {data}{note}"


def _run_row(label: str, results: Results, columns: Sequence[Column]) -> Row:
    num_tasks, done = len(results["order"]), num_learned(results)
    tasks = str(num_tasks) if results["status"] == "complete" else f"{done}/{num_tasks}"
    values = [column.show(column.read(results)) for column in columns]
    memory = show_memory(results["memory"])
    names = [label, results["source"], str(results["seed"]), tasks]
    return Row(names, [*values, memory], is_loud=memory.endswith("BROKEN"))


def _mean_row(runs: Sequence[Run], columns: Sequence[Column]) -> Row:
    values = []
    for column in columns:
        found = [value for run in runs if (value := column.read(run.results)) is not None]
        whole = len(found) == len(runs)
        show = column.show
        values.append(f"{show(mean(found))}±{show(stdev(found))}" if whole else DASH)
    names = ["mean ± sd", runs[0].results["source"], f"n={len(runs)}", ""]
    return Row(names, [*values, ""], is_mean=True)


def show_memory(memory: dict[str, Any]) -> str:
    """Tasks whose last logits equal their first, of those checked; loud for a broken promise."""
    checked, identical = memory["tasks_checked"], memory["tasks_identical"]
    broken = memory["promised"] and identical < checked
    text = f"{identical}/{checked}" if checked else DASH
    return f"{text} BROKEN" if broken else text


def comparison_csv(runs: Sequence[Run]) -> str:
    """One line a run for other programs: fractions and seconds, empty where undefined."""
    check_comparable(runs)
    references = References(runs)
    return _csv_text(
        [
            _csv_row(label, run, references.values(run.results))
            for label, members in group(runs).items()
            for run in members
        ]
    )


def _csv_row(label: str, run: Run, against: Mapping[str, float | None]) -> dict[str, Any]:
    results = run.results
    same = ("learner", "stream", "backbone", "source", "seed", "status")
    return {
        "run": str(run.path),
        "method": label,
        **{name: results[name] for name in same},
        "tasks_learned": num_learned(results),
        "tasks": len(results["order"]),
        **{name: results["metrics"][name] for name in METRICS},
        **against,
        "trained_fraction": trained_fraction(results),
        "total_multiple": results["ledger"]["total_multiple"],
        **{name: results["memory"][name] for name in ("tasks_identical", "tasks_checked")},
        "train_s": results["timing"]["train_s"],
        "evaluate_s": results["timing"]["evaluate_s"],
        "data_hash": results["data"]["hash"],
    }


def difference_csv(runs: Sequence[Run], against: str) -> str:
    """One line a method and measure: paired differences from ``against``, a label, as fractions."""
    rows = []
    for label, by_measure in differences(runs, against).items():
        for name, difference in by_measure.items():
            low, high = difference.interval or (None, None)
            row = {"method": label, "against": against, "measure": name}
            values = {"pairs": difference.pairs, "mean": difference.mean, "low": low, "high": high}
            rows.append(row | values)
    return _csv_text(rows) if rows else "method,against,measure,pairs,mean,low,high\n"


def _csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
