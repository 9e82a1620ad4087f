"""How each task's score has changed since it was learned: the curves of forgetting.

T is the number of tasks. A change below 0 is forgetting. Undefined is NaN.
"""

import numpy as np


def change_since_learned(scores: np.ndarray) -> np.ndarray:
    """Return R[i, j] - R[j, j] for i >= j, NaN above the diagonal, float64 [..., T, T].

    >>> change_since_learned(np.array([[0.9, 0.5], [0.7, 0.6]])).round(12).tolist()
    [[0.0, nan], [-0.2, 0.0]]
    """
    first = np.diagonal(scores, axis1=-2, axis2=-1)[..., None, :]
    learned = np.tril(np.ones(scores.shape[-2:], dtype=bool))
    return np.where(learned, scores - first, np.nan)


def mean_change(changes: np.ndarray) -> np.ndarray:
    """Return the mean over the tasks learned before, after each task, float64 [T].

    After task k it is BWT over the first k tasks (Lopez-Paz and Ranzato 2017). NaN after the first
    task, before which there is none, and where a change is unknown.
    """
    earlier = [changes[after, :after] for after in range(len(changes))]
    return np.array([row.mean() if len(row) else np.nan for row in earlier])


def last_changes(changes: np.ndarray) -> np.ndarray:
    """Return each task's last known change, NaN of tasks not learned, float64 [T]."""
    known = [column[~np.isnan(column)] for column in changes.T]
    return np.array([column[-1] if len(column) else np.nan for column in known])
