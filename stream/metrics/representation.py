"""What forgetting hides: how much of it the encoder lost, and how much its old heads.

P[i, j] is the score of a linear probe on task j: a head trained anew on the encoder as it is after
task i (`stream.evaluation.linear_probe`). Probes are lists [T], NaN where a task has none.
"""

from collections.abc import Sequence

import numpy as np

from stream.metrics.cells import require_evaluated, rows_done

Scores = Sequence[float | None] | np.ndarray


def representation_forgetting(learned: Scores, final: Scores) -> float | None:
    """(1/(k-1)) sum_{j<k} (P[j, j] - P[k, j]): what the encoder itself lost (Davari et al. 2022).

    None for fewer than two tasks.

    >>> representation_forgetting([0.75, 0.5], [0.5, 0.5])
    0.25

    Args:
        learned: P[j, j], right after each task was learned.
        final: P[k, j], at the end.
    """
    lost = np.asarray(learned, np.float64)[:-1] - np.asarray(final, np.float64)[:-1]
    return _mean(lost)


def head_misalignment(matrix: np.ndarray, final: Scores) -> float | None:
    """(1/k) sum_j (P[k, j] - R[k, j]): what new heads would win back. None for no task.

    >>> head_misalignment(np.array([[0.9, np.nan], [0.25, 0.5]]), [0.5, 0.5])
    0.125

    Args:
        matrix: R, float64 [T, T].
        final: P[k, j], at the end.
    """
    k = rows_done(matrix)
    last = require_evaluated(matrix[k - 1, :k], "head_misalignment") if k else np.empty(0)
    return _mean(np.asarray(final, np.float64)[:k] - last)


def _mean(values: np.ndarray) -> float | None:
    """Return the mean of the values there are; None of none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
