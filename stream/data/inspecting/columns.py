"""What one column of a file contains, whatever its type."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from stream.data.inspecting.shapes import NUMBER, TEXT, shape_of

MOST_NUMBERS = 0.95  # share of the values that must be numbers, so that the others are not
CONSENT = {"accept", "reject", "ignore"}
FEW_VALUES = 10  # rows for each different value, on average, of what is rather a label than a text


@dataclass(frozen=True)
class Column:
    """The values of one column, counted.

    Attributes:
        name: the column's name.
        kind: what its type holds, in words.
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

    @property
    def has_few_values(self) -> bool:
        """Whether each value stands in many rows."""
        return FEW_VALUES * len(self.counts) <= self.rows

    @property
    def is_consent(self) -> bool:
        """Whether the values say what an annotator thought of the row's label, as in Prodigy."""
        return bool(self.counts) and set(self.counts) <= CONSENT

    @property
    def are_whole(self) -> bool:
        """Whether the numbers have no fractions."""
        return all(number.is_integer() for number in self.numbers.values())

    @property
    def are_mostly_numbers(self) -> bool:
        """Whether so many values are numbers that the others are none."""
        return sum(self.counts[text] for text in self.numbers) >= MOST_NUMBERS * max(self.rows, 1)

    @property
    def are_numbers(self) -> bool:
        """Whether all values are numbers."""
        return len(self.numbers) == len(self.counts) > 0

    @cached_property
    def numbers(self) -> dict[str, float]:
        """The values that are finite numbers, by their texts."""
        found = {text: float(text) for text in self.counts if NUMBER.fullmatch(text)}
        return {text: number for text, number in found.items() if math.isfinite(number)}

    @cached_property
    def shape(self) -> str:
        """What the values look like, in words; `TEXT` only of texts."""
        if not self.counts:
            return "nothing"
        if self.is_nested:
            return "lists or objects"
        return shape_of(self.counts) if self.is_string else self.kind

    @cached_property
    def is_prose(self) -> bool:
        """Whether the values look like texts, and are not all the same one."""
        return self.shape == TEXT and (len(self.counts) > 1 or self.rows == 1)

    @cached_property
    def example(self) -> str:
        """The value that most rows hold."""
        return next((text for text, _ in self.counts.most_common(1)), "")

    def joined(self, other: "Column") -> "Column":
        """Return the column of both columns' rows."""
        return replace(
            self,
            counts=self.counts + other.counts,
            blank=self.blank + other.blank,
            blank_texts=list(dict.fromkeys([*self.blank_texts, *other.blank_texts])),
            is_string=self.is_string and other.is_string,
            is_nested=self.is_nested or other.is_nested,
        )


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
        "values of several types" if is_json else _kind(kind),
        counts,
        blank,
        [text for text in blanks if text],
        is_string=is_string and not is_json,
        is_nested=lists or pa.types.is_nested(kind),
    )


def _kind(kind: pa.DataType) -> str:
    """Return the kind of values of an Arrow type, in words."""
    types = pa.types
    kinds = {
        "numbers": types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind),
        "truth values": types.is_boolean(kind),
        "dates": types.is_temporal(kind),
        "text": types.is_string(kind) or types.is_large_string(kind),
        "bytes": "binary" in str(kind),
        "nothing": types.is_null(kind),
    }
    return next((name for name, is_kind in kinds.items() if is_kind), str(kind))


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
