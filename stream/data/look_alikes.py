"""Labels that look alike: but for case, blanks, quotes and how Unicode has them, or as numbers.

``1``, ``1.0`` and ``01`` in a file may be one class in three spellings, or three classes. A task
takes names as they are; a person is told.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from unicodedata import normalize

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?")
QUOTED = re.compile(r"\"([^\"]+)\"")


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that look alike, each in the order of the names.

    >>> look_alikes(["1", "2", "01", "Yes", "yes ", "no"])
    [['1', '01'], ['Yes', 'yes ']]
    """
    groups: dict[str | Decimal, list[str]] = {}
    for name in names:
        groups.setdefault(_look(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _look(name: str) -> str | Decimal:
    """Return what names that look alike share; numbers are exact, as long ones may be ids."""
    folded = " ".join(normalize("NFKC", name).casefold().split())
    inner = QUOTED.fullmatch(folded)  # a text among numbers in JSON has its quotes
    folded = folded if inner is None else inner[1].strip()
    return Decimal(folded) if NUMBER.fullmatch(folded) else folded
