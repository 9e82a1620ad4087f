"""Entries of ``values:`` and ``exclude:`` that no row of a task's source has."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from stream.config.source import SourceColumns
from stream.data.look_alikes import look_alikes
from stream.data.prepare.label_names import resolved
from stream.data.prepare.rows import is_missing, spellings
from stream.data.table import SourceTable
from stream.errors import UserError
from stream.formatting import quoted

FEWEST_LETTERS = 4  # of a word in which one other letter is a slip, not another word


def idle_entries(name: str, columns: SourceColumns, tables: Mapping[str, SourceTable]) -> list[str]:
    """Return the entries that no row of any part has, in words.

    A file of the next month may lack a label that is left out, so that is said and no more. An
    entry is surely mistyped if rows have nearly the same value, and nothing says what becomes of
    it.

    Args:
        name: the task's name, for messages.
        columns: what the columns mean, as in the task's YAML.
        tables: the source's tables.

    Raises:
        UserError: an entry is mistyped; names the value that is meant.
    """
    entries = [*(("exclude", key) for key in columns.exclude)]
    entries += [("values", key) for key in columns.values]
    if not entries:
        return []
    there = {text for table in tables.values() for text in _values(columns, table)}
    idle = [(where, key) for where, key in entries if not _occurs(key, there)]
    for where, key in idle:
        meant = next((text for text in sorted(there) if _is_meant(columns, key, text)), None)
        if meant is not None:
            files = ", ".join(dict.fromkeys(table.where for table in tables.values()))
            raise UserError(
                f"task {name!r}: {where}: names {key!r}, which no row of {files} has; rows have "
                f"{meant!r}. Correct the entry, or take it out"
            )
    return [f"{quoted(key)} ({where}:)" for where, key in idle]


def _values(columns: SourceColumns, source: SourceTable) -> Iterator[str]:
    """Yield the values of a label column, as a YAML may write them; those it declares, too."""
    label = resolved(columns, source).label
    declared = source.class_names.get(label, [])
    yield from declared
    yield from map(str, range(len(declared)))
    for value in source.table.column(label).unique().to_pylist():
        if not is_missing(value):
            yield from spellings(value)


def _occurs(entry: str, there: set[str]) -> bool:
    """Return whether a value is there that an entry names, by itself or as a pattern."""
    return entry in there or ("*" in entry and any(fnmatchcase(text, entry) for text in there))


def _is_meant(columns: SourceColumns, entry: str, text: str) -> bool:
    """Return whether an entry was to name a value: they differ by a slip, and no entry names it.

    A value that is the very label which an entry of ``values`` gives needs none.
    """
    named = text in columns.exclude or _occurs_in(columns.values, text)
    is_right = columns.values.get(entry) == text
    return not named and not is_right and _is_slip(entry, text)


def _occurs_in(patterns: Mapping[str, str], text: str) -> bool:
    """Return whether one of the entries names a value."""
    return text in patterns or any("*" in p and fnmatchcase(text, p) for p in patterns)


def _is_slip(entry: str, text: str) -> bool:
    """Return whether two texts look alike, or one letter makes the difference.

    >>> _is_slip("Not sure ", "not sure"), _is_slip("unsrue", "unsure"), _is_slip("1", "2")
    (True, True, False)
    """
    if look_alikes([entry, text]):
        return True
    short, long = sorted((entry.casefold(), text.casefold()), key=len)
    differ = (at for at, (one, two) in enumerate(zip(short, long, strict=False)) if one != two)
    at = next(differ, len(short))
    more, rest, other = len(long) - len(short), short[at:], long[at:]
    changed = rest[:1] + other[: 1 + more]
    if len(short) < FEWEST_LETTERS or more > 1 or any(map(str.isdigit, changed)):
        return False
    if more:
        return rest == other[1:]
    return rest[1:] == other[1:] or (rest[1::-1] == other[:2] and rest[2:] == other[2:])
