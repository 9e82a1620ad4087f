"""What `inspect` says of a file, line by line."""

from collections.abc import Iterable, Iterator

from stream.data.inspecting.columns import Column
from stream.data.inspecting.inspection import Inspection
from stream.data.prepare.account_lines import dropped
from stream.formatting import count, visible

LABELS_SHOWN = 12
NAMES_SHOWN = 5
FEW_ROWS = 10  # warn about labels with fewer rows


def report(found: Inspection) -> Iterator[str]:
    """Yield what a file holds, what was chosen and why, and what of it a run would read."""
    rows = found.source.table.num_rows
    yield visible(f"{found.source.where}: {count(rows, 'row')}, {found.source.dialect}", 1000)
    for column in found.columns:
        mark = "text" if column in found.text.columns else ""
        yield _column_line(column, "label" if column in found.label.columns else mark)
    for option, choice in (("text", found.text), ("label", found.label)):
        other = f"; next: {_shown(choice.next.name)} (--{option})" if choice.next else ""
        names = " and ".join(map(_shown, choice.names))
        meant = f"; {found.target.why}" if option == "label" else ""
        yield f"{option}: {names}, {choice.why}{other}{meant}"
    yield from _label_lines(found)
    account = found.loaded.accounts["train"]
    kept = sum(split.kept for split in found.loaded.accounts.values())
    yield f"a run keeps {kept:,} of {count(rows + len(found.source.ragged), 'row')}; dropped: " + (
        dropped(account)
    )
    yield from (f"warning: {line}" for line in _warnings(found))


def _column_line(column: Column, mark: str) -> str:
    """Return the line of one column."""
    name, distinct = visible(column.name, 60), len(column.counts)
    return (
        f"  {mark:5} {name:24} {column.kind:8} {distinct:>8,} distinct  "
        f"{column.blank:>6,} blank  length {column.mean_length:.0f} (longest {column.longest:,})"
    )


def _label_lines(found: Inspection) -> Iterator[str]:
    """Yield how many rows each label has, the largest first."""
    counts = found.label_counts
    if not counts:
        return
    yield f"labels in {_shown(found.label.names[0])}: {len(counts)}"
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for name, number in ranked[:LABELS_SHOWN]:
        yield f"  {number:>8,}  {_shown(name)}"
    if len(ranked) > LABELS_SHOWN:
        yield f"           and {len(ranked) - LABELS_SHOWN} more"


def _warnings(found: Inspection) -> Iterator[str]:
    """Yield each likely problem."""
    yield from _left_out(found)
    counts = found.label_counts
    for names in _alike(counts):
        yield f"labels that differ in case or blanks only: {names}"
    rare = [name for name, number in counts.items() if number < FEW_ROWS]
    if rare:
        yield f"{count(len(rare), 'label')} with fewer than {FEW_ROWS} rows: {_few(rare)}"
    empty = [name for name, rows in found.loaded.rows.items() if not len(rows)]
    if empty:
        yield (
            f"too few rows to run: none of the {found.source.table.num_rows} is in "
            f"{', '.join(empty)} (the hash of its text decides)"
        )


def _left_out(found: Inspection) -> Iterator[str]:
    """Yield what of the file is blank, left out, or taken as one although it is several."""
    ragged = found.source.ragged
    if ragged:
        lines = ", ".join(f"{row.line} ({row.found})" for row in ragged[:NAMES_SHOWN])
        more = ", ..." if len(ragged) > NAMES_SHOWN else ""
        yield (
            f"{count(len(ragged), 'row')} without the {ragged[0].expected} fields of the header, "
            f"left out: line {lines}{more}"
        )
    for column in (*found.text.columns, *found.label.columns):
        if column.blank:
            yield f"{count(column.blank, 'row')} with nothing in {_shown(column.name)}"
        if column.is_nested:
            yield f"{_shown(column.name)} holds lists or objects: each different one is a label"
    if found.target.exclude:
        yield f"left out (exclude: in the YAML): rows with label {_few(found.target.exclude)}"


def _shown(text: str) -> str:
    """Return a text in quotes, with its unseen characters as escapes."""
    return f"'{visible(text)}'"


def _few(values: Iterable[str]) -> str:
    """Return the first values, in quotes, and how many more there are."""
    names = list(values)
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(map(_shown, names[:NAMES_SHOWN])) + more


def _alike(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that differ only in case or white space."""
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [group for group in folded.values() if len(group) > 1]
