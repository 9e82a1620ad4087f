"""Metrics of the probe, against the authors' code run on the same curves, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.metrics import (
    NotEvaluatedError,
    ProbePoint,
    learning_curve_area,
    matrix_points,
    minimum_score,
    probe_points,
    windowed_forgetting,
    windowed_plasticity,
    worst_case_score,
)

FIRST = [0.3, 0.6, 0.8, 0.9]
SECOND = [[0.7, 0.2], [0.5, 0.5], [0.8, 0.6], [0.75, 0.7]]
TWO_TASKS = [ProbePoint(0, n + 1, [score]) for n, score in enumerate(FIRST)] + [
    ProbePoint(1, n + 1, scores) for n, scores in enumerate(SECOND)
]
CURVES = st.lists(st.floats(-1, 1), min_size=1, max_size=12)


def one_task(curve: list[float]) -> list[ProbePoint]:
    return [ProbePoint(0, n + 1, [score]) for n, score in enumerate(curve)]


def test_two_tasks_as_the_authors_code() -> None:
    """Numbers of the plugins of Mattdl/ContinualEvaluation (bae2a58), run on these points."""
    assert minimum_score(TWO_TASKS) == 0.5
    assert worst_case_score(TWO_TASKS) == pytest.approx(0.6)
    windows = (2, 3, 10)
    drops = [windowed_forgetting(TWO_TASKS, window) for window in windows]
    rises = [windowed_plasticity(TWO_TASKS, window) for window in windows]
    assert drops == pytest.approx([0.1, 0.2, 0.2])
    assert rises == pytest.approx([0.3, 0.45, 0.55])


def test_a_long_curve_as_the_authors_code() -> None:
    curve = (np.random.default_rng(1).integers(0, 1001, 30) / 1000).tolist()
    points = one_task(curve)
    assert curve[:3] == [0.473, 0.512, 0.755]
    for window, drop, rise in ((2, 0.917, 0.839), (3, 0.917, 0.839), (5, 0.917, 0.915)):
        assert windowed_forgetting(points, window) == pytest.approx(drop)
        assert windowed_plasticity(points, window) == pytest.approx(rise)


def test_plasticity_starts_from_the_lowest_point() -> None:
    """The authors' code gives 0.4 here: it skips starts below an earlier maximum."""
    assert windowed_plasticity(one_task([0.5, 0.3, 0.9]), 3) == pytest.approx(0.6)


def test_three_tasks_by_hand() -> None:
    points = probe_points(
        [
            {"task": 0, "step": 5, "scores": [0.9]},
            {"task": 1, "step": 5, "scores": [0.4, 0.5]},
            {"task": 1, "step": 10, "scores": [0.7, 0.8]},
            {"task": 2, "step": 5, "scores": [0.6, 0.3, 0.2]},
            {"task": 2, "step": 10, "scores": [0.8, 0.9, 0.6]},
        ]
    )
    assert minimum_score(points) == pytest.approx((0.4 + 0.3) / 2)
    assert worst_case_score(points) == pytest.approx(0.6 / 3 + 2 / 3 * 0.35)
    assert minimum_score(points, k=2) == 0.4  # the run after two tasks
    assert worst_case_score(points, k=2) == pytest.approx((0.8 + 0.4) / 2)
    assert worst_case_score(points, k=1) == 0.9
    assert windowed_forgetting(points, 2) == pytest.approx((0.5 + 0.5 + 0) / 3)


def test_lower_is_better() -> None:
    """The worst loss is the highest; a loss that rises is forgotten."""
    points = [ProbePoint(0, 1, [0.1]), ProbePoint(1, 1, [0.9, 0.8]), ProbePoint(1, 2, [0.3, 0.2])]
    assert minimum_score(points, direction="lower") == pytest.approx(0.9)
    assert worst_case_score(points, direction="lower") == pytest.approx((0.2 + 0.9) / 2)
    assert windowed_forgetting(points, 2, direction="lower") == pytest.approx((0.8 + 0) / 2)
    assert windowed_plasticity(points, 2, direction="lower") == pytest.approx((0.6 + 0.6) / 2)


