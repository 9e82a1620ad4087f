"""Which columns of a file are the text and which is the label: by name first, then by shape."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from stream.data.inspecting.column_names import (
    NO_NAME,
    are_pair,
    label_rank,
    several_texts,
    text_rank,
)
from stream.data.inspecting.columns import Column
from stream.data.inspecting.reasons import is_worth_saying, why_no_label, why_no_text, why_several
from stream.data.inspecting.several import several_columns
from stream.errors import UserError, require, unknown
from stream.formatting import visible

BLANK_COSTS = 2.5  # ranks by which a column that is mostly blank comes later
REASONS_SHOWN = 4


@dataclass(frozen=True)
class Choice:
    """The columns that were chosen for a role.

    Attributes:
        columns: the chosen ones.
        why: for what reason, in words.
        next: the column that would have been chosen otherwise; None if there is no other.
    """

    columns: tuple[Column, ...]
    why: str
    next: Column | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]


def named(columns: Iterable[Column], names: Sequence[str], path: Path) -> tuple[Column, ...]:
    """Return the columns that the user named.

    Args:
        columns: all columns.
        names: the names that were given for text and label.
        path: the file, for messages.

    Raises:
        UserError: there is no such column, or one is named twice.
    """
    by_name = {column.name: column for column in columns}
    for name in names:
        if name not in by_name:
            raise unknown(f"column of {path}", name, by_name)
        require(names.count(name) == 1, f"column {name!r} is named twice; text and label differ")
    return tuple(by_name[name] for name in names)


def choose_label(columns: Sequence[Column], path: Path) -> Choice:
    """Return the most likely label among ``columns``, and the runner-up.

    Raises:
        UserError: no column looks like one, or rows have several labels.
    """
    ranked = sorted((c for c in columns if not why_no_label(c)), key=_label_preference)
    several = [c for c in columns if label_rank(c.name) < NO_NAME and why_several(c)]
    if several and not (ranked and _rank(ranked[0]) <= min(map(_rank, several))):
        first = min(several, key=_rank)
        raise UserError(f"{path}: {shown(first)} {why_several(first)}")
    if not ranked:
        return _only_numbers(columns, path)
    first, *others = ranked
    flags = several_columns(first, columns)
    if flags:
        names = ", ".join(map(shown, flags[:REASONS_SHOWN])) + ", ..." * (len(flags) > 4)
        raise UserError(
            f"{path}: {len(flags)} columns of 0 and 1 ({names}) are several labels a row, and a "
            f"task has one; make a task of each that you need, as in --label {flags[0].name}"
        )
    why = "by its name" if label_rank(first.name) < NO_NAME else "by its few values"
    return Choice((first,), why, others[0] if others else None)


def _only_numbers(columns: Sequence[Column], path: Path) -> Choice:
    """Return the only column of numbers with fractions, which are scores then.

    Raises:
        UserError: there are several, or none.
    """
    found = [c for c in columns if c.are_numbers and not c.are_whole and _rank(c) <= NO_NAME]
    if len(found) == 1:
        return Choice((found[0],), "the only column of numbers with fractions")
    reasons = [f"{shown(c)} {why_no_label(c)}" for c in columns if is_worth_saying(c)]
    if found:
        names = ", ".join(map(shown, found[:REASONS_SHOWN]))
        reasons = [f"{names} could be scores"]
    reasons = reasons[:REASONS_SHOWN]
    raise UserError(
        "; ".join([f"{path}: no column looks like a label", *reasons, "name one with --label"])
    )


def _rank(column: Column) -> float:
    """Return how late a column comes as the label, by its name and what is blank."""
    return label_rank(column.name) + BLANK_COSTS * column.is_mostly_blank


def _label_preference(column: Column) -> tuple[float, bool, int, bool]:
    """Return what labels are sorted by: name, then few values, words before numbers."""
    counts_things = column.are_numbers and len(column.counts) > 2 and _rank(column) >= NO_NAME
    is_about_it = counts_things or column.is_consent
    return _rank(column), is_about_it, len(column.counts), column.are_numbers


def choose_text(columns: Sequence[Column], path: Path) -> Choice:
    """Return the most likely text among ``columns``, or all that are read together; the runner-up.

    Raises:
        UserError: no column looks like one.
    """
    texts = sorted((c for c in columns if not why_no_text(c)), key=_text_preference)
    if not texts:
        reasons = [f"{shown(c)} {why}" for c in columns if (why := why_no_text(c))]
        reasons = reasons[:REASONS_SHOWN]
        raise UserError(
            "; ".join([f"{path}: no column looks like text", *reasons, "name one with --text"])
        )
    by_name = {column.name: column for column in columns if column.is_string}
    together = tuple(by_name[name] for name in several_texts(by_name))
    if together:
        others = [column for column in texts if column not in together]
        why = f"{len(together)} texts by their names"
        return Choice(together, why, others[0] if others else None)
    pair = min(_pairs(texts, columns), key=_pair_preference, default=None)
    if pair and min(map(_text_preference, pair))[:2] <= _text_preference(texts[0])[:2]:
        others = [column for column in texts if column not in pair]
        return Choice(pair, "a pair by their names", others[0] if others else None)
    first, *others = texts
    only = "the only text" if not others else "the longest text"
    why = "by its name" if text_rank(first.name) < 2 else only
    return Choice((first,), why, others[0] if others else None)


def _pairs(texts: Sequence[Column], columns: Iterable[Column]) -> Iterator[tuple[Column, Column]]:
    """Yield the texts that are pairs by their names, in reading order."""
    names = [column.name for column in columns]
    yield from ((a, b) for a, b in permutations(texts, 2) if are_pair(a.name, b.name, names))


def _pair_preference(pair: tuple[Column, Column]) -> tuple[list[tuple[bool, int]], float]:
    """Return what pairs are sorted by: as their better text, then as the other one."""
    ranks = sorted(_text_preference(column) for column in pair)
    return [rank[:2] for rank in ranks], ranks[0][3]


def _text_preference(column: Column) -> tuple[bool, int, int, float]:
    """Return what texts are sorted by: many values, then name, least nested, longest first."""
    depth = column.name.count(".")
    return column.has_few_values, text_rank(column.name), depth, -column.mean_length


def shown(column: Column) -> str:
    """Return a column's name in quotes, with its unseen characters as escapes."""
    return f"'{visible(column.name)}'"
