"""A task's own metric, from predictions to one score in [-1, 1].

scipy.stats and scikit-learn are imported when a score is taken: it takes most of a second.
"""

from typing import Any, NamedTuple

import numpy as np

from stream.config.task import METRICS
from stream.data.spans.answers import Answers
from stream.errors import choose


class Score(NamedTuple):
    """A score, and whether constant predictions or targets left the metric undefined."""

    value: float
    undefined: bool = False


def score(metric: str, logits: np.ndarray, targets: np.ndarray | Answers) -> Score:
    """Score the logits of one task.

    Args:
        metric: ``accuracy``, ``f1`` (of class 1, as GLUE), ``matthews_correlation`` or
            ``spearman``; of spans ``answer_f1`` or ``exact_match``, the mean over rows.
        logits: float32 [N, K]; the predicted class is the arg max, K = 1 for regression.
        targets: class indices [N], scores [N] for regression, or the answers of spans.

    Returns:
        The score. Constant predictions or targets make a correlation undefined: it is 0 then,
        and flagged (scipy gives NaN, scikit-learn an unflagged 0). The same for an F1 without
        any positive.
    """
    choose("metric", metric, METRICS)
    if isinstance(targets, Answers):
        return Score(float(targets.judged(logits, metric).mean()))
    predicted = logits[:, 0] if metric == "spearman" else logits.argmax(axis=1)
    if _is_undefined(metric, predicted, targets):
        return Score(0.0, undefined=True)
    if metric == "spearman":
        from scipy import stats

        result: Any = stats.spearmanr(predicted, targets)
        return Score(float(result.statistic))
    from sklearn import metrics as sklearn_metrics

    if metric == "accuracy":
        return Score(float(sklearn_metrics.accuracy_score(targets, predicted)))
    if metric == "f1":
        # Of class 1 against all else: a text that another task answers is of no class here.
        return Score(float(sklearn_metrics.f1_score(targets == 1, predicted == 1)))
    return Score(float(sklearn_metrics.matthews_corrcoef(targets, predicted)))


def _is_undefined(metric: str, predicted: np.ndarray, targets: np.ndarray) -> bool:
    """Whether the metric's formula divides zero by zero."""
    if metric in ("spearman", "matthews_correlation"):
        return bool(np.ptp(predicted) == 0 or np.ptp(targets) == 0)
    return metric == "f1" and not ((predicted == 1).any() or (targets == 1).any())