def test_a_coarser_period_sees_less() -> None:
    """The dip to 0.5 lies between the evaluations of every second step."""
    coarse = [point for point in TWO_TASKS if point.step % 2 == 1]
    assert minimum_score(coarse) == 0.7


def test_learning_curve_area_by_hand() -> None:
    points = [
        *(ProbePoint(0, b, [score]) for b, score in enumerate([0.2, 0.4, 0.6, 0.9])),
        *(ProbePoint(1, b, [0.0, score]) for b, score in enumerate([0.3, 0.5, 0.9])),
    ]
    assert learning_curve_area(points, beta=0) == pytest.approx(0.25)  # zero-shot
    assert learning_curve_area(points, beta=2) == pytest.approx((0.25 + 0.45 + 0.75) / 3)
    with pytest.raises(NotEvaluatedError, match="task 1 to be probed at step 3"):
        learning_curve_area(points, beta=3)


def test_no_task_and_one_task() -> None:
    assert minimum_score([]) is worst_case_score([]) is learning_curve_area([], 10) is None
    assert windowed_forgetting([], 10) is windowed_plasticity([], 10) is None
    one = one_task([0.4, 0.7])
    assert minimum_score(one) is None
    assert worst_case_score(one) == 0.7
    assert windowed_forgetting(one_task([0.4]), 10) == 0.0  # one evaluation shows no change


def test_what_was_not_probed_is_an_error() -> None:
    with pytest.raises(
        NotEvaluatedError, match=r"task 1 was not probed while tasks 2\.\.2 were learned"
    ):
        minimum_score(TWO_TASKS, k=3)
    with pytest.raises(NotEvaluatedError, match="task 2 was not probed"):
        worst_case_score(TWO_TASKS, k=3)
    with pytest.raises(ValueError, match="a probe point of task 1 needs 2 scores, not 1"):
        ProbePoint(1, 1, [0.5])
    with pytest.raises(ValueError, match="a window of 1 holds no change"):
        windowed_forgetting(TWO_TASKS, 1)


def test_points_before_the_first_step_are_not_evaluations_after_an_update() -> None:
    """A task that is not begun yet cannot have changed the others; only LCA reads step 0."""
    points = [*TWO_TASKS[:4], ProbePoint(1, 0, [0.1, 0.0]), *TWO_TASKS[4:]]
    for function in (minimum_score, worst_case_score):
        assert function(points) == function(TWO_TASKS)
    assert windowed_forgetting(points, 3) == windowed_forgetting(TWO_TASKS, 3)
    assert learning_curve_area([ProbePoint(0, 0, [0.2])], 0) == 0.2


@given(CURVES, st.integers(2, 6))
def test_windows_spelled_out(curve: list[float], window: int) -> None:
    pairs = [(m, n) for n in range(len(curve)) for m in range(n) if n - m < window]
    drop = max([0.0, *(curve[m] - curve[n] for m, n in pairs)])
    rise = max([0.0, *(curve[n] - curve[m] for m, n in pairs)])
    points = one_task(curve)
    assert windowed_forgetting(points, window) == pytest.approx(drop)
    assert windowed_plasticity(points, window) == pytest.approx(rise)
    assert windowed_forgetting(one_task([-s for s in curve]), window) == pytest.approx(rise)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6))
def test_isolated_learners_have_no_gap(scores: list[float]) -> None:
    matrix = np.tril(np.tile(scores, (len(scores), 1)))
    points = matrix_points(matrix)
    assert minimum_score(points) == pytest.approx(np.mean(scores[:-1]), abs=1e-12)
    assert worst_case_score(points) == pytest.approx(np.mean(scores), abs=1e-12)
    assert windowed_forgetting(points, 10) == 0.0


def test_rows_of_the_matrix_are_points_of_one_a_task() -> None:
    matrix = np.array([[0.9, np.nan, np.nan], [0.5, 0.8, np.nan], [0.7, 0.6, 0.9]])
    assert minimum_score(matrix_points(matrix)) == pytest.approx((0.5 + 0.6) / 2)
