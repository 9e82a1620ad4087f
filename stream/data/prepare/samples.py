"""Nested samples: the 100-row sample of a split is part of its 200-row sample."""

import numpy as np

from stream.data.task import Rows


def subsample(rows: Rows, limit: int | None, num_labels: int | None) -> Rows:
    """Return at most ``limit`` rows, chosen by the hash of their texts and stratified by label.

    Within a class of n rows, the rows are sorted by hash, and row r (from 0) gets the position
    (r + 1/2) / n. The rows with the lowest positions are chosen. So every class keeps its share to
    within one row, and a smaller limit chooses a subset.

    Args:
        rows: the rows of one split.
        limit: the largest number of rows; None keeps all.
        num_labels: the number of classes; None (no classes) samples without strata.

    Returns:
        The chosen rows, in the order of the split.
    """
    if limit is None or limit >= len(rows):
        return rows
    strata = rows.labels if num_labels is not None else np.zeros(len(rows), np.int64)
    by_hash = np.argsort(rows.keys, kind="stable")
    positions = np.empty(len(rows))
    for stratum in np.unique(strata):
        members = by_hash[strata[by_hash] == stratum]
        positions[members] = (np.arange(len(members)) + 0.5) / len(members)
    chosen = np.lexsort((rows.keys, positions))[:limit]
    return rows.select(np.sort(chosen))
