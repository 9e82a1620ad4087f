"""Transfer: how learning a task changes the scores of earlier and of later tasks.

Every difference is positive if learning helped, whether higher or lower scores are better.
"""

from collections.abc import Sequence

import numpy as np

from stream.metrics.cells import (
    Direction,
    lower_triangle,
    reference_scores,
    require_evaluated,
    rows_done,
    sign,
)
from stream.metrics.scores import learning_score, retained_score


def backward_transfer(matrix: np.ndarray, *, direction: Direction = "higher") -> float | None:
    """BWT = (1/(k-1)) sum_{j<k} (R[k, j] - R[j, j]); None for fewer than two tasks.

    Lopez-Paz & Ranzato 2017 (GEM), eq. 3. GEM's released code divides by k; this function does not.

    >>> round(backward_transfer(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    -0.1
    """
    k = rows_done(matrix)
    if k < 2:
        return None
    last = require_evaluated(matrix[k - 1, : k - 1], "bwt")
    change = last - require_evaluated(np.diagonal(matrix)[: k - 1], "bwt")
    return float(sign(direction) * change.mean())


def backward_transfer_improvement(
    matrix: np.ndarray, *, direction: Direction = "higher"
) -> float | None:
    """BTI = RA - LA = BWT (k-1)/k: the last task counts too, with 0; None for no task.

    Riemer et al. 2019 (MER), section 5.

    >>> round(backward_transfer_improvement(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    -0.05
    """
    retained, learned = retained_score(matrix), learning_score(matrix)
    if retained is None or learned is None:
        return None
    return sign(direction) * (retained - learned)


def backward_transfer_diaz(matrix: np.ndarray, *, direction: Direction = "higher") -> float | None:
    """BWT_D = sum_{i>j} (R[i, j] - R[j, j]) / (k(k-1)/2); None for fewer than two tasks.

    BWT of Díaz-Rodríguez et al. 2018 (arXiv 1810.13166): averaged over the whole lower
    triangle. GEM's BWT is its last row.

    >>> round(backward_transfer_diaz(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    -0.1
    """
    scores, _, columns = lower_triangle(matrix, "bwt_diaz", diagonal=False)
    if not scores.size:
        return None
    change = scores - require_evaluated(np.diagonal(matrix)[columns], "bwt_diaz")
    return float(sign(direction) * change.mean())


def remembering(matrix: np.ndarray, *, direction: Direction = "higher") -> float | None:
    """REM = 1 - |min(BWT_D, 0)|: 1 if nothing is forgotten; None for fewer than two tasks.

    Díaz-Rodríguez et al. 2018 (arXiv 1810.13166). It can be
    below 0 for scores in [-1, 1].

    >>> round(remembering(np.array([[0.9, np.nan], [0.8, 0.6]])), 12)
    0.9
    """
    change = backward_transfer_diaz(matrix, direction=direction)
    return None if change is None else 1.0 - abs(min(change, 0.0))


def positive_backward_transfer(
    matrix: np.ndarray, *, direction: Direction = "higher"
) -> float | None:
    """BWT+ = max(BWT_D, 0); None for fewer than two tasks.

    Díaz-Rodríguez et al. 2018 (arXiv 1810.13166).

    >>> positive_backward_transfer(np.array([[0.9, np.nan], [0.8, 0.6]]))
    0.0
    """
    change = backward_transfer_diaz(matrix, direction=direction)
    return None if change is None else max(change, 0.0)


def forward_transfer(
    matrix: np.ndarray,
    baseline: Sequence[float] | np.ndarray,
    *,
    direction: Direction = "higher",
) -> float | None:
    """FWT = (1/(k-1)) sum_{2<=j<=k} (R[j-1, j] - b_j); None for fewer than two tasks.

    Lopez-Paz & Ranzato 2017 (GEM), eq. 4. ``baseline`` is b [T], the scores before any learning,
    from the same initial weights. R[j-1, j] is the score of a task *before* it is learned: with
    one head per task that head is still untrained, and FWT says little about the encoder.

    >>> round(forward_transfer(np.array([[0.9, 0.3], [0.8, 0.6]]), [0.1, 0.2]), 12)
    0.1
    """
    k = rows_done(matrix)
    if k < 2:
        return None
    start = reference_scores(baseline, matrix, "fwt")[1:]
    before = require_evaluated(np.diagonal(matrix, offset=1)[: k - 1], "fwt")
    return float(sign(direction) * (before - start).mean())


def forward_transfer_diaz(matrix: np.ndarray) -> float | None:
    """FWT_D = sum_{i<j} R[i, j] / (k(k-1)/2); None for fewer than two tasks.

    FWT of Díaz-Rodríguez et al. 2018 (arXiv 1810.13166): a mean of scores,
    without subtracting a baseline.

    >>> forward_transfer_diaz(np.array([[0.9, 0.3], [0.8, 0.6]]))
    0.3
    """
    rows, columns = np.triu_indices(rows_done(matrix), 1)
    if not rows.size:
        return None
    return float(require_evaluated(matrix[rows, columns], "fwt_diaz").mean())
