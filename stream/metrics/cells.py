"""What all metrics share: which cells there are, and what happens where one is missing.

R[i, j] is the score on the task at stream position j after learning the one at position i, both
from 0 in code and from 1 in formulas; NaN means not evaluated. A task that comes twice has two
positions: R[j, j] is the score right after that visit.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

Direction = Literal["higher", "lower"]
_SIGNS = {"higher": 1.0, "lower": -1.0}


class NotEvaluatedError(ValueError):
    """A metric needs a cell, a reference or a probe point that was not evaluated."""


def needed(values: np.ndarray, what: str) -> np.ndarray:
    """Return ``values``, none of which may be missing."""
    if np.isnan(values).any():
        raise NotEvaluatedError(f"{what} needs cells that were not evaluated")
    return values


def rows_done(matrix: np.ndarray) -> int:
    """Return k, the number of tasks learned and evaluated: evaluated cells on the diagonal."""
    return int(np.count_nonzero(~np.isnan(np.diagonal(matrix))))


def sign(direction: Direction) -> float:
    """Return 1 where a higher score is better, -1 where a lower one is (a loss, an error)."""
    if direction not in _SIGNS:
        raise ValueError(f"direction {direction!r} is not one of {', '.join(_SIGNS)}")
    return _SIGNS[direction]


def reference(values: Sequence[float] | np.ndarray, matrix: np.ndarray, what: str) -> np.ndarray:
    """Return reference scores of the k tasks learned, float64 [k]; ``values`` has one a task."""
    scores = np.asarray(values, dtype=np.float64)
    if scores.shape != matrix.shape[1:]:
        raise ValueError(
            f"{what}: {matrix.shape[1]} tasks need {matrix.shape[1]} reference scores, "
            f"not an array of shape {scores.shape}"
        )
    return needed(scores[: rows_done(matrix)], what)


def lower_triangle(matrix: np.ndarray, what: str, *, diagonal: bool) -> tuple[np.ndarray, ...]:
    """Return (scores, rows, columns) of the cells i >= j, or i > j, of the k rows done."""
    rows, columns = np.tril_indices(rows_done(matrix), 0 if diagonal else -1)
    return needed(matrix[rows, columns], what), rows, columns
