"""What `inspect` says of a file, line by line."""

import shlex
from collections.abc import Iterator, Sequence

from stream.config.source import SPLITS
from stream.data.inspecting.columns import Column
from stream.data.inspecting.inspection import Inspection
from stream.data.inspecting.roles import Choice, shown
from stream.data.inspecting.several import separator
from stream.data.look_alikes import look_alikes
from stream.data.prepare.account_lines import dropped
from stream.formatting import count, quoted, visible

LABELS_SHOWN = 12
COLUMNS_SHOWN = 25
NAMES_SHOWN = 5
FEW_ROWS = 10  # warn about labels with fewer rows
NAME_WIDTH = 60
EXAMPLE_WIDTH = 40
SIMILAR = 1.5  # how many times longer one of two texts of a pair is at most, if no name tells
NO_LABELS = ("-", "--", "?", "n/a", "na", "none", "null", "nan", "unknown", "undefined", "-1")


def report(found: Inspection) -> Iterator[str]:
    """Yield what a file holds, what was chosen and why, and what of it a run would read."""
    for split, source in found.sources.items():
        name = f"{split}: " if len(found.sources) > 1 else ""
        yield visible(
            f"{name}{source.where}: {_rows(source.table.num_rows)}, {source.dialect}", 1000
        )
    for split, why in found.left_out.items():
        yield visible(f"{split}: {found.parts.patterns[split]} is left out: {why}", 1000)
    yield from _column_lines(found)
    yield _choice_line("text", found.text)
    yield from _pair_hint(found.text)
    yield _choice_line("label", found.label)
    yield f"labels: {found.target.why}"
    yield from _label_lines(found)
    if found.text.next or found.label.next:
        yield "to choose other columns: --text NAME (once for each text), --label NAME"
    yield _kept_line(found)
    yield from (f"warning: {line}" for line in _warnings(found))


def _column_lines(found: Inspection) -> Iterator[str]:
    """Yield a line for each column, the chosen ones marked."""
    chosen = [*found.text.columns, *found.label.columns]
    left = max(COLUMNS_SHOWN - len(chosen), 0)
    others = [column for column in found.columns if column not in chosen]
    columns = [c for c in found.columns if c in chosen or c in others[:left]]
    cells = [("", "column", "holds", "different", "blank", "such as")]
    for column in columns:
        mark = "text" if column in found.text.columns else ""
        mark = "label" if column in found.label.columns else mark
        numbers = f"{len(column.counts):,}", f"{column.blank:,}"
        cells.append(
            (mark, visible(column.name, NAME_WIDTH), column.shape, *numbers, _start(column))
        )
    widths = [max(map(len, cell)) for cell in zip(*cells, strict=True)]
    for mark, name, shape, different, blank, example in cells:
        yield (
            f"  {mark:5}  {name:{widths[1]}}  {shape:{widths[2]}}  {different:>{widths[3]}}  "
            f"{blank:>{widths[4]}}  {example}"
        ).rstrip()
    if len(columns) < len(found.columns):
        yield f"         and {len(found.columns) - len(columns)} more columns"


def _start(column: Column) -> str:
    """Return the beginning of the most frequent value, up to the end of a word."""
    text = visible(" ".join(column.example.split()), EXAMPLE_WIDTH)
    return f"{text[:-1].rpartition(' ')[0] or text[:-1]} …" if text.endswith("…") else text


def _choice_line(option: str, choice: Choice) -> str:
    """Return which columns were chosen, why, and which would be the next."""
    other = f" (next: {shown(choice.next)})" if choice.next else ""
    *before, last = map(shown, choice.columns)
    names = f"{', '.join(before)} and {last}" if before else last
    return f"{option}: {names}, {choice.why}{other}"


def _pair_hint(text: Choice) -> Iterator[str]:
    """Yield how to take two texts of like length as a pair, if no name chose one of them."""
    if len(text.columns) != 1 or text.next is None or not text.why.startswith("the longest"):
        return
    if text.columns[0].mean_length <= SIMILAR * text.next.mean_length:
        pair = f"--text {_typed(text.columns[0])} --text {_typed(text.next)}"
        yield f"      both as a pair: {pair}"


def _typed(column: Column) -> str:
    """Return a column's name as a shell takes it."""
    return shlex.quote(column.name) if column.name.isprintable() else shown(column)


