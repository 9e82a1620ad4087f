"""Which columns of a file are the text and which is the label: by name first, then by shape."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from stream.data.inspecting.column_names import (
    NO_NAME,
    are_pair,
    has_score_name,
    label_rank,
    text_rank,
)
from stream.data.inspecting.columns import Column
from stream.errors import UserError, require, unknown

MAX_LABELS = 200  # a column with more different values is taken for the label if asked only
BLANK_COSTS = 2.5  # ranks by which a column that is mostly blank comes later


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
        UserError: no column looks like one.
    """
    ranked = sorted(
        (column for column in columns if _may_be_label(column)),
        key=lambda column: (
            label_rank(column.name) + BLANK_COSTS * column.is_mostly_blank,
            len(column.counts),
        ),
    )
    if ranked:
        first, *others = ranked
        why = "by its name" if label_rank(first.name) < NO_NAME else "by its few values"
        return Choice((first,), why, others[0] if others else None)
    reasons = [_why_no_label(column) for column in columns if label_rank(column.name) < NO_NAME]
    raise UserError(
        "; ".join([f"{path}: no column looks like a label", *reasons, "name one with --label"])
    )


def _may_be_label(column: Column) -> bool:
    """Return whether a column has the shape of a label."""
    distinct, has_name = len(column.counts), label_rank(column.name) < NO_NAME
    if column.is_nested or distinct < 2:
        return False
    are_numbers = len(column.numbers) == distinct
    fractions = any(not number.is_integer() for number in column.numbers.values())
    if are_numbers and (fractions or has_score_name(column.name)):
        return has_name
    return distinct <= (MAX_LABELS if has_name else min(MAX_LABELS, max(column.rows // 2, 2)))


def _why_no_label(column: Column) -> str:
    """Return why a column with a label's name is none."""
    if column.is_nested:
        return f"{column.name!r} holds lists or objects (several labels per row?)"
    distinct = len(column.counts)
    what = "1 different value" if distinct == 1 else f"{distinct:,} different values"
    return f"{column.name!r} has {what}" + (", and a task needs two labels" * (distinct < 2))


def choose_text(columns: Sequence[Column], path: Path) -> Choice:
    """Return the most likely text among ``columns``, or both texts of a pair, and the runner-up.

    Raises:
        UserError: no column looks like one.
    """
    texts = [column for column in columns if column.is_prose] or [
        column
        for column in columns
        if column.is_string and column.rows and text_rank(column.name) == 0
    ]
    if not texts:
        nested = [f"{c.name!r} holds lists or objects" for c in columns if c.is_nested]
        raise UserError(
            "; ".join([f"{path}: no column looks like text", *nested, "name one with --text"])
        )
    ranked = sorted(texts, key=_text_preference)
    first, *others = ranked
    pairs = [(a, b) for a, b in permutations(texts, 2) if are_pair(a.name, b.name)]
    pair = min(pairs, key=lambda both: max(map(_text_preference, both)), default=None)
    if pair and max(_text_preference(column)[:2] for column in pair) <= _text_preference(first)[:2]:
        others = [column for column in ranked if column not in pair]
        return Choice(pair, "a pair by their names", others[0] if others else None)
    why = "by its name" if text_rank(first.name) < 2 else "by its length"
    return Choice((first,), why, others[0] if others else None)


def _text_preference(column: Column) -> tuple[bool, int, float]:
    """Return what texts are sorted by: full before blank, then by name, then the longest."""
    return column.is_mostly_blank, text_rank(column.name), -column.mean_length
