"""Rows that are cut to a number of tokens.

The tokenizer's own truncation also builds every piece that it cuts off, and for a pair every
combination of the pieces of both texts. So rows are encoded whole, and what stays is chosen here.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Truncated:
    """The tokenizer's encoding of a text or pair, cut to at most ``max_length`` tokens.

    Special tokens stay, and texts lose tokens at their end. What stays is what the strategies
    ``longest_first`` and ``only_second`` of the tokenizers library keep; where several fields are
    joined to a text, each of them counts as a text, and what is of no field stays.

    Attributes:
        is_cut: whether tokens are missing.
        has_room: whether something of what is cut is left.
    """

    def __init__(
        self,
        encoding: Any,
        max_length: int,
        *,
        only_second: bool = False,
        owners: Callable[[Any], list[int | None]] | None = None,
    ):
        """Choose the tokens that stay.

        Args:
            encoding: the fast tokenizer's encoding, not truncated.
            max_length: the largest number of tokens, special tokens included.
            only_second: whether the first text of a pair stays whole.
            owners: returns the field of each token of an encoding, None where the token stays; by
                default the texts are the fields. Only called for what is cut.
        """
        self._encoding = encoding
        self.is_cut = len(encoding) > max_length
        self.has_room = True
        if self.is_cut:
            of_field = owners(encoding) if owners else encoding.sequence_ids
            self._choose(of_field, max_length, only_second=only_second)

    def _choose(
        self, of_field: Sequence[int | None], max_length: int, *, only_second: bool
    ) -> None:
        """Find the places of the tokens that stay."""
        counts = Counter(of_field)
        room = max_length - counts[None]
        if only_second:
            left = {0: counts[0], 1: room - counts[0]}
            self.has_room = left[1] > 0
        else:
            fields = sorted(field for field in counts if field is not None)
            lengths = [counts[field] for field in fields]
            left = dict(zip(fields, longest_first(lengths, room), strict=True))
            self.has_room = room > 0
        self._places = list[int]()
        for place, field in enumerate(of_field):
            if field is None or left[field] > 0:
                self._places.append(place)
            if field is not None:
                left[field] -= 1

    @property
    def ids(self) -> list[int]:
        """The token ids."""
        return self._left(self._encoding.ids)

    @property
    def type_ids(self) -> list[int]:
        """The token type of each token."""
        return self._left(self._encoding.type_ids)

    @property
    def sequence_ids(self) -> list[int | None]:
        """The text that each token is from, 0 or 1; None for special tokens."""
        return self._left(self._encoding.sequence_ids)

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The characters of its text that each token stands for."""
        return self._left(self._encoding.offsets)

    def _left(self, values: list[T]) -> list[T]:
        """Return the values of the tokens that stay."""
        return [values[place] for place in self._places] if self.is_cut else values


def longest_first(lengths: Sequence[int], room: int) -> list[int]:
    """Return how many tokens each text keeps if the longest one always loses the next token.

    Of equally long ones, the one that was shorter loses it, else the earlier one.

    >>> longest_first([3, 20], 12), longest_first([20, 20], 13), longest_first([2, 30, 9], 16)
    ([3, 9], [6, 7], [2, 7, 7])

    Args:
        lengths: tokens of each text.
        room: how many tokens may stay.
    """
    kept = list(lengths)
    left = room
    shortest_first = sorted(range(len(kept)), key=lambda at: kept[at])
    for done, at in enumerate(shortest_first):
        kept[at] = min(kept[at], max(left, 0) // (len(kept) - done))
        left -= kept[at]
    return kept
