"""One head for all tasks: its loss with and without a mask in float64, and what is scored."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn import metrics

from stream.data.batch import IGNORED_LABEL
from stream.data.batching import collate
from stream.data.shared_head import with_shared_head
from stream.data.task import SHARED_HEAD, Task
from stream.errors import UserError
from stream.evaluation.evaluate import correctness, task_score
from stream.metrics import average_seen_class_accuracy, correct_cells, seen_class_accuracy
from stream.models.losses import batch_loss
from stream.models.task_model import TaskModel, occurring
from stream.seeding import torch_generator
from tests.builders import made_spec, made_split, made_task, tiny_encoder


def three() -> list[Task]:
    """Three classes, four others, and two that are never met."""
    return with_shared_head([made_task("a", 3, 24), made_task("b", 4, 24), made_task("c")], [])


def model_of(mask: str, tasks: list[Task]) -> TaskModel:
    """A model that met the first two tasks and learns the second."""
    model = TaskModel(tiny_encoder(), 0, 0.0, mask=mask).train()
    model.encoder.eval()  # no dropout
    for task in tasks[:2]:
        model.add_head(task)
    model.learning = {"b"}
    model.head(SHARED_HEAD).requires_grad_()
    return model


def loss_by_hand(model: TaskModel, batch, seen: list[list[int]]) -> float:
    """-log p of each row's class among those that its part sees, summed, in float64."""
    head = model.head(SHARED_HEAD)
    features = model.encoder(batch).detach().double()
    logits = features @ head.weight.detach().double().T + head.bias.detach().double()
    total = 0.0
    for part, labels, places in zip(batch.parts, batch.labels, seen, strict=True):
        for row, label in zip(logits[part.start : part.stop].numpy(), labels, strict=True):
            total -= row[label] - np.log(np.exp(row[places]).sum())
    return total / len(batch)


@pytest.mark.parametrize("mask", ["none", "labels_trick", "task"])
def test_new_rows_choose_between_the_classes_that_the_mask_leaves(mask: str) -> None:
    """Stored rows of an earlier task choose between all that are met, whatever the mask."""
    tasks = three()
    rows = np.array([1, 4, 9])
    labels = tasks[1].split("train").labels[rows]
    present = sorted(set(labels.tolist()))
    assert len(present) < 4  # so that the two masks differ
    met = list(range(7))
    seen = {"none": met, "labels_trick": present, "task": [3, 4, 5, 6]}[mask]
    model = model_of(mask, tasks)
    chosen = [(tasks[1], tasks[1].split("train"), rows)]
    new = collate(chosen, 0)
    loss = batch_loss(new, model(new))
    assert loss.item() == pytest.approx(loss_by_hand(model, new, [seen]), rel=1e-5)
    loss.backward()
    moved = model.head(SHARED_HEAD).weight.grad.abs().sum(1) > 0
    assert moved.nonzero()[:, 0].tolist() == seen
    mixed = collate([*chosen, (tasks[0], tasks[0].split("train"), rows)], 0)
    both = batch_loss(mixed, model(mixed)).item()
    assert both == pytest.approx(loss_by_hand(model, mixed, [seen, met]), rel=1e-5)


def test_a_mask_hides_nothing_where_a_model_answers() -> None:
    tasks = three()
    batch = collate([(tasks[1], tasks[1].split("test"), np.arange(5))], 0)
    found = [model_of(mask, tasks).eval()(batch)[0] for mask in ("none", "labels_trick", "task")]
    assert found[0].shape == (5, 7)
    assert all(torch.equal(found[0], other) for other in found[1:])


def test_rows_that_fill_up_a_batch_have_no_class() -> None:
    labels = torch.tensor([2, 1, IGNORED_LABEL])
    assert occurring(labels, torch.zeros(3, 4)).tolist() == [False, True, True, False]


