"""Several labels a row, which a task does not have: in lists, joined, or one column for each."""

import re
from collections import Counter
from collections.abc import Iterable

from stream.data.inspecting.column_names import label_rank
from stream.data.inspecting.columns import Column

SEPARATORS = (";", "|", ",", "/", "+", "&")
DECIMAL = re.compile(r"\s*[+-]?\d+,\d+\s*")
LIST_MARKS = re.compile(r"[\[\](){}'\"]")
FLAGS = ({"0", "1"}, {"0.0", "1.0"}, {"False", "True"}, {"false", "true"}, {"FALSE", "TRUE"})
FEWEST = 3  # columns of 0 and 1 that are several labels a row


def separator(column: Column) -> str | None:
    """Return what joins several labels in the values of a column, or None.

    A character joins labels if most of the parts that it makes are parts of other values, too, as
    in ``a``, ``b``, ``a;b``; and not of one only, as in ``sports/football``, ``sports/tennis``.
    """
    if column.are_numbers or column.shape == "dates":
        return None
    values = [LIST_MARKS.sub("", value) for value in column.counts]
    for mark in SEPARATORS:
        parts = [[part.strip() for part in value.split(mark)] for value in values]
        joined = [found for found in parts if len(found) > 1]
        if not joined or all(map(DECIMAL.fullmatch, values)):
            continue
        used = Counter(part for found in parts for part in set(found))
        recurring = [found for found in joined if all(used[part] > 1 for part in found)]
        if "" not in used and 2 * len(recurring) > len(joined) and len(used) <= len(values):
            return mark
    return None


def has_decimal_commas(column: Column) -> bool:
    """Return whether the values are numbers such as ``0,5``."""
    return bool(column.counts) and all(map(DECIMAL.fullmatch, column.counts))


def is_flag(column: Column) -> bool:
    """Return whether a column says yes or no of each row, as 0 and 1 or as truth values."""
    return bool(column.counts) and any(set(column.counts) <= values for values in FLAGS)


def several_columns(label: Column, columns: Iterable[Column]) -> list[Column]:
    """Return the columns that hold a label each, as 0 or 1; none if one column is the label.

    Args:
        label: the column that is the label otherwise.
        columns: all that could be.
    """
    rank = label_rank(label.name)
    if rank == 0 or not is_flag(label):
        return []
    flags = [column for column in columns if label_rank(column.name) == rank and is_flag(column)]
    return flags if len(flags) >= FEWEST else []
