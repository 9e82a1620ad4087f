"""The tables of a report, as rows of cells that the page only has to print and to sort."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis.runs.estimate import Estimate
from analysis.runs.memory import is_broken, memory_text
from analysis.runs.methods import Method
from analysis.runs.values import (
    Value,
    metric,
    relative_steps,
    total_multiple,
    train_s,
    trained_fraction,
)
from analysis.tables.columns import differ, show_multiple, show_seconds
from analysis.tables.references import References
from stream.formatting import DASH, TIMES, percent, visible
from stream.record.run_record import RunRecord

Show = Callable[[float | None], str]


@dataclass(frozen=True)
class TableCell:
    """What a cell says, the number that it is sorted by (None last), and the method it is of."""

    text: str
    key: float | str | None = None
    method: int | None = None
    loud: bool = False


@dataclass(frozen=True)
class TableColumn:
    """A header, what it means, and the method whose numbers stand below it."""

    header: str
    meaning: str = ""
    method: int | None = None


@dataclass(frozen=True)
class SortedTable:
    """A table that the page sorts by a click on a header."""

    columns: list[TableColumn]
    rows: list[list[TableCell]]


def headline_table(methods: Sequence[Method]) -> SortedTable:
    """One line per method: scores, memory, cost, and metrics that at least one method has."""
    values = _headline_values(methods)
    columns = [
        TableColumn("method"),
        TableColumn("n", "runs with different seeds that are counted"),
    ]
    columns += [TableColumn(header, meaning) for header, meaning, _, _ in values]
    columns.insert(
        6, TableColumn("memory", "earlier tasks whose last logits are bit for bit the first")
    )
    rows = []
    for method in methods:
        number = len(method.counted)
        row = [TableCell(method.label, method.label, method.index), TableCell(str(number), number)]
        for _, _, value, show in values:
            estimate = method.estimate(value)
            row.append(_estimate_cell(estimate, show, number))
        row.insert(6, _memory_cell(method))
        rows.append(row)
    return SortedTable(columns, [*rows, *_floor_row(methods, len(columns))])


def _floor_row(methods: Sequence[Method], width: int) -> list[list[TableCell]]:
    """Return the line of the majority answer, unless it is among the methods or has no score."""
    known = methods[0].runs[0].record.majority or [None]
    if None in known or any(method.learner == "majority" for method in methods):
        return []
    average = fmean(score for score in known if score is not None)
    score = TableCell(percent(average), average)
    names = [TableCell("majority answer", "majority answer"), TableCell(DASH)]
    return [[*names, score, score, *[TableCell(DASH)] * (width - 4)]]


def _headline_values(methods: Sequence[Method]) -> list[tuple[str, str, Value, Show]]:
    """Header, meaning, how to read and how to show each number of the headline table."""
    references = References([run for method in methods for run in method.runs])
    against = references.reader
    last = "mean of the last row of the matrix"
    always: list[tuple[str, str, Value, Show]] = [
        ("average score %", last, metric("average_score"), percent),
        ("learning score %", "mean of the diagonal", metric("learning_score"), percent),
        ("forgetting %", "Chaudhry et al. 2018: fall from the best", metric("forgetting"), percent),
        ("BWT %", "Lopez-Paz & Ranzato 2017", metric("bwt"), percent),
        ("trained %/task", "of the encoder", trained_fraction, lambda v: percent(v, 2)),
        (f"stored {TIMES}", "all stored parameters / the encoder's", total_multiple, show_multiple),
        ("training s", "seconds of learning, all tasks", train_s, show_seconds),
    ]
    sometimes: list[tuple[str, str, Value, Show]] = [
        (
            "normalized %",
            "0: the majority answer, 100: independent",
            against("normalized_score"),
            percent,
        ),
        ("gap to joint %", "joint minus the average score", against("gap_to_joint"), percent),
        ("gap to independent %", "at the end", against("gap_to_independent"), percent),
        ("intransigence %", "Chaudhry et al. 2018", against("intransigence"), percent),
        (
            "intransigence (joint_final) %",
            "against one joint model of all tasks: not Chaudhry's definition",
            against("intransigence_joint_final"),
            percent,
        ),
        (
            "FWT_ind %",
            "score when learned minus independent's",
            against("fwt_independent"),
            percent,
        ),
        ("min-ACC %", "De Lange et al. 2023, from the probe", metric("min_acc"), percent),
        ("WC-ACC %", "De Lange et al. 2023, from the probe", metric("wc_acc"), percent),
    ]
    present = [v for v in sometimes if any(method.estimate(v[2]).n for method in methods)]
    steps: tuple[str, str, Value, Show] = (
        f"steps {TIMES}",
        "training steps / those of the plain schedule: where they differ",
        relative_steps,
        show_multiple,
    )
    runs = [run.record for method in methods for run in method.counted]
    return [*always, *([steps] if differ(list(map(relative_steps, runs))) else []), *present]


def _estimate_cell(estimate: Estimate, show: Show, expected: int) -> TableCell:
    key = None if math.isnan(estimate.mean) else estimate.mean
    return TableCell(estimate.show(show, expected), key)


def _memory_cell(method: Method) -> TableCell:
    """The memory of the counted runs; loud where one broke its promise."""
    records = [run.record for run in method.counted]
    checked = sum(record.memory.tasks_checked for record in records)
    identical = sum(record.memory.tasks_identical for record in records)
    key = identical / checked if checked else None
    return TableCell(memory_text(records), key, loud=any(map(is_broken, records)))


def task_table(methods: Sequence[Method], record: RunRecord) -> SortedTable:
    """One line per task: what it is, its rows, the majority score, and what each method made of it.

    For each method: its score right after learning, at the end, and how far it fell in between,
    means over seeds.
    """
    majority = _majority(methods, record)
    names = ["#", "task", "metric", "classes", "train", "validation", "test"]
    columns = [TableColumn(name) for name in names]
    if majority is not None:
        columns.append(TableColumn("majority", "score of always the most frequent label"))
    for method in methods:
        columns += [
            TableColumn("learned", "score right after learning", method.index),
            TableColumn("end", "score at the end", method.index),
            TableColumn("lost", "learned minus end", method.index),
        ]
    rows = []
    for task in range(len(record.order)):
        row = _task_cells(record, task)
        if majority is not None:
            floor = majority[task]
            row.append(_score_cell(math.nan if floor is None else floor, None))
        for method in methods:
            row += _outcome_cells(method, task)
        rows.append(row)
    return SortedTable(columns, rows)


def _majority(methods: Sequence[Method], record: RunRecord) -> Sequence[float | None] | None:
    """Return the scores of the majority answer; older records lack them, unless a run has them."""
    runs = (m.matrix[-1].tolist() for m in methods if m.learner == "majority" and m.is_complete)
    return record.majority or next(runs, None)


def _task_cells(record: RunRecord, task: int) -> list[TableCell]:
    name, title = record.order[task], record.titles[task]
    labels, rows = record.labels.get(name), record.data.rows.get(name, {})
    classes = len(labels) if labels else None
    metric_name = record.metric_names[task].replace("_", " ")
    return [
        TableCell(str(task + 1), task + 1),
        TableCell(visible(title, 60), visible(title).lower()),
        TableCell(visible(metric_name, 40), visible(metric_name)),
        TableCell(_count(classes), classes),
        *(TableCell(_count(rows.get(s)), rows.get(s)) for s in ("train", "validation", "test")),
    ]


def _count(number: int | None) -> str:
    return DASH if number is None else f"{number:,}"


def _score_cell(score: float, method: int | None) -> TableCell:
    return TableCell(percent(score), None if math.isnan(score) else float(score), method)


def _outcome_cells(method: Method, task: int) -> list[TableCell]:
    """Right after learning, at the end, and lost; at the last row that a partial run has."""
    end = method.num_learned - 1
    learned, last = method.matrix[task, task], method.matrix[end, task]
    if task > end:
        learned, last = math.nan, math.nan
    lost = learned - last if end > task else math.nan
    return [_score_cell(score, method.index) for score in (learned, last, lost)]
