"""Compares runs of one stream: one table with means over seeds, and one CSV."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from analysis.runs.collect import RecordedRun
from analysis.runs.comparable import check_comparable
from analysis.runs.methods import group, repetitions
from analysis.runs.values import (
    Value,
    elapsed_s,
    metric,
    num_learned,
    total_multiple,
    trained_fraction,
)
from analysis.tables.paired import differences
from analysis.tables.references import REFERENCE_METRICS, References
from analysis.tables.text_table import Row, TextTable
from stream.formatting import DASH, TIMES, percent
from stream.record.run_record import MemoryRecord, RunRecord

METRICS = ("average_score", "learning_score", "bwt", "forgetting")


@dataclass(frozen=True)
class Column:
    """One value of a run: its header, how to read it from the record, how to show it."""

    header: str
    read: Value
    show: Callable[[float | None], str] = percent


def show_multiple(value: float | None) -> str:
    """A multiple of the base model's parameters."""
    return DASH if value is None else f"{value:.2f}"


def show_seconds(value: float | None) -> str:
    """Seconds, the tenths only of small ones."""
    return DASH if value is None else f"{value:.{1 if value < 10 else 0}f}"


SCORES = (
    Column("average\nscore %", metric("average_score")),
    Column("learning\nscore %", metric("learning_score")),
    Column("BWT\n%", metric("bwt")),
    Column("forget-\nting %", metric("forgetting")),
)
COSTS = (
    Column("trained\n%/task", trained_fraction, lambda value: percent(value, 2)),
    Column(f"total\n{TIMES} base", total_multiple, show_multiple),
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


def comparison_table(runs: Sequence[RecordedRun]) -> TextTable:
    """One line per run, and mean and deviation of each method that was run with several seeds.

    Metrics against reference runs have a column where at least one run has a value.

    Raises:
        IncomparableRunsError: the runs did not see the same stream.
    """
    check_comparable(runs)
    references = References(runs)
    columns = [*SCORES, *_reference_columns(runs, references), *COSTS]
    sections = []
    for label, members in group(runs).items():
        rows = [_run_row(label, run.record, columns) for run in members]
        if len(repeated := repetitions(members)) > 1:
            rows.append(_mean_row(repeated, columns))
        sections.append(rows)
    names = ("learner", "data", "seed", "tasks")
    header = [*names, *(column.header for column in columns), "memory"]
    return TextTable(table_title(runs[0].record), header, len(names), sections, references.notes)


def _reference_columns(runs: Sequence[RecordedRun], references: References) -> list[Column]:
    found = [references.values(run.record) for run in runs]
    return [
        Column(header, references.reader(name))
        for name, header in REFERENCE_HEADERS.items()
        if any(values[name] is not None for values in found)
    ]


def table_title(record: RunRecord) -> str:
    """What all runs of a table have in common."""
    data = "generated data" if record.source == "generated" else f"data: {record.source}"
    note = ", validation scores" if record.split == "validation" else ""
    return f"{record.stream}, {len(record.order)} tasks, {data}{note}"


def _run_row(label: str, record: RunRecord, columns: Sequence[Column]) -> Row:
    num_tasks, done = len(record.order), num_learned(record)
    tasks = str(num_tasks) if record.status == "complete" else f"{done}/{num_tasks}"
    values = [column.show(column.read(record)) for column in columns]
    memory = show_memory(record.memory)
    names = [label, record.source, str(record.seed), tasks]
    return Row(names, [*values, memory], is_loud=memory.endswith("BROKEN"))


def _mean_row(runs: Sequence[RecordedRun], columns: Sequence[Column]) -> Row:
    values = []
    for column in columns:
        found = [value for run in runs if (value := column.read(run.record)) is not None]
        whole = len(found) == len(runs)
        show = column.show
        values.append(f"{show(mean(found))}±{show(stdev(found))}" if whole else DASH)
    names = ["mean ± sd", runs[0].record.source, f"n={len(runs)}", ""]
    return Row(names, [*values, ""], is_mean=True)


def show_memory(memory: MemoryRecord) -> str:
    """Tasks whose last logits equal their first, of those checked; loud for a broken promise."""
    checked, identical = memory.tasks_checked, memory.tasks_identical
    broken = memory.promised and identical < checked
    text = f"{identical}/{checked}" if checked else DASH
    return f"{text} BROKEN" if broken else text


def comparison_csv(runs: Sequence[RecordedRun]) -> str:
    """One line per run for other programs: fractions and seconds, empty where undefined."""
    check_comparable(runs)
    references = References(runs)
    return _csv_text(
        [
            _csv_row(label, run, references.values(run.record))
            for label, members in group(runs).items()
            for run in members
        ]
    )


def _csv_row(label: str, run: RecordedRun, against: Mapping[str, float | None]) -> dict[str, Any]:
    record = run.record
    return {
        "run": str(run.path),
        "method": label,
        "learner": record.learner,
        "stream": record.stream,
        "backbone": record.backbone,
        "source": record.source,
        "seed": record.seed,
        "status": record.status,
        "tasks_learned": num_learned(record),
        "tasks": len(record.order),
        **{name: record.metrics[name] for name in METRICS},
        **against,
        "trained_fraction": trained_fraction(record),
        "total_multiple": record.ledger.total_multiple,
        "tasks_identical": record.memory.tasks_identical,
        "tasks_checked": record.memory.tasks_checked,
        "train_s": record.timing.train_s,
        "evaluate_s": record.timing.evaluate_s,
        "data_hash": record.data.hash,
    }


def difference_csv(runs: Sequence[RecordedRun], against: str) -> str:
    """One line per method and measure: paired differences from ``against`` as fractions."""
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
