"""Metrics against the worked example of METRICS.md section 4, hand computation and identities."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stream import ledger, metrics
from stream.metrics import METRICS, average_score, backward_transfer, forgetting, learning_score

R = np.array(
    [
        [0.90, 0.30, 0.25, 0.20],
        [0.80, 0.85, 0.35, 0.30],
        [0.85, 0.75, 0.80, 0.40],
        [0.70, 0.80, 0.60, 0.90],
    ]
)
SCORES = arrays(np.float64, st.integers(2, 6).map(lambda n: (n, n)), elements=st.floats(-1, 1))


def test_worked_example() -> None:
    assert [average_score(R, k) for k in (1, 2, 3, 4)] == pytest.approx([0.9, 0.825, 0.8, 0.75])
    assert learning_score(R) == pytest.approx(0.8625)
    assert backward_transfer(R) == pytest.approx(-0.15)
    assert forgetting(R) == pytest.approx(0.15)


def test_best_row_need_not_be_the_diagonal() -> None:
    better = R.copy()
    better[2, 0] = 0.95
    assert forgetting(better) == pytest.approx(0.16667, abs=1e-5)
    assert backward_transfer(better) == pytest.approx(-0.15)


def test_forgetting_is_negative_when_old_tasks_improve() -> None:
    improved = R.copy()
    improved[3] = [0.95, 0.90, 0.85, 0.90]
    assert backward_transfer(improved) == pytest.approx(0.05)
    assert forgetting(improved) == pytest.approx(-0.05)


def test_two_tasks_average_over_exactly_one_old_task() -> None:
    two = np.array([[0.9, np.nan], [0.5, 0.7]])
    assert forgetting(two) == pytest.approx(0.4)
    assert backward_transfer(two) == pytest.approx(-0.4)


def test_one_task_and_no_task() -> None:
    one = np.array([[0.9]])
    assert (average_score(one), learning_score(one)) == (0.9, 0.9)
    assert backward_transfer(one) is None
    assert forgetting(one) is None
    assert all(function(np.full((3, 3), np.nan)) is None for function in METRICS.values())


def test_interrupted_run_uses_the_rows_done() -> None:
    partial = R.copy()
    partial[2:] = np.nan
    assert average_score(partial) == pytest.approx(0.825)
    assert forgetting(partial) == pytest.approx(0.1)


def test_a_missing_cell_is_an_error_not_a_zero() -> None:
    holes = R.copy()
    holes[3, 1] = np.nan
    for name in ("average_score", "bwt", "forgetting"):
        with pytest.raises(ValueError, match="not evaluated"):
            METRICS[name](holes)


@given(SCORES)
def test_identities(matrix: np.ndarray) -> None:
    before = matrix.copy()
    tasks = len(matrix)
    acc, la = average_score(matrix), learning_score(matrix)
    bwt, drop = backward_transfer(matrix), forgetting(matrix)
    assert acc is not None
    assert la is not None
    assert bwt is not None
    assert drop is not None
    assert acc - la == pytest.approx(bwt * (tasks - 1) / tasks, abs=1e-12)
    assert drop >= -bwt - 1e-12  # the maximum is at least the diagonal
    assert np.array_equal(matrix, before)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6))
def test_isolated_learners_forget_nothing(scores: list[float]) -> None:
    matrix = np.tril(np.tile(scores, (len(scores), 1)))
    matrix[np.triu_indices(len(scores), 1)] = np.nan
    assert backward_transfer(matrix) == 0.0
    assert forgetting(matrix) == 0.0


@pytest.mark.parametrize("module", [metrics, ledger])
def test_examples_in_docstrings(module) -> None:
    result = doctest.testmod(module, extraglobs={"np": np})
    assert result.attempted > 0
    assert result.failed == 0
