"""What one column of a file contains, whatever its type."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
ADDRESS = re.compile(r"\s*(?:https?://|www\.)\S+\s*", re.IGNORECASE)
IDENTIFIER = re.compile(r"[A-Za-z0-9._:/#-]*\d[A-Za-z0-9._:/#-]*")
MOST = 0.5  # share of the values that makes a column one of numbers, addresses or identifiers


@dataclass(frozen=True)
class Column:
    """The values of one column, counted.

    Attributes:
        name: the column's name.
        kind: its Arrow type.
        counts: the number of rows of each value, as the text that a task's YAML names it by.
        blank: the number of rows with no value, or with white space only.
        blank_texts: what stands in blank rows that do hold something.
        is_string: whether the values are texts.
        is_nested: whether the values are lists or objects, such as several labels per row.
    """

    name: str
    kind: str
    counts: Counter[str]
    blank: int
    blank_texts: list[str]
    is_string: bool
    is_nested: bool

    @cached_property
    def rows(self) -> int:
        """The number of rows that hold something."""
        return self.counts.total()

    @cached_property
    def mean_length(self) -> float:
        """The mean number of characters; of nothing, 0."""
        total = sum(len(text) * count for text, count in self.counts.items())
        return total / max(self.rows + self.blank, 1)

    @cached_property
    def longest(self) -> int:
        """The largest number of characters."""
        return max(map(len, self.counts), default=0)

    @property
    def is_mostly_blank(self) -> bool:
        """Whether more rows are blank than not."""
        return self.blank > self.rows

    def share(self, pattern: re.Pattern[str]) -> float:
        """Return the share of the values that match a pattern entirely."""
        matching = sum(count for text, count in self.counts.items() if pattern.fullmatch(text))
        return matching / max(self.rows, 1)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """The values that are finite numbers, by their texts."""
        found = {text: float(text) for text in self.counts if NUMBER.fullmatch(text)}
        return {text: number for text, number in found.items() if math.isfinite(number)}

    @cached_property
    def is_prose(self) -> bool:
        """Whether the values look like texts: no numbers, addresses, identifiers, single value."""
        if not self.is_string or not self.rows or (len(self.counts) == 1 and self.rows > 1):
            return False
        return all(self.share(other) <= MOST for other in (NUMBER, ADDRESS, IDENTIFIER))


def describe(name: str, column: pa.ChunkedArray, *, is_json: bool) -> Column:
    """Return what a column contains.

    Args:
        name: its name.
        column: its values.
        is_json: whether they are the JSON texts of values of several types.
    """
    kind = column.type
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    counts = Counter[str]()
    for value, count in _counted(column):
        counts["" if value is None else _as_text(value)] += count
    not_a_number = str(math.nan) if pa.types.is_floating(kind) else ""
    blanks = [text for text in counts if text in ("", not_a_number) or not text.strip()]
    blank = sum(counts.pop(text) for text in blanks)
    lists = is_json and any(text.startswith(("[", "{")) for text in counts)
    return Column(
        name,
        str(kind),
        counts,
        blank,
        [text for text in blanks if text],
        is_string=is_string and not is_json,
        is_nested=lists or pa.types.is_nested(kind),
    )


def _counted(column: pa.ChunkedArray) -> Iterable[tuple[Any, int]]:
    """Return each value with the number of its rows."""
    try:
        counted = column.value_counts()
    except pa.ArrowException:  # lists, objects and other types that Arrow does not hash
        return ((value, 1) for value in column.to_pylist())
    return zip(
        counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True
    )


def _as_text(value: Any) -> str:
    """Return a value as the text by which a task's YAML would name it."""
    nested = isinstance(value, list | dict)
    return json.dumps(value, default=str, ensure_ascii=False) if nested else str(value)
