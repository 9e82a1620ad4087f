"""Subsamples that nest: the 100-row sample of a split lies within its 200-row sample."""

import numpy as np

from stream.data.task import Rows


def subsample(rows: Rows, limit: int | None, num_labels: int | None) -> Rows:
    """Return at most ``limit`` rows, chosen by the hash of their texts, stratified by label.

    Within a class the rows are ranked by hash; row r of a class of n gets the place
    (r + 1/2) / n, and the rows with the lowest places are taken. So every class keeps its share
    to within a row, and a smaller limit takes a subset. The order of the split is kept.
    """
    if limit is None or limit >= len(rows):
        return rows
    strata = rows.labels if num_labels is not None else np.zeros(len(rows), np.int64)
    by_hash = np.argsort(rows.keys, kind="stable")
    places = np.empty(len(rows))
    for stratum in np.unique(strata):
        members = by_hash[strata[by_hash] == stratum]
        places[members] = (np.arange(len(members)) + 0.5) / len(members)
    chosen = np.lexsort((rows.keys, places))[:limit]
    return rows.select(np.sort(chosen))