def _label_lines(found: Inspection) -> Iterator[str]:
    """Yield how many rows each label has, the largest first."""
    counts = found.label_counts
    if not counts:
        return
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for name, number in ranked[:LABELS_SHOWN]:
        yield f"  {number:>8,}  {quoted(name)}"
    if len(ranked) > LABELS_SHOWN:
        yield f"            and {len(ranked) - LABELS_SHOWN} more"


def _kept_line(found: Inspection) -> str:
    """Return how many rows a run keeps in each split, and why it drops the others."""
    accounts = found.loaded.accounts
    kept = sum(account.kept for account in accounts.values())
    splits = ", ".join(f"{split} {accounts[split].kept:,}" for split in SPLITS)
    lost = [(name, account) for name, account in accounts.items() if account.dropped]
    several = len(found.sources) > 1
    why = "; ".join(dropped(a) + f" of {name}" * several for name, a in lost) or "none"
    return f"a run keeps {kept:,} of {_rows(found.num_rows)} ({splits}); dropped: {why}"


def _warnings(found: Inspection) -> Iterator[str]:
    """Yield each likely problem."""
    yield from _first_line(found)
    yield from _left_out(found)
    counts = found.label_counts
    for names in look_alikes(counts):
        yield (
            f"labels that look alike, each a class of its own: {_few(names)}; values: in the YAML "
            "makes them one"
        )
    rare = [name for name, number in counts.items() if number < FEW_ROWS]
    if rare:
        yield f"{count(len(rare), 'label')} with fewer than {FEW_ROWS} rows: {_few(rare)}"
    none = [name for name in counts if name.strip().casefold() in NO_LABELS]
    if none and len(counts) > 2:
        yield f"is {_few(none)} a label? exclude: in the YAML leaves its rows out"
    for column in found.columns:
        others = column.rows - column.counts["accept"]
        if column.is_consent and column not in found.label.columns and others:
            yield f"{_rows(others)} kept that {shown(column)} does not accept"
    if found.parts.beside:
        yield (
            f"{', '.join(found.parts.beside)} beside it: to use all of them as splits of one task, "
            f"task-stream tasks inspect {shlex.quote(str(found.parts.folder))}"
        )
    if found.empty_splits:
        yield (
            f"too few rows to run: none of the {found.num_rows} is in "
            f"{', '.join(found.empty_splits)} (the hash of its text decides)"
        )


def _first_line(found: Inspection) -> Iterator[str]:
    """Yield whether the first line may be a row that was taken for the header, or the reverse."""
    (label,) = found.label.columns
    if found.spec.files.dialect.header is not None:
        return
    for source in found.sources.values():
        words = source.dialect.split(", ")
        first = str(source.table.column(label.name)[0].as_py())
        if "no header" in words and label.counts[first] == 1 and found.spec.labels:
            yield f"is the first line a header? no other row has label {quoted(first)}; --header"
        elif "header" in words and label.name in label.counts:
            yield f"is the first line a row? {shown(label)} is a label of other rows; --no-header"


def _left_out(found: Inspection) -> Iterator[str]:
    """Yield what of the file is blank, left out, or taken as one although it is several."""
    for source in found.sources.values():
        ragged = source.ragged
        if ragged:
            lines = ", ".join(f"{row.line} ({row.found})" for row in ragged[:NAMES_SHOWN])
            more = ", ..." if len(ragged) > NAMES_SHOWN else ""
            yield (
                f"{_rows(len(ragged))} without the {ragged[0].expected} fields of the "
                f"header, left out: line {lines}{more}"
            )
    for column in (*found.text.columns, *found.label.columns):
        if column.blank:
            yield f"{_rows(column.blank)} with nothing in {shown(column)}"
        if column.is_nested:
            yield f"{shown(column)} holds lists or objects: each different one is a label"
    (label,) = found.label.columns
    mark = separator(label) if found.spec.labels and not label.is_nested else None
    if mark:
        yield f"{shown(label)} joins labels by {mark!r}: each combination is a class of its own"
    if found.target.exclude:
        yield f"left out (exclude: in the YAML): rows with label {_few(found.target.exclude)}"


def _rows(number: int) -> str:
    """Return a number of rows."""
    return f"{number:,} row" + "s" * (number != 1)


def _few(values: Sequence[str]) -> str:
    """Return the first values, in quotes, and how many more there are."""
    more = f" and {len(values) - NAMES_SHOWN} more" if len(values) > NAMES_SHOWN else ""
    return ", ".join(map(quoted, values[:NAMES_SHOWN])) + more
