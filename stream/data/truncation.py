"""Rows that are cut to a number of tokens.

The tokenizer's own truncation also builds every piece that it cuts off, and for a pair every
combination of the pieces of both texts. So rows are encoded whole, and what stays is chosen here.
"""

from collections import Counter
from typing import Any, TypeVar

T = TypeVar("T")


class Truncated:
    """The tokenizer's encoding of a text or pair, cut to at most ``max_length`` tokens.

    Special tokens stay, and texts lose tokens at their end. What stays is what the strategies
    ``longest_first`` and ``only_second`` of the tokenizers library keep.

    Attributes:
        is_cut: whether tokens are missing.
        has_room: whether something of the second text is left, where only that one is cut.
    """

    def __init__(self, encoding: Any, max_length: int, *, only_second: bool = False):
        """Choose the tokens that stay.

        Args:
            encoding: the fast tokenizer's encoding, not truncated.
            max_length: the largest number of tokens, special tokens included.
            only_second: whether the first text of a pair stays whole.
        """
        self._encoding = encoding
        self.is_cut = len(encoding) > max_length
        self.has_room = True
        if self.is_cut:
            self._choose(max_length, only_second=only_second)

    def _choose(self, max_length: int, *, only_second: bool) -> None:
        """Find the places of the tokens that stay."""
        of_text: list[int | None] = self._encoding.sequence_ids
        counts = Counter(of_text)
        first, second, room = counts[0], counts[1], max_length - counts[None]
        left = (first, room - first) if only_second else longest_first(first, second, room)
        self.has_room = left[1] > 0 or not only_second
        seen = [0, 0]
        self._places = list[int]()
        for place, text in enumerate(of_text):
            if text is None or seen[text] < left[text]:
                self._places.append(place)
            if text is not None:
                seen[text] += 1

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


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens two texts keep if the longer one loses tokens first.

    >>> longest_first(3, 20, 12), longest_first(20, 20, 13), longest_first(20, 0, 13)
    ((3, 9), (6, 7), (13, 0))

    Args:
        first: tokens of the first text.
        second: tokens of the second text.
        room: how many tokens may stay.
    """
    shorter, longer = sorted((first, second))
    if first + second > room:
        shorter = min(shorter, room // 2)
        longer = room - shorter
    return (longer, shorter) if first > second else (shorter, longer)
