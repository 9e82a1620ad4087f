"""Forgetting: how much worse earlier tasks have become. A positive value always means worse."""

import numpy as np

from stream.metrics.cells import Direction, require_evaluated, rows_done, sign
from stream.metrics.transfer import backward_transfer


def forgetting(
    matrix: np.ndarray, k: int | None = None, *, direction: Direction = "higher"
) -> float | None:
    """F_k = (1/(k-1)) sum_{j<k} (max_{j<=l<k} R[l, j] - R[k, j]); None for fewer than two tasks.

    Chaudhry et al. 2018 (RWalk), eq. 3. The maximum excludes row k, so that backward transfer
    gives a negative value, and rows before task j was learned. For a score where lower is better,
    the difference is R[k, j] - min_{j<=l<k} R[l, j].

    >>> round(forgetting(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    0.1
    """
    k = rows_done(matrix) if k is None else k
    if k < 2:
        return None
    return float(forgetting_by_task(matrix, k, direction=direction).mean())


def forgetting_by_task(
    matrix: np.ndarray, k: int | None = None, *, direction: Direction = "higher"
) -> np.ndarray:
    """Return f_j^k = max_{j<=l<k} R[l, j] - R[k, j] of every earlier task, float64 [k-1].

    Chaudhry et al. 2018 (RWalk), eq. 3.

    >>> forgetting_by_task(np.array([[0.9, np.nan], [0.8, 0.6]])).round(12).tolist()
    [0.1]
    """
    k = rows_done(matrix) if k is None else k
    scores = sign(direction) * matrix
    drops = [
        require_evaluated(scores[j : k - 1, j], "forgetting").max()
        - require_evaluated(scores[k - 1, j : j + 1], "forgetting")[0]
        for j in range(k - 1)
    ]
    return np.array(drops, dtype=np.float64)


def forgetting_first(matrix: np.ndarray, *, direction: Direction = "higher") -> float | None:
    """(1/(k-1)) sum_{j<k} (R[j, j] - R[k, j]) = -BWT; None for fewer than two tasks.

    Avalanche calls it ``Forgetting``: the drop from the first score, not from the best one.

    >>> round(forgetting_first(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    0.1
    """
    change = backward_transfer(matrix, direction=direction)
    return None if change is None else 0.0 - change  # never -0.0
