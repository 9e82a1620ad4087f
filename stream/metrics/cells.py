"""Shared by all metrics: which cells of the matrix exist, and what happens if one is missing.

R[i, j] is the score on the task at stream position j after learning the task at position i. Both
count from 0 in code and from 1 in formulas; NaN means not evaluated. A task that occurs twice has
two positions, and R[j, j] is the score right after that visit.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

Direction = Literal["higher", "lower"]
_SIGNS = {"higher": 1.0, "lower": -1.0}


class NotEvaluatedError(ValueError):
    """A metric needs a cell, a reference or a probe point that was not evaluated."""


def require_evaluated(values: np.ndarray, what: str) -> np.ndarray:
    """Return ``values``; raise NotEvaluatedError if one of them is NaN."""
    if np.isnan(values).any():
        raise NotEvaluatedError(f"{what} needs cells that were not evaluated")
    return values


def rows_done(matrix: np.ndarray) -> int:
    """Return k, the number of tasks that were learned and evaluated (cells on the diagonal)."""
    return int(np.count_nonzero(~np.isnan(np.diagonal(matrix))))


def sign(direction: Direction) -> float:
    """Return 1 if a higher score is better, -1 if a lower one is (a loss, an error)."""
    if direction not in _SIGNS:
        raise ValueError(f"direction {direction!r} is not one of {', '.join(_SIGNS)}")
    return _SIGNS[direction]


def reference_scores(
    values: Sequence[float] | np.ndarray, matrix: np.ndarray, what: str
) -> np.ndarray:
    """Return the reference scores of the k tasks that were learned, float64 [k].

    Args:
        values: one reference score per task, [T].
        matrix: R, float64 [T, T].
        what: the name of the metric, for messages.
    """
    scores = np.asarray(values, dtype=np.float64)
    if scores.shape != matrix.shape[1:]:
        raise ValueError(
            f"{what}: {matrix.shape[1]} tasks need {matrix.shape[1]} reference scores, "
            f"not an array of shape {scores.shape}"
        )
    return require_evaluated(scores[: rows_done(matrix)], what)


def lower_triangle(matrix: np.ndarray, what: str, *, diagonal: bool) -> tuple[np.ndarray, ...]:
    """Return (scores, rows, columns) of the cells i >= j (without diagonal i > j) of k rows."""
    rows, columns = np.tril_indices(rows_done(matrix), 0 if diagonal else -1)
    return require_evaluated(matrix[rows, columns], what), rows, columns
