"""What answers of other tasks count as, against scores of predictions that are written out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from stream.config.task import TaskSpec
from stream.data.spans.answers import Answers
from stream.data.task import Task
from stream.evaluation.foreign import Foreign, score_with_foreign
from stream.evaluation.task_metrics import score
from tests.builders import made_task

TARGETS = np.array([0, 1, 1, 0, 1, 0, 1, 0])
LOGITS = np.array([[2, 1], [1, 2], [2, 1], [2, 1], [1, 2], [1, 2], [1, 2], [2, 1]], np.float32)
GONE = np.array([0, 1, 6])  # two of class 1, one of class 0, all right before


def task(metric: str, num_labels: int | None = 2, name: str = "mine") -> Task:
    """A task with this metric."""
    made = made_task(name, num_labels, rows=8)
    return replace(made, spec=replace(made.spec, metric=metric))


def routed(metric: str, logits: np.ndarray | None = None, other: Task | None = None) -> float:
    """The score where another task answers some texts."""
    foreign = [Foreign(other or made_task("other", 3), GONE, logits)]
    return score_with_foreign(task(metric), LOGITS, TARGETS, foreign).value


def test_outside_the_classes_is_wrong_in_each_metric() -> None:
    predicted = LOGITS.argmax(1)
    predicted[GONE] = 2
    assert routed("accuracy") == metrics.accuracy_score(TARGETS, predicted) == 3 / 8
    # Class 1: one of four found (two were given away), one found wrongly.
    assert routed("f1") == pytest.approx(2 * 1 / (2 * 1 + 1 + 3))
    expected = metrics.matthews_corrcoef(TARGETS, predicted)
    assert routed("matthews_correlation") == pytest.approx(expected)
    assert expected < score("matthews_correlation", LOGITS, TARGETS).value


def test_without_foreign_answers_the_score_is_the_very_same() -> None:
    for metric in ("accuracy", "f1", "matthews_correlation"):
        found = score_with_foreign(task(metric), LOGITS, TARGETS, [])
        assert found == score(metric, LOGITS, TARGETS)


def test_f1_is_that_of_class_1_alone() -> None:
    ours = score("f1", LOGITS, TARGETS).value
    assert ours == metrics.f1_score(TARGETS, LOGITS.argmax(1), pos_label=1)


def test_the_label_of_the_same_name_is_an_answer_where_labels_are_shared() -> None:
    other = made_task("other", 3)
    names = ["label 1", "else", "label 0"]
    other = replace(other, spec=replace(other.spec, labels=names))
    logits = np.array([[0, 0, 9], [0, 9, 0], [9, 0, 0]], np.float32)  # label 0, else, label 1
    predicted = LOGITS.argmax(1)
    predicted[GONE] = [0, 2, 1]
    assert routed("accuracy", logits, other) == metrics.accuracy_score(TARGETS, predicted)


def test_scores_of_another_task_are_the_middle_unless_they_mean_the_same() -> None:
    regression = task("spearman", None)
    targets = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], np.float32)
    own = np.array([[0.1], [1.5], [1.0], [3.5], [2.8], [4.6]], np.float32)
    gone, theirs = np.array([0, 5]), np.array([[5.0], [0.5]], np.float32)
    for logits, values in ((None, [2.5, 2.5]), (theirs, [5.0, 0.5])):
        predicted = own[:, 0].copy()
        predicted[gone] = values
        other = Foreign(task("spearman", None, "other"), gone, logits)
        found = score_with_foreign(regression, own, targets, [other])
        assert found.value == pytest.approx(stats.spearmanr(predicted, targets)[0])
    everything = Foreign(made_task("other", 2), np.arange(6), None)
    assert score_with_foreign(regression, own, targets, [everything]) == (0.0, True)


def test_a_question_that_another_task_answers_has_no_right_word() -> None:
    answers = Answers(
        ("red fox", "old dog"),
        (("red",), ("old",)),
        np.array([[0, 3], [4, 7]] * 2, np.int32),
        np.array([0, 2]),
        np.array([[0, 2], [0, 2]]),
    )
    logits = np.array([[9, 9, 0, 0], [9, 9, 0, 0]], np.float32)
    spec = TaskSpec(title="q", kind="span", metric="exact_match", source="made for tests")
    spans = replace(made_task("mine"), spec=spec)
    assert score_with_foreign(spans, logits, answers, []).value == 1.0
    gone = Foreign(made_task("other", 2), np.array([1]), None)
    assert score_with_foreign(spans, logits, answers, [gone]).value == 0.5
