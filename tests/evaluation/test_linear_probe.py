"""Linear probes: what the encoder still tells, against cases whose answer is known."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from stream.config.run import EvaluationConfig
from stream.config.task import TaskSpec
from stream.data.task import Task
from stream.evaluation.evaluate import outputs_of
from stream.evaluation.linear_probe import _fitted, probe_row, probe_score
from stream.learners import LEARNERS
from stream.metrics import head_misalignment, representation_forgetting
from stream.record.run_record import LinearProbeRecord
from tests.builders import CPU, made_task

SETTINGS = EvaluationConfig()


@pytest.mark.parametrize("name", ["class", "score"])
def test_a_probe_is_what_scikit_learn_fits_on_features_as_heads_read_them(
    name: str, stream: Callable
) -> None:
    """Written out: standardized, then the minimum of scikit-learn's stated objective."""
    task = made_task(name, 5 if name == "class" else None)
    run = stream(LEARNERS["frozen"](), [task])
    learner = run.learner

    def read(batch: object) -> list[torch.Tensor]:
        return [run.model.states(batch).texts]

    (train,) = outputs_of(learner, [task], "train", None, CPU, read)
    rows = train.astype(np.float64)
    scaled = (rows - rows.mean(0)) / rows.std(0)
    labels = task.split("train").labels
    logits = _fitted(rows, task)(rows)
    if name == "score":
        centred = labels - labels.mean(dtype=np.float64)
        weights = np.linalg.solve(scaled.T @ scaled + np.eye(scaled.shape[1]), scaled.T @ centred)
        assert logits[:, 0] == pytest.approx(scaled @ weights + labels.mean(), abs=1e-5)
        return
    # Of several classes: at the minimum of the losses + |w|^2 / 2 the gradient is 0, so X^T (p - y)
    # is -w. So the log odds, which are linear in w, follow from the probabilities.
    off = np.exp(logits) - np.eye(task.num_outputs)[labels]
    weights = -(scaled.T @ off)
    found = scaled @ weights
    expected = found - found.mean(1, keepdims=True)
    centred = logits - logits.mean(1, keepdims=True)
    assert (centred - expected).std(0) == pytest.approx(0, abs=0.02)


def test_isolated_learners_lose_nothing_and_nothing_is_changed(
    stream: Callable, three_tasks: list[Task]
) -> None:
    run = stream(LEARNERS["adapter"](), three_tasks)
    record = LinearProbeRecord()
    for index in range(len(three_tasks)):
        run.learn(index)
        before = run.evaluate(three_tasks[0]).digest
        probe_row(run.learner, three_tasks, index, SETTINGS, CPU, record)
        assert run.evaluate(three_tasks[0]).digest == before
    assert record.learned == record.final
    assert representation_forgetting(record.learned, record.final) == 0


def test_a_spoilt_head_is_told_from_a_spoilt_encoder(
    stream: Callable, three_tasks: list[Task]
) -> None:
    (task, *_) = three_tasks
    run = stream(LEARNERS["finetune"](), [task])
    run.learn(0)
    good = probe_score(run.learner, task, SETTINGS, CPU)
    head = run.model.head(task.head_name)
    with torch.no_grad():
        head.weight.neg_()
        head.bias.neg_()
    assert probe_score(run.learner, task, SETTINGS, CPU) == good  # heads are not read
    spoilt = run.evaluate(task).score
    matrix = np.array([[spoilt]])
    assert head_misalignment(matrix, [good]) == pytest.approx(good - spoilt)
    with torch.no_grad():
        for parameter in run.model.encoder.parameters():
            parameter.zero_()
    assert probe_score(run.learner, task, SETTINGS, CPU) == _majority(task)


def _majority(task: Task) -> float:
    counts = np.bincount(task.split("train").labels, minlength=task.num_outputs)
    return float((task.split("test").labels == counts.argmax()).mean())


def made_span_spec(spec: TaskSpec) -> TaskSpec:
    return TaskSpec(title=spec.title, kind="span", metric="answer_f1", source=spec.source)


def test_one_class_and_spans_have_an_answer_too(stream: Callable, three_tasks: list[Task]) -> None:
    (task, *_) = three_tasks
    train = task.split("train")
    same = replace(train, labels=np.ones_like(train.labels))
    one = replace(task, splits={**task.splits, "train": same})
    run = stream(LEARNERS["frozen"](), [one])
    found = probe_score(run.learner, one, SETTINGS, CPU)
    assert found == pytest.approx((task.split("test").labels == 1).mean())
    span = replace(task, spec=made_span_spec(task.spec))
    assert probe_score(run.learner, span, SETTINGS, CPU) is None
