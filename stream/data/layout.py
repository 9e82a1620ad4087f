"""How the text fields of a row become the one or two segments that the encoder reads.

A tokenizer marks at most two texts: ``[CLS] A [SEP] B [SEP]``, with token types 0 and 1 where the
encoder has them (RoBERTa has none, and marks the border alone). So the fields of a row are joined
to one or two segments, which the tokenizer reads as it reads any text or pair: the tokens of a row
that is not cut are those of the joined texts. The rule is the task's `segments`; without it, the
last field is the second segment, and the fields before it are the first, apart by a blank.

Of a row that is too long, each field loses tokens at its end, the longest field first. For that,
each token is traced to its field by the characters that it stands for. The words of the segments
themselves, such as ``question:``, stay like special tokens.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stream.config.task import FIELD, MOST_SEGMENTS, TaskSpec

Part = str | int
"""A piece of a segment: words of the task, or the position of a field."""


@dataclass(frozen=True)
class Layout:
    """What stands in each segment.

    >>> Layout((("word: ", 0, " ", 1), (2,))).segments(("bank", "a river bank", "bank on it"))
    ('word: bank a river bank', 'bank on it')

    Attributes:
        parts: of each of the one or two segments, its pieces in order; each field occurs once.
    """

    parts: tuple[tuple[Part, ...], ...]

    @cached_property
    def key(self) -> str:
        """The layout as text, for the key of a cache."""
        return json.dumps(self.parts)

    def segments(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the segments of one row; ``texts`` are its fields."""
        return tuple(
            "".join(part if isinstance(part, str) else texts[part] for part in segment)
            for segment in self.parts
        )

    def owners(self, texts: Sequence[str], encoding: Any) -> list[int | None]:
        """Return the field of each token; None for special tokens and the segments' own words.

        A token that reaches into several fields is the first one's.

        Args:
            texts: the fields of the row.
            encoding: the fast tokenizer's encoding of the segments.
        """
        places = [_places(segment, texts) for segment in self.parts]
        stops = [[stop for _, _, stop in fields] for fields in places]
        found: list[int | None] = []
        for segment, (start, stop) in zip(encoding.sequence_ids, encoding.offsets, strict=True):
            owner = None
            if segment is not None:
                at = bisect_right(stops[segment], start)  # the first field that ends after it
                if at < len(stops[segment]) and places[segment][at][1] < stop:
                    owner = places[segment][at][0]
            found.append(owner)
        return found


def _places(segment: Sequence[Part], texts: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return (field, first character, the one after the last) of each field in a segment."""
    found, start = [], 0
    for part in segment:
        length = len(part if isinstance(part, str) else texts[part])
        if isinstance(part, int):
            found.append((part, start, start + length))
        start += length
    return found


def layout_of(spec: TaskSpec) -> Layout | None:
    """Return how a task's fields are joined; None if each field is a segment as it is."""
    if spec.segments:
        at = {name: position for position, name in enumerate(spec.field_names)}
        return Layout(tuple(_parts(segment, at) for segment in spec.segments))
    return plain_layout(spec.num_fields)


def plain_layout(number: int) -> Layout | None:
    """Return how ``number`` fields are joined where no task says it."""
    if number <= MOST_SEGMENTS:
        return None
    first = [part for position in range(number - 1) for part in (" ", position)]
    return Layout((tuple(first[1:]), (number - 1,)))


def _parts(segment: str, at: dict[str, int]) -> tuple[Part, ...]:
    """Return the pieces of a segment as a task's YAML writes it."""
    pieces = FIELD.split(segment)  # words and names in turn
    parts = [at[piece] if turn % 2 else piece for turn, piece in enumerate(pieces)]
    return tuple(part for part in parts if part != "")
