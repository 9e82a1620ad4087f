"""What a text that another task answers counts as, in each kind of task.

Wrong, as an answer outside the classes of its own task, unless the two tasks share their labels:
then the answer is the label of the same name. For each metric:

- accuracy: a wrong answer;
- F1 of class 1: no positive, so a text of class 1 is missed, and another one changes nothing;
- Matthews' correlation: one more class of answers, which no text has (R_K of Gorodkin 2004, which
  for two classes is Matthews' own);
- correlations of scores: the middle of the range, which a task answers before it learns anything,
  unless both tasks predict scores that mean the same;
- answers of questions: no word is right, 0.

N texts, K outputs of their own task.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream.data.spans.answers import Answers
from stream.data.task import Task
from stream.evaluation.task_metrics import Score, score
from stream.models.heads import Head


class Foreign(NamedTuple):
    """Texts that another task answers.

    Attributes:
        task: the task that answers.
        rows: which texts, int64 [n].
        logits: its answers, float32 [n, K of that task]; None where they cannot be right.
    """

    task: Task
    rows: np.ndarray
    logits: np.ndarray | None


def score_with_foreign(
    task: Task, logits: np.ndarray, targets: np.ndarray | Answers, foreign: Sequence[Foreign]
) -> Score:
    """Score the answers to the texts of a task, some of them by other tasks.

    Args:
        task: whose texts they are.
        logits: its own answers to all texts, [N, K].
        targets: what they are compared with.
        foreign: texts that others answer; without any, this is `score` of ``logits``.
    """
    metric = task.spec.metric
    if isinstance(targets, Answers):
        judged = targets.judged(logits, metric)
        for group in foreign:
            judged[group.rows] = 0
        return Score(float(judged.mean()))
    if not foreign:
        return score(metric, logits, targets, task.name)
    room = 0 if task.is_regression else 1  # a class more, which no own logit reaches
    answers = np.pad(logits, ((0, 0), (0, room)), constant_values=-np.inf)
    for group in foreign:
        answers[group.rows] = _translated(task, group, answers.shape[1])
    return score(metric, answers, targets, task.name)


def _translated(task: Task, group: Foreign, width: int) -> np.ndarray:
    """Return the answers of another task as those of ``task``, float32 [n, width]."""
    if task.is_regression:
        low, high = task.spec.score_range or (0.0, 0.0)
        middle = np.full((len(group.rows), width), (low + high) / 2, np.float32)
        return middle if group.logits is None else group.logits
    classes = np.full(len(group.rows), width - 1)
    if group.logits is not None:
        place = {label: k for k, label in enumerate(task.spec.labels or ())}
        names: list[str] = group.task.spec.labels or []
        classes[:] = [place.get(names[k], width - 1) for k in group.logits.argmax(axis=1).tolist()]
    answers = np.full((len(group.rows), width), Head.NEVER, np.float32)
    answers[np.arange(len(classes)), classes] = 0
    return answers
