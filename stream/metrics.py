"""Continual-learning metrics: pure functions of the matrix R, float64 [T, T].

R[i, j] is the score on task j after learning task i; NaN means not evaluated. k counts the tasks
learned so far. Every function returns None where its definition has no value (never 0, -1 or NaN),
never changes its argument, and raises ValueError where a cell that it needs was not evaluated.
Scores of tasks with different metrics are averaged as they are; the mean is therefore called
"score", not "accuracy".
"""

from collections.abc import Mapping

import numpy as np


def _needed(values: np.ndarray, what: str) -> np.ndarray:
    """Return ``values``, none of which may be missing."""
    if np.isnan(values).any():
        raise ValueError(f"{what} needs cells that were not evaluated")
    return values


def rows_done(matrix: np.ndarray) -> int:
    """Return k, the number of tasks learned and evaluated: evaluated cells on the diagonal."""
    return int(np.count_nonzero(~np.isnan(np.diagonal(matrix))))


def average_score(matrix: np.ndarray, k: int | None = None) -> float | None:
    """Mean score over the tasks seen, after the last of them: (1/k) sum_{j<=k} R[k, j].

    ACC of Lopez-Paz & Ranzato 2017 (GEM), eq. 2. The macro average over tasks.

    >>> average_score(np.array([[0.9, np.nan], [0.8, 0.6]]))
    0.7
    """
    k = rows_done(matrix) if k is None else k
    if k == 0:
        return None
    return float(_needed(matrix[k - 1, :k], "average_score").mean())


def learning_score(matrix: np.ndarray) -> float | None:
    """Mean score right after learning each task: (1/k) sum_j R[j, j].

    LA of Riemer et al. 2019 (MER), section 5.

    >>> learning_score(np.array([[0.9, np.nan], [0.8, 0.6]]))
    0.75
    """
    k = rows_done(matrix)
    if k == 0:
        return None
    return float(_needed(np.diagonal(matrix)[:k], "learning_score").mean())


def backward_transfer(matrix: np.ndarray) -> float | None:
    """BWT = (1/(k-1)) sum_{j<k} (R[k, j] - R[j, j]); None for fewer than two tasks.

    Lopez-Paz & Ranzato 2017 (GEM), eq. 3. GEM's released code divides by k: not copied.

    >>> round(backward_transfer(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    -0.1
    """
    k = rows_done(matrix)
    if k < 2:
        return None
    last = _needed(matrix[k - 1, : k - 1], "bwt")
    return float((last - _needed(np.diagonal(matrix)[: k - 1], "bwt")).mean())


def forgetting(matrix: np.ndarray) -> float | None:
    """F_k = (1/(k-1)) sum_{j<k} (max_{j<=l<k} R[l, j] - R[k, j]); None for fewer than two tasks.

    Chaudhry et al. 2018 (RWalk), eq. 3. The maximum leaves out row k, so that backward transfer
    shows as a negative value, and rows before task j was learned.

    >>> round(forgetting(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    0.1
    """
    k = rows_done(matrix)
    if k < 2:
        return None
    drops = [
        _needed(matrix[j : k - 1, j], "forgetting").max()
        - _needed(matrix[k - 1, j : j + 1], "forgetting")[0]
        for j in range(k - 1)
    ]
    return float(np.mean(drops))


METRICS = {
    "average_score": average_score,
    "learning_score": learning_score,
    "bwt": backward_transfer,
    "forgetting": forgetting,
}


def summarize(matrix: np.ndarray) -> Mapping[str, float | None]:
    """Return every metric of ``matrix`` by name, None where undefined."""
    return {name: function(matrix) for name, function in METRICS.items()}
