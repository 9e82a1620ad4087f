"""A task's own metrics, from predictions to scores in [-1, 1].

A metric takes the logits of a split, float32 [N, K], and its targets: class indices [N], scores [N]
for regression (K = 1), or the answers of spans. The formulas are those of scikit-learn and SciPy to
the last bit (`tests/evaluation/test_task_metrics.py`). Both are not imported for them, which takes
a second and more, and scikit-learn's checks take a hundred times as long as counting.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from stream.config.task import METRICS, TaskSpec, is_import_path
from stream.data.spans.answers import Answers
from stream.errors import UserError, choose, first_line, is_out_of_memory, one_line, require

SHOWN_LETTERS = 60  # of what a function of one's own gives

Metric = Callable[[np.ndarray, Any], float]
"""Logits and targets to a score; NaN where the formula divides zero by zero."""


class Score(NamedTuple):
    """A score, and whether constant predictions or targets left the metric undefined."""

    value: float
    undefined: bool = False


def score(metric: str, logits: np.ndarray, targets: np.ndarray | Answers, task: str = "") -> Score:
    """Score the logits of one task.

    Args:
        metric: one of `stream.config.task.METRICS`, or the import path of a function of logits and
            targets, such as ``my_package.my_module:my_metric``.
        logits: float32 [N, K].
        targets: class indices [N], scores [N], or the answers of spans.
        task: the task's name, for messages.

    Returns:
        The score. Constant predictions or targets make a correlation undefined: it is 0 then,
        and flagged (scipy gives NaN, scikit-learn an unflagged 0). The same for an F1 without
        any positive, and for a NaN of a function of one's own.

    Raises:
        UserError: a function that is not there, that raises something, or whose result is no
            number in [-1, 1]; names the metric and the task.
    """
    if is_import_path(metric):
        value = _called(metric, logits, targets, task)
    else:
        choose("metric", metric, METRICS)
        value = _METRICS[metric](logits, targets)
    return Score(0.0, undefined=True) if math.isnan(value) else Score(value)


def gives_one_answer(logits: np.ndarray, targets: np.ndarray | Answers) -> bool:
    """Whether all texts get one answer although their targets differ; never of spans.

    Args:
        logits: float32 [N, K].
        targets: as in `score`.
    """
    if isinstance(targets, Answers) or np.ptp(targets) == 0:
        return False
    answers = logits[:, 0] if logits.shape[1] == 1 else _classes(logits)
    return bool(np.ptp(answers) == 0)


def more_scores(
    spec: TaskSpec, logits: np.ndarray, targets: Any, task: str
) -> dict[str, float | None] | None:
    """Return the scores by ``spec.more_metrics``; None where one is undefined, or there is none.

    Args:
        spec: of the task.
        logits: as in `score`.
        targets: as in `score`.
        task: its name, for messages.
    """
    found = {name: score(name, logits, targets, task) for name in spec.more_metrics}
    return {name: None if s.undefined else s.value for name, s in found.items()} or None


def check_metrics(spec: TaskSpec) -> None:
    """Raise UserError unless the functions that a task names as its metrics can be imported."""
    for name in filter(is_import_path, spec.all_metrics):
        _imported(name)


def _classes(logits: np.ndarray) -> np.ndarray:
    """Return the predicted classes, int64 [N]."""
    return logits.argmax(axis=1)


def _accuracy(logits: np.ndarray, targets: np.ndarray) -> float:
    return float((_classes(logits) == targets).mean())


def _f1(logits: np.ndarray, targets: np.ndarray) -> float:
    """Of class 1, as GLUE."""
    # Of class 1 against all else: a text that another task answers is of no class here.
    return _f1_of(1, _classes(logits), targets)


def _macro_f1(logits: np.ndarray, targets: np.ndarray) -> float:
    """The mean F1 of the classes that occur among the targets.

    Another task's answer is predicted as a class more (`stream.evaluation.foreign`), which has no
    F1 of its own: it is a miss of the right class.
    """
    predicted = _classes(logits)
    return float(np.mean([_f1_of(label, predicted, targets) for label in np.unique(targets)]))


def _f1_of(label: int, predicted: np.ndarray, targets: np.ndarray) -> float:
    """Return twice the hits by the sum of what is predicted and what is right; NaN for 0 / 0."""
    is_predicted, is_right = predicted == label, targets == label
    total = int(is_predicted.sum() + is_right.sum())
    return 2.0 * int((is_predicted & is_right).sum()) / total if total else math.nan


def _matthews(logits: np.ndarray, targets: np.ndarray) -> float:
    """The correlation of several classes (Gorodkin 2004, equation 8)."""
    predicted = _classes(logits)
    if _is_constant(predicted, targets):
        return math.nan
    size = 1 + int(max(predicted.max(), targets.max()))
    found = np.bincount(predicted, minlength=size).astype(np.float64)
    right = np.bincount(targets, minlength=size).astype(np.float64)
    number, hits = float(len(targets)), float((predicted == targets).sum())
    spreads = (number**2 - found @ found) * (number**2 - right @ right)
    return float((hits * number - right @ found) / np.sqrt(spreads))


def _spearman(logits: np.ndarray, targets: np.ndarray) -> float:
    """Pearson's correlation of the ranks, where equal values share the mean of their ranks."""
    predicted = logits[:, 0]
    if _is_constant(predicted, targets):
        return math.nan
    ranks = [_ranks(values.astype(np.float64)) for values in (predicted, targets)]
    return float(np.corrcoef(ranks)[1, 0])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value from 1, float64 [N]."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return (last - (sizes - 1) / 2)[group]


