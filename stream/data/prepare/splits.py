"""Splits for sources that lack some: by a hash of the normalised text, or of a group.

The same text has the same place in every task, so it lands in the same split in all of them (the
three political tasks of Houlsby et al. 2019 label the same 5,000 posts).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from stream.config.task import SPLITS
from stream.data.identity import text_key
from stream.data.task import Rows
from stream.errors import require

HELD_OUT = 0.1  # the paper's 80/10/10 (Houlsby et al. 2019, Table 3)
ALL = "all"


def places(rows: Rows, groups: Sequence[str] | None) -> np.ndarray:
    """Return each row's place in [0, 1), float64 [N]; rows of one group share theirs."""
    if groups is None:
        return rows.keys / 2.0**64
    return np.array([text_key([group]) for group in groups], np.uint64) / 2.0**64


def carve(given: Sequence[str], where: np.ndarray) -> Mapping[str, np.ndarray]:
    """Return which rows of the source's one undivided part go to which split.

    Args:
        given: splits that the source has besides that part, such as ``test``.
        where: the rows' places.

    Returns:
        Indices by split: test and validation take a tenth each where they are not given.
    """
    wanted = [split for split in ("test", "validation") if split not in given]
    taken = np.full(len(where), "train", dtype=object)
    for index, split in enumerate(wanted):
        taken[(where >= index * HELD_OUT) & (where < (index + 1) * HELD_OUT)] = split
    return {split: np.flatnonzero(taken == split) for split in ["train", *wanted]}


def undivided_part(name: str, splits: Mapping[str, str]) -> str | None:
    """Return the part of a source that must be divided: ``all``, ``train``, or None.

    Raises:
        UserError: splits that are neither a whole set, nor ``all``, nor include ``train``.
    """
    unknown = set(splits) - {*SPLITS, ALL}
    valid = not unknown and ("train" in splits) != (ALL in splits)
    require(
        valid,
        f"task {name!r}: splits must hold train (and validation, test if there are any), or all; "
        f"got {sorted(splits)}",
    )
    if ALL in splits:
        return ALL
    return None if {"validation", "test"} <= set(splits) else "train"
