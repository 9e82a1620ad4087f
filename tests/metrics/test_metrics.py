"""Metrics of the matrix: a worked example, hand computation, identities, edges."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream import metrics
from stream.metrics import (
    METRICS,
    NotEvaluatedError,
    average_incremental_score,
    average_score,
    backward_transfer,
    backward_transfer_diaz,
    backward_transfer_improvement,
    forgetting,
    forgetting_by_task,
    forgetting_first,
    forward_transfer,
    forward_transfer_diaz,
    learning_score,
    lower_triangle_score,
    positive_backward_transfer,
    remembering,
    retained_score,
)
from tests.metrics.worked_example import ALL_IMPROVE, BEST_ROW_NOT_DIAGONAL, SCORES, B, R

NAN = np.nan


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (
            R,
            {
                "average_score": 0.75,
                "retained_score": 0.75,
                "average_incremental_score": 0.81875,
                "a_diaz": 0.795,
                "learning_score": 0.8625,
                "bwt": -0.150,
                "bti": -0.1125,
                "bwt_diaz": -0.11667,
                "rem": 0.88333,
                "bwt_plus": 0.0,
                "fwt_diaz": 0.300,
                "forgetting": 0.150,
                "forgetting_first": 0.150,
            },
        ),
        (
            BEST_ROW_NOT_DIAGONAL,
            {
                "average_incremental_score": 0.82708,
                "a_diaz": 0.805,
                "bwt": -0.150,
                "bwt_diaz": -0.100,
                "forgetting": 0.16667,
            },
        ),
        (
            ALL_IMPROVE,
            {
                "average_score": 0.900,
                "bwt": 0.050,
                "bwt_diaz": -0.01667,
                "rem": 0.98333,
                "forgetting": -0.050,
            },
        ),
    ],
)
def test_worked_examples(matrix: np.ndarray, expected: dict[str, float]) -> None:
    found = {name: METRICS[name](matrix) for name in expected}
    assert found == pytest.approx(expected, abs=5e-6)


def test_worked_example_row_by_row() -> None:
    assert [average_score(R, k) for k in (1, 2, 3, 4)] == pytest.approx([0.9, 0.825, 0.8, 0.75])
    assert [forgetting(R, k) for k in (2, 3, 4)] == pytest.approx([0.1, 0.075, 0.15])
    assert forgetting(R, 1) is None
    assert forgetting_by_task(R).tolist() == pytest.approx([0.20, 0.05, 0.20])
    assert forgetting(BEST_ROW_NOT_DIAGONAL, 3) == pytest.approx(0.025)
    assert forgetting_by_task(BEST_ROW_NOT_DIAGONAL).tolist() == pytest.approx([0.25, 0.05, 0.20])
    assert forward_transfer(R, B) == pytest.approx(0.19333, abs=5e-6)


def test_positive_backward_transfer_is_clipped_at_zero() -> None:
    gains = np.array([[0.5, NAN], [0.8, 0.6]])
    assert positive_backward_transfer(gains) == pytest.approx(0.3)
    assert remembering(gains) == 1.0


def test_two_tasks_average_over_exactly_one_old_task() -> None:
    two = np.array([[0.9, 0.3], [0.5, 0.7]])
    assert forgetting(two) == pytest.approx(0.4)
    assert forgetting_first(two) == pytest.approx(0.4)
    assert backward_transfer(two) == pytest.approx(-0.4)
    assert backward_transfer_diaz(two) == pytest.approx(-0.4)
    assert forward_transfer(two, [0.9, 0.1]) == pytest.approx(0.2)
    assert forward_transfer_diaz(two) == pytest.approx(0.3)


def test_one_task_and_no_task() -> None:
    one = np.array([[0.9]])
    assert average_score(one) == learning_score(one) == retained_score(one) == 0.9
    assert average_incremental_score(one) == lower_triangle_score(one) == 0.9
    assert backward_transfer_improvement(one) == 0.0
    undefined = ("bwt", "bwt_diaz", "rem", "bwt_plus", "fwt_diaz", "forgetting", "forgetting_first")
    assert [METRICS[name](one) for name in undefined] == [None] * len(undefined)
    assert forward_transfer(one, [0.1]) is None
    assert all(function(np.full((3, 3), NAN)) is None for function in METRICS.values())


def test_interrupted_run_uses_the_rows_done() -> None:
    """All metrics of two rows of four are those of the two tasks alone."""
    partial = R.copy()
    partial[2:] = NAN
    for function in METRICS.values():
        assert function(partial) == function(R[:2, :2])
    assert average_score(partial) == pytest.approx(0.825)
    assert forgetting(partial) == pytest.approx(0.1)
    assert forward_transfer(partial, B) == pytest.approx(0.1)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_a_missing_cell_is_an_error_not_a_zero(name: str) -> None:
    upper = name == "fwt_diaz"
    holes = R.copy()
    holes[(0, 2) if upper else (3, 1)] = NAN
    if name == "learning_score":  # reads the diagonal only, which says how many rows are done
        assert METRICS[name](holes) == METRICS[name](R)
        return
    with pytest.raises(NotEvaluatedError, match="not evaluated"):
        METRICS[name](holes)


def test_forward_transfer_needs_unseen_tasks_and_a_baseline_of_them() -> None:
    with pytest.raises(NotEvaluatedError, match="fwt"):
        forward_transfer(np.where(np.tri(4, dtype=bool), R, NAN), B)
    with pytest.raises(NotEvaluatedError, match="fwt"):
        forward_transfer(R, [0.1, NAN, 0.1, 0.1])
    with pytest.raises(ValueError, match="4 tasks"):
        forward_transfer(R, [0.1, 0.1])


def test_lower_is_better() -> None:
    """A loss that rises is forgotten; one that fell in between was best there."""
    loss = np.array([[0.5, NAN, NAN], [0.3, 0.4, NAN], [0.6, 0.7, 0.2]])
    assert forgetting_by_task(loss, direction="lower").tolist() == pytest.approx([0.3, 0.3])
    assert forgetting(loss, direction="lower") == pytest.approx(0.3)
    assert backward_transfer(loss, direction="lower") == pytest.approx(-0.2)
    assert forgetting(loss) != forgetting(loss, direction="lower")
    with pytest.raises(ValueError, match="'down' is not one of higher, lower"):
        forgetting(loss, direction="down")  # pyright: ignore[reportArgumentType]


def test_a_repeated_task_has_a_column_for_each_visit() -> None:
    """Positions 0 and 2 are one task: its second visit wins back what the first column lost."""
    matrix = np.array([[0.9, NAN, NAN], [0.5, 0.8, NAN], [0.9, 0.6, 0.9]])
    assert forgetting_by_task(matrix, 2).tolist() == pytest.approx([0.4])
    assert forgetting_by_task(matrix).tolist() == pytest.approx([0.0, 0.2])
    assert average_score(matrix) == pytest.approx(0.8)


@given(SCORES)
def test_identities(matrix: np.ndarray) -> None:
    before = matrix.copy()
    k = len(matrix)
    value = {name: function(matrix) for name, function in METRICS.items()}
    gain = value["bwt"] * (k - 1) / k
    assert value["average_score"] - value["learning_score"] == pytest.approx(gain, abs=1e-12)
    assert value["bti"] == pytest.approx(gain, abs=1e-12)
    assert value["forgetting_first"] == -value["bwt"]
    assert (
        value["forgetting"] >= value["forgetting_first"] - 1e-12
    )  # the best is at least the first
    assert value["rem"] - value["bwt_plus"] == pytest.approx(1 - abs(value["bwt_diaz"]))
    assert np.array_equal(matrix, before)


@given(SCORES)
def test_formulas_spelled_out(matrix: np.ndarray) -> None:
    """Sums as the papers print them, 1-based, against the functions."""
    k = len(matrix)

    def r(i: int, j: int) -> float:
        return float(matrix[i - 1, j - 1])

    seen = [(i, j) for i in range(1, k + 1) for j in range(1, i + 1)]
    old = [(i, j) for i, j in seen if j < i]
    pairs = k * (k - 1) / 2
    rows = [sum(r(i, j) for j in range(1, i + 1)) / i for i in range(1, k + 1)]
    best = [max(r(row, j) for row in range(j, k)) for j in range(1, k)]
    start = matrix[0][::-1]  # any baseline
    expected = {
        average_incremental_score: sum(rows) / k,
        lower_triangle_score: sum(r(i, j) for i, j in seen) / (k * (k + 1) / 2),
        backward_transfer_diaz: sum(r(i, j) - r(j, j) for i, j in old) / pairs,
        forward_transfer_diaz: sum(r(j, i) for i, j in old) / pairs,
        forgetting: sum(b - r(k, j) for j, b in enumerate(best, 1)) / (k - 1),
    }
    for function, value in expected.items():
        assert function(matrix) == pytest.approx(value, abs=1e-12)
    transfer = sum(r(j - 1, j) - start[j - 1] for j in range(2, k + 1)) / (k - 1)
    assert forward_transfer(matrix, start) == pytest.approx(transfer, abs=1e-12)


@given(SCORES)
def test_an_error_is_one_minus_the_score(matrix: np.ndarray) -> None:
    error = 1 - matrix
    for function in (
        backward_transfer,
        backward_transfer_diaz,
        backward_transfer_improvement,
        remembering,
        positive_backward_transfer,
        forgetting,
        forgetting_first,
    ):
        assert function(error, direction="lower") == pytest.approx(function(matrix), abs=1e-12)
    start = matrix[-1]
    assert forward_transfer(error, 1 - start, direction="lower") == pytest.approx(
        forward_transfer(matrix, start), abs=1e-12
    )


@given(SCORES)
def test_correlations_keep_their_bounds(matrix: np.ndarray) -> None:
    """Scores in [-1, 1]: means lie in [-1, 1], differences in [-2, 2]."""
    for name, function in METRICS.items():
        value = function(matrix)
        assert value is not None
        means = ("average_score", "average_incremental_score", "a_diaz", "fwt_diaz")
        assert abs(value) <= (1 if name in means else 2) + 1e-12


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6))
def test_isolated_learners_forget_nothing(scores: list[float]) -> None:
    matrix = np.tril(np.tile(scores, (len(scores), 1)))
    matrix[np.triu_indices(len(scores), 1)] = NAN
    for function in (backward_transfer, backward_transfer_diaz, forgetting, forgetting_first):
        assert function(matrix) == 0.0
    assert remembering(matrix) == 1.0
    assert average_score(matrix) == learning_score(matrix)


MODULES = [
    importlib.import_module(f"stream.metrics.{module.name}")
    for module in pkgutil.iter_modules(metrics.__path__)
    if module.name not in ("cells", "catalogue", "glossary")  # nothing to show in one line
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings(module) -> None:
    result = doctest.testmod(module, extraglobs={"np": np})
    assert result.attempted > 0
    assert result.failed == 0
