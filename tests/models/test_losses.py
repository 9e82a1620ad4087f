"""The loss of spans, and of batches that hold some, against float64 by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from stream.data.batching import collate
from stream.data.mixture import Rehearsal
from stream.data.task import Split, Task
from stream.learners.ewc import Ewc
from stream.learners.replay import Replay
from stream.models.losses import span_loss
from stream.seeding import numpy_generator
from tests.builders import Stream, made_task
from tests.data.squad import spec


def span_task(name: str, rows: int = 8) -> Task:
    """Texts of 10 tokens, whose answer is among tokens 4 to 8."""
    generator = numpy_generator(0, "spans", name)
    first = generator.integers(4, 8, rows)
    last = np.minimum(first + generator.integers(0, 3, rows), 8)
    labels = np.stack([first, last, np.full(rows, 4), np.full(rows, 9)], 1).astype(np.int64)
    tokens = generator.integers(5, 60, 10 * rows).astype(np.int32)
    offsets = np.arange(0, 10 * rows + 1, 10)
    split = Split(tokens, offsets, np.full(rows, 4, np.int32), labels)
    return Task(name, spec(), {"train": split, "test": split}, {})


def loss_by_hand(logits: np.ndarray, spans: np.ndarray) -> float:
    """-log p of both ends among [CLS] and the context's tokens, halved and summed over rows."""
    total = 0.0
    for row, (first, last, start, stop) in zip(
        logits.reshape(len(spans), -1, 2), spans, strict=True
    ):
        allowed = [0, *range(start, stop)]
        for end, place in ((0, first), (1, last)):
            scores = row[allowed, end]
            total -= (row[place, end] - np.log(np.exp(scores).sum())) / 2
    return total


def test_a_span_is_two_choices_among_the_contexts_tokens() -> None:
    """[CLS] is among them, the question and what stands behind the context are not."""
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(3, 2 * 12)) * 3
    spans = np.array([[4, 6, 4, 9], [5, 5, 2, 7], [0, 0, 3, 12]])  # the last: no answer
    found = span_loss(torch.tensor(logits), torch.tensor(spans))
    assert found.item() == pytest.approx(loss_by_hand(logits, spans))


def test_stored_rows_of_span_tasks_are_learned_again() -> None:
    """The mean over all examples, of which some are new, some classes, some spans."""
    spans, classes, new = span_task("s"), made_task("a", 3, 8), made_task("b", 2, 8)
    learner = Replay(replayed=8)
    run = Stream(learner, [spans, classes, new])
    for task in (spans, classes):
        learner.start(task)
        learner.finish(task)
    learner.start(new)
    run.model.eval()
    rows = np.arange(4)
    parts = [(task, task.split("train"), rows) for task in (new, spans, classes)]
    batch = collate(parts, 0)
    logits = [part.detach().double().numpy() for part in run.model(batch)]
    total = loss_by_hand(logits[1][:, :20], spans.split("train").labels[:4])
    for index in (0, 2):
        shifted = logits[index] - np.log(np.exp(logits[index]).sum(1, keepdims=True))
        total -= shifted[np.arange(4), batch.labels[index].numpy()].sum()
    found = learner.loss(Rehearsal.of(batch, learner.learned))
    assert found.item() == pytest.approx(total / 12, rel=1e-5)


def test_fisher_of_a_span_is_of_both_its_ends() -> None:
    """The likelihood of a span is the product of its ends' ones: twice the mean that is learned."""
    task = span_task("s", 1)
    run = Stream(Ewc(fisher_rows=1), [task])
    run.learner.start(task)
    fisher = run.learner.fisher(task)
    run.model.eval()
    batch = collate([(task, task.split("train"), np.arange(1))], 0)
    by_token = run.model(batch)[0].unflatten(1, (-1, 2))[0, [0, *range(4, 9)]]
    first, last = (int(end) - 3 for end in task.split("train").labels[0, :2])
    logs = by_token.log_softmax(0)
    name = "body.encoder.layer.1.output.dense.weight"
    weight = run.model.encoder.get_parameter(name)
    (gradient,) = torch.autograd.grad(logs[first, 0] + logs[last, 1], weight)
    torch.testing.assert_close(fisher[name], gradient**2, rtol=1e-3, atol=1e-9)


def test_a_replayed_span_keeps_its_labels_alone() -> None:
    """Answers as texts are for scoring; the buffer does not store them."""
    task = span_task("s")
    learner = Replay()
    Stream(learner, [task])
    learner.start(task)
    learner.finish(task)
    assert learner.stored.rows_of(task).answers is None
    assert np.array_equal(learner.stored.rows_of(task).labels, replace(task).split("train").labels)
