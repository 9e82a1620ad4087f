"""Subsamples that nest: the 100-row sample of a split lies within its 200-row sample."""

import hashlib

import numpy as np

from stream.tasks.task import Rows


def subsample(rows: Rows, limit: int | None, num_labels: int | None) -> Rows:
    """Return at most ``limit`` rows, chosen by the hash of their texts, stratified by label.

    Within a class the rows are ranked by hash; row r of a class of n gets the place
    (r + 1/2) / n, and the rows with the lowest places are taken. So every class keeps its share
    to within a row, and a smaller limit takes a subset. The order of the split is kept.
    """
    if limit is None or limit >= len(rows):
        return rows
    keys = [hashlib.sha256("\x1f".join(texts).encode()).digest() for texts in rows.texts]
    by_hash = sorted(range(len(rows)), key=lambda row: (keys[row], row))
    strata = rows.labels.tolist() if num_labels is not None else [0] * len(rows)
    sizes: dict[int, int] = {}
    for stratum in strata:
        sizes[stratum] = sizes.get(stratum, 0) + 1
    seen = dict.fromkeys(sizes, 0)
    place = {}
    for row in by_hash:
        stratum = strata[row]
        place[row] = (seen[stratum] + 0.5) / sizes[stratum]
        seen[stratum] += 1
    chosen = sorted(by_hash, key=lambda row: (place[row], keys[row]))[:limit]
    return rows.take(np.array(sorted(chosen)))
