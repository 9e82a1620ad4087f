"""Metrics against other runs on the same stream: joint, independent and untrained learners.

Reference scores are float [T], one per task, NaN where the reference was not evaluated.
"""

from collections.abc import Sequence

import numpy as np

from stream.metrics.cells import Direction, reference_scores, require_evaluated, rows_done, sign
from stream.metrics.scores import average_score

Scores = Sequence[float] | np.ndarray


def transfer_from_independent(
    matrix: np.ndarray, independent: Scores, *, direction: Direction = "higher"
) -> np.ndarray:
    """Return R[j, j] - R_ind[j] of every task that was learned, float64 [k].

    ``independent`` has the scores of models that each learned only one task. With equal seeds the
    first value is 0, because nothing comes before the first task.

    >>> transfer_from_independent(np.array([[0.9, np.nan], [0.8, 0.6]]), [0.9, 0.5]).round(12)
    array([0. , 0.1])
    """
    alone = reference_scores(independent, matrix, "fwt_independent")
    learned = require_evaluated(np.diagonal(matrix)[: rows_done(matrix)], "fwt_independent")
    return sign(direction) * (learned - alone)


def forward_transfer_independent(
    matrix: np.ndarray, independent: Scores, *, direction: Direction = "higher"
) -> float | None:
    """FWT_ind = (1/(k-1)) sum_{2<=j<=k} (R[j, j] - R_ind[j]); None for fewer than two tasks.

    The forward transfer of clarena 1.1.0 (``CLFullEvaluation.evaluate_and_save_fwt_to_csv``). It
    measures whether earlier tasks helped to learn a task, and needs no scores of unseen tasks.

    >>> matrix = np.array([[0.9, np.nan], [0.8, 0.6]])
    >>> round(forward_transfer_independent(matrix, [0.9, 0.5]), 12)
    0.1
    """
    gains = transfer_from_independent(matrix, independent, direction=direction)
    return float(gains[1:].mean()) if len(gains) > 1 else None


def intransigence(
    matrix: np.ndarray, prefix_joint: np.ndarray, *, direction: Direction = "higher"
) -> float | None:
    """I = (1/k) sum_i (a*_i - R[i, i]), a*_i from a model trained jointly on tasks 1..i.

    Chaudhry et al. 2018 (RWalk), eq. 4, averaged over tasks. ``prefix_joint`` is the matrix of a
    run that is retrained on tasks 1..i at each i, and a* is its diagonal. Lower is better; a
    negative value means that tasks were learned better than jointly. None for no task.

    >>> matrix, joint = np.array([[0.9, np.nan], [0.8, 0.6]]), np.array([[0.9, np.nan], [0.9, 0.8]])
    >>> round(intransigence(matrix, joint), 12)
    0.1
    """
    return _mean_gap(matrix, np.diagonal(prefix_joint), "intransigence", direction)


def intransigence_joint_final(
    matrix: np.ndarray, joint: Scores, *, direction: Direction = "higher"
) -> float | None:
    """Intransigence with one joint run on all T tasks for every a*_i (report as ``joint_final``).

    This is not RWalk's definition: here a*_i has also seen the tasks after i. None for no task.

    >>> round(intransigence_joint_final(np.array([[0.9, np.nan], [0.8, 0.6]]), [0.9, 0.8]), 12)
    0.1
    """
    return _mean_gap(matrix, joint, "intransigence_joint_final", direction)


def gap_to_reference(
    matrix: np.ndarray, scores: Scores, *, direction: Direction = "higher"
) -> float | None:
    """(1/k) sum_{j<=k} reference_j - ACC_k: how far the average score is below a reference.

    The gap to ``joint`` or ``independent`` runs: common practice without a defining paper. Positive
    means below the reference; None for no task.

    >>> round(gap_to_reference(np.array([[0.9, np.nan], [0.8, 0.6]]), [0.9, 0.8]), 12)
    0.15
    """
    average = average_score(matrix)
    if average is None:
        return None
    return float(sign(direction) * (reference_scores(scores, matrix, "gap").mean() - average))


def ratio_to_reference(matrix: np.ndarray, scores: Scores) -> float | None:
    """ACC_k / ((1/k) sum_{j<=k} reference_j); None for no task, or a mean reference of 0 or less.

    >>> round(ratio_to_reference(np.array([[0.9, np.nan], [0.8, 0.6]]), [0.7, 0.7]), 12)
    1.0
    """
    average = average_score(matrix)
    if average is None:
        return None
    mean = float(reference_scores(scores, matrix, "ratio").mean())
    return average / mean if mean > 0 else None


def forgetting_rate(
    matrix: np.ndarray, joint: Scores, untrained: Scores
) -> tuple[float | None, int]:
    """Return (FR, tasks counted): FR = mean_j (R[k, j] - u_j) / (joint_j - u_j) - 1.

    clarena 1.1.0 (``CLFullEvaluation.evaluate_and_save_fr_to_csv``): 0 is as good as
    joint training, -1 as bad as an untrained learner (u). A task whose joint score is not above the
    untrained score has no rate and is not counted; (None, 0) if no task is counted.

    >>> forgetting_rate(np.array([[1.0, np.nan], [0.75, 0.6]]), [1.0, 0.5], [0.5, 0.5])
    (-0.5, 1)
    """
    k = rows_done(matrix)
    start = reference_scores(untrained, matrix, "forgetting_rate")
    room = reference_scores(joint, matrix, "forgetting_rate") - start
    counted = room > 0
    if k == 0 or not counted.any():
        return None, 0
    gained = require_evaluated(matrix[k - 1, :k], "forgetting_rate") - start
    return float((gained[counted] / room[counted]).mean()) - 1, int(counted.sum())


def normalized_score(matrix: np.ndarray, floor: Scores, ceiling: Scores) -> float | None:
    """sum_j (R[k, j] - floor_j) / sum_j (ceiling_j - floor_j), over the tasks that have a floor.

    With the majority answer as floor and `independent` runs as ceiling, 0 is as good as not reading
    the texts and 1 as good as a model of its own for every task, so streams of easy and of hard
    tasks can be held side by side. The sums are divided, not each task's difference: where a task's
    ceiling is hardly above its floor, the quotient of that task would be noise that outweighs all
    others. Common practice without a defining paper. None for no task, or a ceiling that is not
    above the floor.

    >>> normalized_score(np.array([[1.0, np.nan], [0.75, 0.5]]), [0.5, 0.25], [1.0, 0.5])
    0.6666666666666666

    Args:
        matrix: R, float64 [T, T].
        floor: scores of the majority answer, [T]; NaN where a task has none (spans).
        ceiling: scores of `independent`, [T].
    """
    k = rows_done(matrix)
    low = np.asarray(floor, dtype=np.float64)
    if low.shape != matrix.shape[1:]:
        raise ValueError(f"normalized_score: {matrix.shape[1]} tasks need as many floors")
    room = reference_scores(ceiling, matrix, "normalized_score") - low[:k]
    counted = ~np.isnan(room)
    total = float(room[counted].sum())
    if k == 0 or total <= 0:
        return None
    above = require_evaluated(matrix[k - 1, :k], "normalized_score") - low[:k]
    return float(above[counted].sum()) / total


def _mean_gap(matrix: np.ndarray, scores: Scores, what: str, direction: Direction) -> float | None:
    """Return the mean difference between ``scores`` and the diagonal."""
    k = rows_done(matrix)
    if k == 0:
        return None
    gaps = reference_scores(scores, matrix, what) - require_evaluated(np.diagonal(matrix)[:k], what)
    return float(sign(direction) * gaps.mean())
