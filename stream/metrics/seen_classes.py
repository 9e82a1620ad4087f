"""Accuracy over all classes seen so far, where one head answers for all of them.

The rows of all tasks met so far are pooled, so that every row counts the same however many a task
has: the usual score of class-incremental learning (iCaRL, Rebuffi et al. 2017, arXiv 1611.07725,
section 4.1). Where tasks have equally many rows it is the mean of the tasks' accuracies.
"""

import numpy as np

from stream.metrics.cells import NotEvaluatedError
from stream.metrics.flips import Correct


def seen_class_accuracy(correct: Correct, k: int) -> float | None:
    """A_k = #(right among the rows of tasks 1..k, after task k) / #(their rows).

    None for no task. Raises NotEvaluatedError if one of these cells has no correctness.

    >>> right, wrong = np.array([True, True, True]), np.array([False])
    >>> seen_class_accuracy([[right, None], [right, wrong]], 2)
    0.75
    """
    if k == 0:
        return None
    cells = [cell for cell in correct[k - 1][:k] if cell is not None]
    if len(cells) < k:
        raise NotEvaluatedError(f"row {k - 1} has a cell without correctness")
    return float(np.concatenate(cells).mean())


def average_seen_class_accuracy(correct: Correct, k: int) -> float | None:
    """(1/k) sum_i A_i, the average incremental accuracy of iCaRL; None for no task.

    >>> right, wrong = np.array([True, True, True]), np.array([False])
    >>> average_seen_class_accuracy([[right, None], [right, wrong]], 2)
    0.875
    """
    rows = [seen_class_accuracy(correct, i + 1) for i in range(k)]
    return float(np.mean([row for row in rows if row is not None])) if rows else None
