"""Means of scores: at the end of the stream, along it, and right after learning each task."""

import numpy as np

from stream.metrics.cells import lower_triangle, require_evaluated, rows_done


def average_score(matrix: np.ndarray, k: int | None = None) -> float | None:
    """Mean score over the tasks so far, after the last of them: (1/k) sum_{j<=k} R[k, j].

    ACC of Lopez-Paz & Ranzato 2017 (GEM), eq. 2. The macro average over tasks.

    >>> average_score(np.array([[0.9, np.nan], [0.8, 0.6]]))
    0.7
    """
    k = rows_done(matrix) if k is None else k
    if k == 0:
        return None
    return float(require_evaluated(matrix[k - 1, :k], "average_score").mean())


def retained_score(matrix: np.ndarray) -> float | None:
    """RA of Riemer et al. 2019 (MER), section 5: the average score at the end, with MER's name.

    >>> retained_score(np.array([[0.9, np.nan], [0.8, 0.6]]))
    0.7
    """
    return average_score(matrix)


def learning_score(matrix: np.ndarray) -> float | None:
    """Mean score right after learning each task: (1/k) sum_j R[j, j].

    LA of Riemer et al. 2019 (MER), section 5.

    >>> learning_score(np.array([[0.9, np.nan], [0.8, 0.6]]))
    0.75
    """
    k = rows_done(matrix)
    if k == 0:
        return None
    return float(require_evaluated(np.diagonal(matrix)[:k], "learning_score").mean())


def average_incremental_score(matrix: np.ndarray) -> float | None:
    """AIA = (1/k) sum_{i<=k} ACC_i: the average score after each task, averaged over the stream.

    "Average incremental accuracy" of Rebuffi et al. 2017 (iCaRL). Early tasks count
    more often than late ones, each row equally.

    >>> round(average_incremental_score(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    0.8
    """
    averages = [average_score(matrix, i + 1) for i in range(rows_done(matrix))]
    return float(np.mean([a for a in averages if a is not None])) if averages else None


def lower_triangle_score(matrix: np.ndarray) -> float | None:
    """A = sum_{i>=j} R[i, j] / (k(k+1)/2): every evaluation of a learned task counts equally.

    Accuracy of Díaz-Rodríguez et al. 2018 (arXiv 1810.13166). Not AIA: there each row
    counts equally.

    >>> round(lower_triangle_score(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    0.766666666667
    """
    scores, _, _ = lower_triangle(matrix, "a_diaz", diagonal=True)
    return float(scores.mean()) if scores.size else None