def test_decay_moves_no_class_that_is_not_met() -> None:
    """AdamW with decay, five steps; the class is drawn afterwards as if nothing had been."""
    tasks = three()
    model, fresh = model_of("none", tasks), TaskModel(tiny_encoder(), 0)
    optimizer = torch.optim.AdamW(model.head(SHARED_HEAD).parameters(), 0.1, weight_decay=0.5)
    batch = collate([(tasks[1], tasks[1].split("train"), np.arange(8))], 0)
    for _ in range(5):
        optimizer.zero_grad()
        batch_loss(batch, model(batch)).backward()
        optimizer.step()
    learned = model.head(SHARED_HEAD).weight.detach().clone()
    bias = model.head(SHARED_HEAD).bias.detach().clone()
    for each in (model, fresh):
        for task in tasks:
            each.add_head(task)
    now, drawn = (each.head(SHARED_HEAD).weight for each in (model, fresh))
    by_hand = torch.empty(2, 16)
    for row, name in zip(by_hand, ("c/label 0", "c/label 1"), strict=True):
        generator = torch_generator(0, "head", name)
        torch.nn.init.trunc_normal_(row, 0.0, 0.02, -0.04, 0.04, generator)
    assert torch.equal(now[7:], by_hand)
    assert torch.equal(drawn[7:], by_hand)
    assert torch.equal(model.head(SHARED_HEAD).bias[:7], bias)
    assert torch.equal(now[:7], learned)
    assert not torch.equal(now[:7], drawn[:7])


def test_scores_are_those_of_scikit_learn_on_the_classes_of_all_tasks() -> None:
    generator = np.random.default_rng(0)
    tasks = with_shared_head(
        [made_task("a", 2, 40), made_task("b", 3, 60), made_task("c", 2, 20)], [["a", "c"]]
    )
    assert [task.shared.places for task in tasks] == [(0, 1), (2, 3, 4), (0, 1)]
    cells, right, pooled = [], [], []
    for done in (1, 2, 3):
        row = []
        for task in tasks[:done]:
            places = task.split("test").labels
            logits = generator.normal(size=(len(places), (2, 5, 5)[done - 1])).astype(np.float32)
            logits[np.arange(len(places)), places] += 1.5
            found = logits.argmax(1)
            own = [p if p in task.shared.places else -1 for p in found.tolist()]
            expected = {
                "accuracy": metrics.accuracy_score(places, found),
                "f1": metrics.f1_score(
                    places == task.shared.places[1], found == task.shared.places[1]
                ),
                "matthews_correlation": metrics.matthews_corrcoef(places, own),
            }
            for metric, value in expected.items():
                spec = replace(made_spec(2), metric=metric)
                scored = task_score(replace(task, spec=spec), logits, places)
                assert scored.value == pytest.approx(value), metric
            row.append(correctness(task, logits, places))
            right.append((done, places, found))
        cells.append(row + [None] * (3 - done))
        of_row = [(p, f) for d, p, f in right if d == done]
        pooled.append(metrics.accuracy_score(*map(np.concatenate, zip(*of_row, strict=True))))
    correct = correct_cells(cells, [len(task.split("test")) for task in tasks])
    assert [seen_class_accuracy(correct, k) for k in (1, 2, 3)] == pytest.approx(pooled)
    assert average_seen_class_accuracy(correct, 3) == pytest.approx(np.mean(pooled))


def test_places_can_be_given_anew() -> None:
    """Tasks in another order, from tasks that had places already."""
    tasks = with_shared_head(
        [made_task("a", 2), made_task("b", 3), made_task("c", 2)], [["a", "c"]]
    )
    plain = [made_task("b", 3), made_task("c", 2)]
    for again, expected in zip(
        with_shared_head(tasks[1:], [["a", "c"]]),
        with_shared_head(plain, [["a", "c"]]),
        strict=True,
    ):
        assert again.shared == expected.shared
        np.testing.assert_array_equal(again.split("test").labels, expected.split("test").labels)
    assert tasks[2].shared.names == tuple(f"a/label {i}" for i in range(2)) + tuple(
        f"b/label {i}" for i in range(3)
    )
    np.testing.assert_array_equal(tasks[1].own_labels("test"), made_split("b/test", 3, 24).labels)


@pytest.mark.parametrize(
    ("tasks", "groups", "message"),
    [
        ([made_task("a", 2), made_task("r", None)], [], "these have none: r"),
        ([made_task("a", 2), made_task("b", 3)], [["a", "b"]], "a and b have different labels"),
    ],
)
def test_what_one_head_cannot_answer_is_refused(tasks, groups, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        with_shared_head(tasks, groups)
    assert "\n" not in str(caught.value)
