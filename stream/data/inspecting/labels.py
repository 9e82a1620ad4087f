"""Whether a label is one of classes or a score, and which of its values are which."""

import math
from dataclasses import dataclass

from stream.data.inspecting.column_names import has_score_name
from stream.data.inspecting.columns import Column
from stream.errors import require

TARGETS = ("class", "score")
MAX_WHOLE_CLASSES = 20  # a score with at most so many whole numbers is taken for classes


@dataclass(frozen=True)
class Target:
    """What a label column means.

    Attributes:
        labels: the names of the classes; None for scores.
        score_range: the lowest and highest score; None for classes.
        exclude: the values that are none, and whose rows are left out.
        why: what was decided, in words.
    """

    labels: list[str] | None
    score_range: list[float] | None
    exclude: list[str]
    why: str


def target_of(column: Column, wanted: str | None) -> Target:
    """Return what a label column means.

    Args:
        column: the label column.
        wanted: ``class`` or ``score``; None decides by the values.

    Raises:
        UserError: scores that are not numbers, or fewer than two different values.
    """
    are_numbers, whole = column.are_mostly_numbers, column.are_whole
    many = len(column.numbers) > MAX_WHOLE_CLASSES and has_score_name(column.name)
    guess = "score" if are_numbers and (many or not whole) else "class"
    distinct = len(column.counts)
    require(
        distinct > 1,
        f"column {column.name!r} has {distinct} different value(s); a label needs two or more",
    )
    if (wanted or guess) == "class":
        why = f"{distinct} classes"
        if are_numbers and distinct > 2:
            kind = "whole numbers" if whole else "numbers"
            why = f"{distinct} {kind}, taken as classes"
            why += "; --target score makes them scores (regression)" * (wanted is None)
        return Target(_sorted(column), None, column.blank_texts, why)
    require(
        len(column.numbers) > 1,
        f"column {column.name!r} holds no scores; its values are {_few(list(column.counts))}",
    )
    low = float(math.floor(min(column.numbers.values())))
    high = float(math.ceil(max(column.numbers.values())))
    others = [text for text in column.counts if text not in column.numbers] + column.blank_texts
    why = f"scores from {low:g} to {high:g} (regression)"
    why += "; --target class makes them classes" * (wanted is None)
    return Target(None, [low, high], others, why)


def _sorted(column: Column) -> list[str]:
    """Return the values in order; numbers by their size."""
    if len(column.numbers) == len(column.counts):
        return sorted(column.counts, key=lambda text: (column.numbers[text], text))
    return sorted(column.counts)


def _few(values: list[str]) -> str:
    """Return the first values, in quotes."""
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")