def _pearson(logits: np.ndarray, targets: np.ndarray) -> float:
    """In float64, by SciPy."""
    from scipy import stats

    predicted = logits[:, 0]
    if _is_constant(predicted, targets):
        return math.nan
    correlated: Any = stats.pearsonr(predicted.astype(np.float64), targets.astype(np.float64))
    return float(correlated.statistic)


def _is_constant(predicted: np.ndarray, targets: np.ndarray) -> bool:
    """Whether a correlation would divide zero by zero."""
    return bool(np.ptp(predicted) == 0 or np.ptp(targets) == 0)


def _judged(name: str, logits: np.ndarray, targets: Answers) -> float:
    """Return the mean over rows of a metric of texts."""
    return float(targets.judged(logits, name).mean())


_METRICS: Mapping[str, Metric] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "macro_f1": _macro_f1,
    "matthews_correlation": _matthews,
    "spearman": _spearman,
    "pearson": _pearson,
    "answer_f1": partial(_judged, "answer_f1"),
    "exact_match": partial(_judged, "exact_match"),
}
assert tuple(_METRICS) == METRICS


@cache
def _imported(path: str) -> Metric:
    """Return the function at ``module:name``.

    Raises:
        UserError: it is not there, or no function.
    """
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # whatever the user's module does while it is imported
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"metric {path!r} cannot be imported: {reason}") from error
    require(callable(found), f"metric {path!r} is a {type(found).__name__}, no function")
    return found


def _called(metric: str, logits: np.ndarray, targets: np.ndarray | Answers, task: str) -> float:
    """Return the result of a function of the user's own; it gets copies, which it may change.

    Raises:
        UserError: it raised something, or its result is no number in [-1, 1] and not NaN.
    """
    function, where = _imported(metric), f"task {task!r}: metric {metric!r}"
    own = targets if isinstance(targets, Answers) else targets.copy()
    try:
        value: Any = function(logits.copy(), own)
    except (Exception, SystemExit) as error:
        if is_out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"{where} raised {reason}") from error
    kind, shown = type(value), " ".join(repr(value).split())
    is_number = isinstance(value, int | float | np.integer | np.floating) and kind is not bool
    require(
        is_number and bool(math.isnan(value) or -1 <= value <= 1),
        f"{where} gave {shown[:SHOWN_LETTERS]}{'...' * (len(shown) > SHOWN_LETTERS)} "
        f"({kind.__name__}); it must be a number from -1 to 1, or NaN where it is undefined",
    )
    return float(value)
