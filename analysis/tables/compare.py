"""The table that compares runs of one stream, with means and intervals over seeds."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from analysis.runs.cautions import cautions
from analysis.runs.collect import RecordedRun
from analysis.runs.comparable import check_comparable
from analysis.runs.estimate import INTERVAL, Estimate
from analysis.runs.memory import is_broken, memory_text
from analysis.runs.methods import Method, build_methods, repetitions
from analysis.runs.names import group, method_names
from analysis.runs.values import num_learned
from analysis.tables.columns import REFERENCE_HEADERS, Column, columns_of
from analysis.tables.references import References
from analysis.tables.text_table import Row, TextTable, one_line
from stream.formatting import DASH, count, stream_title
from stream.record.run_record import RunRecord

NAMES = ("learner", "seed", "tasks")
NAMES_OF_MEANS = ("learner", "seeds", "tasks")
ALWAYS = ("learner", "average\nscore %")  # columns that are shown even where all runs agree


def comparison_table(runs: Sequence[RecordedRun], *, only_means: bool = False) -> TextTable:
    """One line per run, and mean and interval of each method that was run with several seeds.

    Metrics against reference runs have a column where at least one run has a value. What is the
    same in all lines is said once, above the table.

    Args:
        runs: runs of one stream.
        only_means: a line per method in place of those per run.

    Raises:
        IncomparableRunsError: the runs did not see the same stream.
    """
    check_comparable(runs)
    references = References(runs)
    columns = columns_of(runs, references)
    names = method_names(runs)
    notes = [*names.notes]
    sections, alone = [], []
    for label, members in group(runs).items():
        rows = [_run_row(names.by_label[label], run.record, columns) for run in members]
        if len(repeated := repetitions(members)) > 1:
            rows.append(_mean_row(repeated, columns))
        else:
            alone.append(names.by_label[label])
        sections.append(rows)
    if only_means:
        sections = [[_method_row(method, columns) for method in build_methods(runs)]]
    sections += _floor(runs, columns)
    if len(alone) < len(names.by_label):
        notes.append(f"mean ± half of the {INTERVAL} over the seeds that are counted (n).")
        notes += [f"One seed, no interval: {', '.join(alone)}."] if alone else []
    notes += [*references.notes, *cautions(runs)]
    who = NAMES_OF_MEANS if only_means else NAMES
    header = [*who, *_with_memory(columns, [column.header for column in columns], "memory")]
    table = TextTable(table_title(runs[0].record), header, len(NAMES), sections, notes)
    return without_equal_columns(table)


def table_title(record: RunRecord) -> str:
    """What all runs of a table have in common."""
    data = "generated data" if record.source == "generated" else f"data: {record.source}"
    note = ", validation scores" if record.split == "validation" else ""
    return f"{stream_title(record.stream)}, {count(len(record.order), 'task')}, {data}{note}"


def _run_row(name: str, record: RunRecord, columns: Sequence[Column]) -> Row:
    num_tasks, done = len(record.order), num_learned(record)
    tasks = str(num_tasks) if record.status == "complete" else f"{done}/{num_tasks}"
    values = [column.show(column.read(record)) for column in columns]
    cells = _with_memory(columns, values, memory_text([record]))
    return Row([name, str(record.seed), tasks], cells, is_loud=is_broken(record))


def _floor(runs: Sequence[RecordedRun], columns: Sequence[Column]) -> list[list[Row]]:
    """Return a section with the majority answer's score, unless a run has it as its learner."""
    record = runs[0].record
    known = [score for score in record.majority or () if score is not None]
    if len(known) < len(record.order) or any(run.record.learner == "majority" for run in runs):
        return []
    average = fmean(known)
    values = {"average_score": average, "learning_score": average, "normalized_score": 0.0}
    cells = [column.show(values.get(column.name)) for column in columns]
    return [[Row(["majority answer", DASH, ""], _with_memory(columns, cells, ""), is_floor=True)]]


def _method_row(method: Method, columns: Sequence[Column]) -> Row:
    """The mean over the counted runs of a method, or its only counted run."""
    counted = method.counted
    row = _run_row(method.label, counted[0].record, columns)
    tasks, values = row.names[-1], _mean_row(counted, columns) if len(counted) > 1 else row
    return replace(values, names=[method.label, str(len(counted)), tasks], is_mean=False)


def _mean_row(runs: Sequence[RecordedRun], columns: Sequence[Column]) -> Row:
    values = []
    for column in columns:
        found = Estimate.of(column.read(run.record) for run in runs)
        show, whole = column.show, found.n == len(runs)
        values.append(f"{show(found.mean)}±{show(found.half_width)}" if whole else DASH)
    records = [run.record for run in runs]
    cells = _with_memory(columns, values, memory_text(records))
    is_loud = any(map(is_broken, records))
    names = [f"mean ± {INTERVAL}", f"n={len(runs)}", ""]
    return Row(names, cells, is_mean=True, is_loud=is_loud)


def _with_memory(columns: Sequence[Column], cells: Sequence[str], memory: str) -> list[str]:
    """The cells of all columns, memory before what not all streams have: references."""
    before = sum(column.name not in REFERENCE_HEADERS for column in columns)
    return [*cells[:before], memory, *cells[before:]]


def without_equal_columns(table: TextTable) -> TextTable:
    """The table without the columns that are equal in all runs; their values go above it."""
    rows = [row for section in table.sections for row in section]
    runs = [row.cells for row in rows if not (row.is_mean or row.is_floor)]
    if len(runs) < 2:
        return table
    equal = {
        number: f"{one_line(header)} {runs[0][number]}"
        for number, header in enumerate(table.header)
        if header not in ALWAYS and len({cells[number] for cells in runs}) == 1
    }
    above = [f"The same in all runs: {', '.join(equal.values())}."] if equal else []
    return table.without_columns(equal, above)
