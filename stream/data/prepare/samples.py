"""Nested samples: the 100-row sample of a split is part of its 200-row sample."""

from collections.abc import Iterator

import numpy as np

from stream.data.task import Rows
from stream.seeding import derive_seed

MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""The multipliers of splitmix64 (Steele et al. 2014), whose end mixes the bits of a number."""


def subsample(
    rows: Rows,
    limit: int | None,
    num_labels: int | None,
    per_class: int | None = None,
    seed: int | None = None,
) -> Rows:
    """Return at most ``limit`` rows, chosen by the hash of their texts and stratified by label.

    Within a class, the rows are sorted by hash, and the first ``per_class`` are taken. Of the n
    rows that this leaves, row r (from 0) gets the position (r + 1/2) / n. The rows with the lowest
    positions are chosen. So every class keeps its share to within one row, and a smaller limit
    chooses a subset.

    Args:
        rows: the rows of one split.
        limit: the largest number of rows; None keeps all.
        num_labels: the number of classes; None (no classes) samples without strata.
        per_class: the largest number of rows of each class; None keeps all.
        seed: another seed sorts the rows otherwise; None sorts them by the hash itself.

    Returns:
        The chosen rows, in the order of the split.
    """
    wanted = len(rows) if limit is None else limit
    if per_class is None and wanted >= len(rows):
        return rows
    keys = rows.keys if seed is None else _mixed(rows.keys, seed)
    positions = np.full(len(rows), np.inf)
    for members in _by_class(rows, num_labels, keys):
        taken = members[:per_class]
        positions[taken] = (np.arange(len(taken)) + 0.5) / len(taken)
    wanted = min(wanted, int(np.isfinite(positions).sum()))
    chosen = np.lexsort((keys, positions))[:wanted]
    return rows.select(np.sort(chosen))


def num_short(rows: Rows, num_labels: int | None, per_class: int) -> int:
    """Return how many classes have rows, but fewer than ``per_class``; all rows are one if None."""
    sizes = [len(members) for members in _by_class(rows, num_labels, rows.keys)]
    return sum(size < per_class for size in sizes)


def _by_class(rows: Rows, num_labels: int | None, keys: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the indices of the rows of each class that has any, sorted by their keys."""
    strata = rows.labels if num_labels is not None else np.zeros(len(rows), np.int64)
    sorted_rows = np.argsort(keys, kind="stable")
    for stratum in np.unique(strata):
        yield sorted_rows[strata[sorted_rows] == stratum]


def _mixed(keys: np.ndarray, seed: int) -> np.ndarray:
    """Return the keys as other numbers, uint64 [N]: a random order that depends on no other row."""
    mixed = keys ^ np.uint64(derive_seed(seed, "sample"))
    for shift, factor in zip((30, 27), MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
