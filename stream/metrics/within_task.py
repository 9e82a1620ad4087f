"""Metrics of evaluations within tasks, which one row of the matrix per task cannot show.

De Lange et al. 2023 (arXiv 2205.13452) define them with an evaluation after every update. Here the
evaluations are those of the probe: every N steps, on some examples of each task. Fewer evaluations
miss deep minima, so compare only runs with the same N and the same number of examples.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stream.metrics.cells import Direction, NotEvaluatedError, rows_done, sign


@dataclass(frozen=True)
class ProbePoint:
    """One evaluation while a task is learned.

    Attributes:
        task: the stream position of the task that is being learned, from 0.
        step: the training steps of this task so far; 0 is before the first one.
        scores: the scores of tasks 0..task; the last is that of the task being learned.
    """

    task: int
    step: int
    scores: Sequence[float]

    def __post_init__(self) -> None:
        """Check the values. Raises ValueError unless there are scores of tasks 0..task."""
        if len(self.scores) != self.task + 1:
            raise ValueError(
                f"a probe point of task {self.task} needs {self.task + 1} scores, "
                f"not {len(self.scores)}"
            )


def probe_points(points: Iterable[Mapping[str, Any]]) -> list[ProbePoint]:
    """Return ``probe.points`` of results.json as points, in order of time."""
    return [ProbePoint(point["task"], point["step"], point["scores"]) for point in points]


def matrix_points(matrix: np.ndarray) -> list[ProbePoint]:
    """Return the rows of the matrix as points: one evaluation per task.

    >>> [point.scores for point in matrix_points(np.array([[0.9, np.nan], [0.8, 0.6]]))]
    [[0.9], [0.8, 0.6]]
    """
    return [ProbePoint(i, 1, matrix[i, : i + 1].tolist()) for i in range(rows_done(matrix))]


def score_curve(points: Sequence[ProbePoint], j: int, first: int, k: int) -> np.ndarray:
    """Return the scores of task ``j`` while tasks ``first``..k-1 were learned, in order of time.

    Points at step 0 are left out, because no update comes between them and the evaluation before.
    """
    scores = [p.scores[j] for p in points if first <= p.task < k and p.step > 0]
    if not scores or np.isnan(scores).any():
        raise NotEvaluatedError(
            f"task {j} was not probed while tasks {first}..{k - 1} were learned"
        )
    return np.array(scores, dtype=np.float64)


def minimum_score(
    points: Sequence[ProbePoint], k: int | None = None, *, direction: Direction = "higher"
) -> float | None:
    """min-ACC_k = (1/(k-1)) sum_{j<k} min_n A(E_j, f_n), n over evaluations after task j's end.

    De Lange et al. 2023 (arXiv 2205.13452), "average minimum accuracy". The worst score of each
    earlier task at any time since its end (the highest one if lower scores are better). None for
    fewer than two tasks. ``k`` is the number of tasks learned, by default the number probed.

    >>> minimum_score([ProbePoint(0, 9, [0.9]), ProbePoint(1, 9, [0.5, 0.3])])
    0.5
    """
    k = _tasks(points) if k is None else k
    if k < 2:
        return None
    better = sign(direction)
    worst = [(better * score_curve(points, j, j + 1, k)).min() for j in range(k - 1)]
    return float(better * np.mean(worst))


def worst_case_score(
    points: Sequence[ProbePoint], k: int | None = None, *, direction: Direction = "higher"
) -> float | None:
    """WC-ACC_k = (1/k) A(E_k, f_t) + (1 - 1/k) min-ACC_k; A(E_1, f_t) for one task.

    De Lange et al. 2023 (arXiv 2205.13452), "worst-case accuracy": the accuracy that can be
    relied on at any time. f_t is the model of the last evaluation. None for no task.

    >>> worst_case_score([ProbePoint(0, 9, [0.9]), ProbePoint(1, 9, [0.5, 0.3])])
    0.4
    """
    k = _tasks(points) if k is None else k
    if k == 0:
        return None
    current = float(score_curve(points, k - 1, k - 1, k)[-1])
    minimum = minimum_score(points, k, direction=direction)
    return current if minimum is None else current / k + (1 - 1 / k) * minimum


def windowed_forgetting(
    points: Sequence[ProbePoint],
    window: int,
    k: int | None = None,
    *,
    direction: Direction = "higher",
) -> float | None:
    """WF^w = mean over tasks of the greatest worsening within w consecutive evaluations.

    max_{m<n} (A_m - A_n) in each window, the maximum over all windows since the task's start (De
    Lange et al. 2023, arXiv 2205.13452). A window of one evaluation gives 0, so WF^w >= 0. None
    for no task.

    >>> windowed_forgetting([ProbePoint(0, n, [s]) for n, s in ((1, 0.5), (2, 0.25), (3, 1))], 2)
    0.25
    """
    return _greatest_change(points, window, k, -sign(direction))


def windowed_plasticity(
    points: Sequence[ProbePoint],
    window: int,
    k: int | None = None,
    *,
    direction: Direction = "higher",
) -> float | None:
    """WP^w = mean over tasks of the greatest improvement within w consecutive evaluations.

    max_{m<n} (A_n - A_m), otherwise as WF^w (De Lange et al. 2023, arXiv 2205.13452).

    >>> windowed_plasticity([ProbePoint(0, n, [s]) for n, s in ((1, 0.5), (2, 0.25), (3, 1))], 2)
    0.75
    """
    return _greatest_change(points, window, k, sign(direction))


def learning_curve_area(
    points: Sequence[ProbePoint], beta: int, k: int | None = None
) -> float | None:
    """LCA_beta = (1/(beta+1)) sum_{b=0..beta} Z_b, Z_b the mean over tasks of A after b steps.

    Chaudhry et al. 2019 (A-GEM, arXiv 1812.00420): how fast a task is learned in its first
    ``beta`` mini-batches. Needs a point of every task at each step 0..beta. None for no task.

    >>> learning_curve_area([ProbePoint(0, 0, [0.25]), ProbePoint(0, 1, [0.75])], beta=1)
    0.5
    """
    k = _tasks(points) if k is None else k
    if k == 0:
        return None
    own = {(point.task, point.step): point.scores[-1] for point in points}
    missing = [(j, b) for j in range(k) for b in range(beta + 1) if (j, b) not in own]
    if missing:
        task, step = missing[0]
        raise NotEvaluatedError(f"lca needs task {task} to be probed at step {step}")
    return float(np.mean([own[j, b] for j in range(k) for b in range(beta + 1)]))


def _tasks(points: Sequence[ProbePoint]) -> int:
    """Return the number of tasks that were probed while they were learned."""
    return max((point.task + 1 for point in points), default=0)


def _greatest_change(
    points: Sequence[ProbePoint], window: int, k: int | None, better: float
) -> float | None:
    """Return the mean over tasks of the greatest rise of ``better`` times the score.

    ``better`` is 1 or -1.
    """
    if window < 2:
        raise ValueError(f"a window of {window} holds no change; the least is 2")
    k = _tasks(points) if k is None else k
    if k == 0:
        return None
    return float(
        np.mean([_greatest_rise(better * score_curve(points, j, j, k), window) for j in range(k)])
    )


def _greatest_rise(scores: np.ndarray, window: int) -> float:
    """Return max(0, scores[n] - scores[m]) over all m < n fewer than ``window`` apart."""
    lags = range(1, min(window, len(scores)))
    return max([0.0, *((scores[lag:] - scores[:-lag]).max() for lag in lags)])
