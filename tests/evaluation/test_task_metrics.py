"""Task metrics against their formulas in float64."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics

from stream.data.task import Task
from stream.errors import UserError
from stream.evaluation import task_metrics
from stream.evaluation.majority import majority_scores
from stream.evaluation.task_metrics import gives_one_answer, score
from stream.learners import LEARNERS


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


def test_every_bit_is_that_of_scikit_learn_and_scipy() -> None:
    """Of tasks of all sizes, with ties, rare classes and classes that are only predicted."""
    generator = np.random.default_rng(4)
    for number in range(60):
        rows, classes = int(generator.integers(2, 400)), 2 if number % 2 else 7
        targets = generator.integers(0, classes, rows)
        chosen = generator.random(rows) < generator.random()
        predicted = np.where(chosen, targets, generator.integers(0, classes + number % 3, rows))
        logits = logits_for(predicted, classes + 2)
        known = np.unique(targets)
        expected = {
            "accuracy": metrics.accuracy_score(targets, predicted),
            "macro_f1": metrics.f1_score(targets, predicted, average="macro", labels=known),
        }
        if ((predicted == 1) | (targets == 1)).any():
            expected["f1"] = metrics.f1_score(targets == 1, predicted == 1)
        scores = targets + (number % 5) * generator.normal(0, 1, rows).astype(np.float32).round(1)
        given = (scores + generator.normal(0, 3, rows)).astype(np.float32).round(number % 4)
        if len(known) > 1 and len(np.unique(predicted)) > 1:
            expected["matthews_correlation"] = metrics.matthews_corrcoef(targets, predicted)
            for name, value in expected.items():
                assert score(name, logits, targets) == (value, False), name
        if len(np.unique(scores)) > 1 and len(np.unique(given)) > 1:
            ranked = stats.spearmanr(given.astype(np.float64), scores.astype(np.float64)).statistic
            assert score("spearman", given[:, None], scores) == (ranked, False)


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


def test_macro_f1_is_the_mean_over_classes_that_rows_have() -> None:
    generator = np.random.default_rng(2)
    targets = generator.integers(0, 3, 60)  # class 3 is predicted alone: another task's answer
    predicted = np.where(generator.random(60) < 0.6, targets, generator.integers(0, 4, 60))
    hits = [((predicted == c) & (targets == c)).sum() for c in range(4)]
    sizes = [(predicted == c).sum() + (targets == c).sum() for c in range(4)]
    assert sizes[3] > 0
    expected = np.mean([2 * hit / size for hit, size in zip(hits[:3], sizes[:3], strict=True)])
    assert score("macro_f1", logits_for(predicted, 4), targets).value == pytest.approx(expected)


def test_pearson() -> None:
    generator = np.random.default_rng(3)
    targets = generator.normal(0, 1, 40).astype(np.float32)
    predicted = (targets + generator.normal(0, 1, 40)).astype(np.float32)
    expected = np.corrcoef(predicted, targets)[0, 1]
    assert score("pearson", predicted[:, None], targets).value == pytest.approx(expected)
    assert score("pearson", np.ones((40, 1), np.float32), targets) == (0.0, True)


def half_of_accuracy(logits: np.ndarray, targets: np.ndarray) -> float:
    return float((logits.argmax(1) == targets).mean()) / 2


def undefined(logits: np.ndarray, targets: np.ndarray) -> float:
    return float("nan")


OWN_GIVES = {
    "five": 5.0,
    "infinity": float("inf"),
    "true": True,
    "text": "0.5",
    "nothing": None,
    "array": np.ones(300),
    "tensor": torch.ones(300),
}
"""What a function of one's own gives by its name; a function that is called otherwise raises."""


def __getattr__(name: str) -> Callable:
    if not name.startswith("gives_"):
        raise AttributeError(name)

    def own(logits: np.ndarray, targets: np.ndarray) -> object:
        if name == "gives_exit":
            raise SystemExit(0)
        return OWN_GIVES[name.removeprefix("gives_")]

    return own


def spoils(logits: np.ndarray, targets: np.ndarray) -> float:
    logits[:], targets[:] = 0, 0
    return 0.25


def test_a_function_of_ones_own(binary: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, targets = binary
    logits = logits_for(predicted, 2)
    expected = (predicted == targets).mean() / 2
    assert score(f"{__name__}:half_of_accuracy", logits, targets).value == pytest.approx(expected)
    assert score(f"{__name__}:undefined", logits, targets) == (0.0, True)
    for wrong in ("no_such_module:f", f"{__name__}:no_such_name"):
        with pytest.raises(UserError, match="cannot be imported"):
            score(wrong, logits, targets)
    with pytest.raises(UserError, match="is a module, no function"):
        score(f"{__name__}:np", logits, targets)


@pytest.mark.parametrize("name", [*OWN_GIVES, "exit", "key_error"])
def test_what_is_no_score_is_told_in_a_line_with_metric_and_task(name: str) -> None:
    metric = f"{__name__}:gives_{name}"
    with pytest.raises(UserError) as told:
        score(metric, np.eye(2, dtype=np.float32), np.arange(2), "mine")
    line = str(told.value)
    assert line.startswith(f"task 'mine': metric '{metric}' ")
    assert ("raised" in line) == (name not in OWN_GIVES)
    assert "\n" not in line
    assert len(line) < 300


def test_a_function_of_ones_own_cannot_change_what_is_recorded() -> None:
    logits, targets = np.eye(2, dtype=np.float32), np.arange(2)
    assert score(f"{__name__}:spoils", logits, targets).value == 0.25
    assert logits.sum() == 2
    assert targets.sum() == 1


def test_memory_that_ran_out_in_it_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(logits: np.ndarray, targets: np.ndarray) -> float:
        raise MemoryError

    monkeypatch.setattr(f"{__name__}.half_of_accuracy", own)
    task_metrics._imported.cache_clear()
    with pytest.raises(MemoryError):
        score(f"{__name__}:half_of_accuracy", np.eye(2, dtype=np.float32), np.arange(2))
    task_metrics._imported.cache_clear()


def test_several_metrics_of_a_task_stand_in_its_cells(
    stream: Callable, three_tasks: list[Task]
) -> None:
    (task, *_) = three_tasks
    own = f"{__name__}:half_of_accuracy"
    task = replace(task, spec=replace(task.spec, metric="accuracy", more_metrics=["macro_f1", own]))
    run = stream(LEARNERS["majority"](), [task])
    run.run()
    cell = run.matrix.cells[0][0]
    assert list(cell.more) == ["macro_f1", own]
    assert cell.more[own] == pytest.approx(cell.score / 2)
    assert majority_scores([task], "test") == [cell.score]


@pytest.mark.parametrize(
    ("answers", "labels", "constant"),
    [([1, 1, 1], [0, 1, 2], True), ([1, 1, 0], [0, 1, 2], False), ([1, 1, 1], [2, 2, 2], False)],
)
def test_one_answer_to_texts_whose_labels_differ(
    answers: list[int], labels: list[int], *, constant: bool
) -> None:
    logits = np.eye(3, dtype=np.float32)[answers] + np.float32([[0.1], [0.2], [0.3]])
    assert gives_one_answer(logits, np.array(labels)) is constant
    values = np.array(answers, np.float32)[:, None]
    assert gives_one_answer(values, np.array(labels, np.float32)) is constant
