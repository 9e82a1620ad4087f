"""The answer that is the same for every text: a task's most frequent class, or its mean score."""

import numpy as np

from stream.data.task import Task


def majority_logits(task: Task) -> np.ndarray:
    """Return the logits [K] of the constant answer that a task's training rows suggest, float64.

    Of classes the logarithms of their frequencies, with one row added to each (Laplace), so that a
    class without rows stays finite; of scores their mean.

    Args:
        task: a task with classes or scores.
    """
    labels = task.split("train").labels
    if task.is_regression:
        return labels.mean(dtype=np.float64, keepdims=True)
    counts = np.bincount(labels, minlength=task.num_outputs) + 1
    return np.log(counts / counts.sum())
