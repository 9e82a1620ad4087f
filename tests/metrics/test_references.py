"""Metrics against joint, independent and untrained runs: hand computation, signs, edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stream.metrics import (
    NotEvaluatedError,
    forgetting_rate,
    forward_transfer_independent,
    gap_to_reference,
    intransigence,
    intransigence_joint_final,
    ratio_to_reference,
    transfer_from_independent,
)
from tests.metrics.worked_example import SCORES, B, R

NAN = np.nan
PREFIX_JOINT = np.diag([0.90, 0.90, 0.85, 0.95]) + np.triu(np.full((4, 4), NAN), 1)


def test_against_independent_models() -> None:
    alone = [0.90, 0.80, 0.85, 0.70]
    assert transfer_from_independent(R, alone).tolist() == pytest.approx([0, 0.05, -0.05, 0.2])
    assert forward_transfer_independent(R, alone) == pytest.approx(0.2 / 3)
    assert gap_to_reference(R, alone) == pytest.approx(0.8125 - 0.75)


def test_intransigence_exact_and_with_one_joint_run() -> None:
    assert intransigence(R, PREFIX_JOINT) == pytest.approx((0 + 0.05 + 0.05 + 0.05) / 4)
    assert intransigence_joint_final(R, [0.85, 0.95, 0.80, 0.90]) == pytest.approx(0.05 / 4)
    easier = np.full(4, 0.5)
    found = intransigence_joint_final(R, easier)
    assert found is not None
    assert found < 0  # learned better than jointly


def test_gap_and_ratio_to_joint() -> None:
    joint = [0.85, 0.95, 0.80, 0.90]
    assert gap_to_reference(R, joint) == pytest.approx(0.125)
    assert ratio_to_reference(R, joint) == pytest.approx(6 / 7)
    assert ratio_to_reference(R, [-0.5, 0.0, 0.2, 0.0]) is None  # correlations below 0


def test_forgetting_rate_counts_only_tasks_with_room() -> None:
    rate, counted = forgetting_rate(R, [0.95] * 4, B)
    assert rate == pytest.approx(np.mean([0.60 / 0.85, 0.60 / 0.75, 0.45 / 0.80, 0.78 / 0.83]) - 1)
    assert counted == 4
    rate, counted = forgetting_rate(R, [0.95, 0.20, 0.10, 0.12], B)
    assert rate == pytest.approx(0.60 / 0.85 - 1)
    assert counted == 1
    assert forgetting_rate(R, B, B) == (None, 0)


def test_lower_is_better() -> None:
    loss = np.array([[0.5, NAN], [0.9, 0.4]])
    assert gap_to_reference(loss, [0.4, 0.4], direction="lower") == pytest.approx(0.25)
    assert intransigence_joint_final(loss, [0.4, 0.3], direction="lower") == pytest.approx(0.1)
    assert forward_transfer_independent(loss, [0.5, 0.6], direction="lower") == pytest.approx(0.2)


def test_one_task_no_task_and_partial_runs() -> None:
    one, none = np.array([[0.9]]), np.full((3, 3), NAN)
    assert forward_transfer_independent(one, [0.9]) is None
    assert transfer_from_independent(one, [0.9]).tolist() == [0.0]
    assert intransigence(one, np.array([[0.95]])) == pytest.approx(0.05)
    assert gap_to_reference(one, [0.95]) == pytest.approx(0.05)
    for function in (forward_transfer_independent, intransigence_joint_final, gap_to_reference):
        assert function(none, [NAN] * 3) is None
    assert ratio_to_reference(none, [NAN] * 3) is None
    assert forgetting_rate(none, [NAN] * 3, [NAN] * 3) == (None, 0)
    partial = R.copy()
    partial[2:] = NAN
    assert gap_to_reference(partial, [0.9, 0.9, NAN, NAN]) == pytest.approx(0.9 - 0.825)


def test_missing_and_foreign_references_are_errors() -> None:
    with pytest.raises(NotEvaluatedError):
        gap_to_reference(R, [0.9, 0.9, NAN, 0.9])
    with pytest.raises(ValueError, match="4 tasks need 4 reference scores"):
        gap_to_reference(R, [0.9, 0.9, 0.9])
    with pytest.raises(ValueError, match="4 tasks"):
        intransigence(R, np.eye(3))


@given(SCORES, arrays(np.float64, 6, elements=st.floats(-1, 1)))
def test_identities(matrix: np.ndarray, values: np.ndarray) -> None:
    k = len(matrix)
    scores, before = values[:k], (matrix.copy(), values.copy())
    learned = np.diagonal(matrix)
    # Intransigence against the independent runs is FWT_ind with the other sign, all tasks counted.
    gains = transfer_from_independent(matrix, scores)
    assert intransigence_joint_final(matrix, scores) == pytest.approx(-gains.mean(), abs=1e-12)
    # A run is its own reference.
    assert gap_to_reference(matrix, matrix[-1]) == pytest.approx(0, abs=1e-12)
    assert intransigence(matrix, matrix) == 0
    # With equal seeds the first task knows no difference.
    same_start = np.concatenate([learned[:1], scores[1:]])
    assert transfer_from_independent(matrix, same_start)[0] == 0
    assert forward_transfer_independent(matrix, same_start) == pytest.approx(gains[1:].mean())
    assert np.array_equal(matrix, before[0])
    assert np.array_equal(values, before[1])
