"""Task metrics against their formulas in float64."""

import numpy as np
import pytest

from stream.errors import UserError
from stream.evaluation.task_metrics import score


def logits_for(predicted: np.ndarray, classes: int) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[predicted]


@pytest.fixture
def binary() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    targets = generator.integers(0, 2, 200)
    predicted = np.where(generator.random(200) < 0.8, targets, 1 - targets)
    return predicted, targets


def test_accuracy(binary: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, targets = binary
    found = score("accuracy", logits_for(predicted, 2), targets)
    assert found == (pytest.approx((predicted == targets).mean()), False)


def test_f1_is_of_class_one(binary: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, targets = binary
    hits = ((predicted == 1) & (targets == 1)).sum()
    expected = 2 * hits / ((predicted == 1).sum() + (targets == 1).sum())
    assert score("f1", logits_for(predicted, 2), targets).value == pytest.approx(expected)


def test_matthews_correlation(binary: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, targets = binary
    expected = np.corrcoef(predicted, targets)[0, 1]  # the same number for two classes
    found = score("matthews_correlation", logits_for(predicted, 2), targets)
    assert found.value == pytest.approx(expected)


def test_spearman_is_pearson_of_ranks() -> None:
    generator = np.random.default_rng(1)
    targets = generator.permutation(50).astype(np.float64)
    predicted = targets + generator.normal(0, 20, 50)
    ranks = predicted.argsort().argsort()
    expected = np.corrcoef(ranks, targets)[0, 1]
    assert score("spearman", predicted[:, None], targets).value == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["matthews_correlation", "spearman"])
def test_constant_predictions_are_zero_and_flagged(metric: str) -> None:
    logits = np.ones((6, 1 if metric == "spearman" else 2), np.float32)
    assert score(metric, logits, np.array([0, 1, 0, 1, 1, 0])) == (0.0, True)


def test_f1_without_any_positive_is_flagged() -> None:
    zeros = np.zeros(4, np.int64)
    assert score("f1", logits_for(zeros, 2), zeros) == (0.0, True)
    assert score("f1", logits_for(zeros, 2), np.array([0, 1, 0, 0])) == (0.0, False)


def test_a_class_that_the_targets_lack_is_fine() -> None:
    predicted = np.array([0, 2, 2, 1])
    assert score("accuracy", logits_for(predicted, 3), np.array([0, 2, 1, 1])).value == 0.75


def test_unknown_metric_names_the_nearest() -> None:
    with pytest.raises(UserError, match="'accuracy'"):
        score("acuracy", np.zeros((1, 2), np.float32), np.zeros(1))
