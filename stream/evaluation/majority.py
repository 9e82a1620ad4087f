"""The floor of a stream: what always giving a task's majority answer scores."""

from collections.abc import Sequence

import numpy as np

from stream.data.majority import majority_logits
from stream.data.task import Task
from stream.evaluation.task_metrics import score


def majority_scores(tasks: Sequence[Task], split: str) -> list[float | None]:
    """Return the score of the majority answer on each task; None of a span task, which has none.

    A correlation is undefined for constant answers: it counts as 0, as in the score matrix.

    Args:
        tasks: the stream.
        split: the split that is scored.
    """
    return [None if task.is_span else _score(task, split) for task in tasks]


def _score(task: Task, split: str) -> float:
    """Return the score of the majority answer on one task."""
    targets = task.split(split).targets
    logits = np.tile(majority_logits(task).astype(np.float32), (len(targets), 1))
    return score(task.spec.metric, logits, targets).value
