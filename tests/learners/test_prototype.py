"""Prototypes against scikit-learn: class means, ridge regression, a shared head."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error
from sklearn.neighbors import NearestCentroid

from stream.data.batches import collate
from stream.data.task import Split, Task
from stream.evaluation.evaluate import logits_of
from stream.learners._shared.sums import PENALTIES, Sums
from stream.learners._shared.sums import Ridge as OwnRidge
from stream.learners.prototype import Prototype
from stream.models.heads import Head
from stream.run.accounting import count_stored
from stream.seeding import numpy_generator
from stream.training.loop import fit
from tests.conftest import CPU, SHORT, Stream, made_task


def vectors_of(run: Stream, task: Task, split: str) -> np.ndarray:
    """What the encoder as it came makes of a split's rows, float64 [N, D]."""
    rows = task.split(split)
    encoder = run.model.encoder.eval()
    features, encoder.features = encoder.features, None
    with torch.no_grad():
        vectors = encoder(collate([(task, rows, np.arange(len(rows)))], 0))
    encoder.features = features
    return vectors.double().numpy()


def features_of(run: Stream, task: Task, split: str) -> np.ndarray:
    """relu(f P) of a split's rows, as RanPAC has it."""
    projection = run.model.encoder.features.projection.detach().double().numpy()
    return np.maximum(vectors_of(run, task, split) @ projection, 0)


def learned(learner: Prototype, *tasks: Task) -> Stream:
    run = Stream(learner, list(tasks))
    for task in tasks:
        fit(run.learner, task, SHORT)
    return run


def answers(run: Stream, task: Task) -> np.ndarray:
    return logits_of(run.learner, [task], "test", 512, CPU)[0]


def unit(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=1, keepdims=True)


# --- class means


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_nearest_class_mean_answers(metric: str) -> None:
    task = made_task("a", 4, 60)
    run = learned(Prototype(metric=metric), task)
    train, test = (vectors_of(run, task, split) for split in ("train", "test"))
    labels, found = task.split("train").labels, answers(run, task)
    if metric == "euclidean":
        nearest = NearestCentroid().fit(train, labels)
        means = nearest.centroids_
        assert found.argmax(1).tolist() == nearest.predict(test).tolist()
        squares = ((test[:, None] - means) ** 2).sum(2)
        expected = -squares / 2 + (test**2).sum(1, keepdims=True) / 2
    else:
        means = [unit(train[labels == label]).mean(0) for label in range(4)]
        expected = unit(test) @ unit(np.array(means)).T
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_class_without_rows_never_answers() -> None:
    """Of 4 classes the rows have 2; also before the task is fitted, none is drawn at random."""
    task = made_task("a", 2)
    task = replace(task, spec=replace(task.spec, labels=["w", "x", "y", "z"]))
    for learner in (Prototype(), Prototype(kind="ridge", projection=8)):
        run = learned(learner, task)
        assert (answers(run, task)[:, 2:] <= Head.NEVER / 2).all()
        assert (answers(run, task)[:, :2] > -1e6).all()


# --- ridge regression


@pytest.mark.parametrize("penalty", [0.01, 10.0])
@pytest.mark.parametrize("num_labels", [3, None])
def test_ridge_is_scikit_learn_s(num_labels: int | None, penalty: float) -> None:
    task = made_task("a", num_labels, 60)
    run = learned(Prototype(kind="ridge", projection=40, penalty=penalty), task)
    train, test = (features_of(run, task, split) for split in ("train", "test"))
    labels = task.split("train").labels
    middle = 2.5 if num_labels is None else 0.0
    targets = labels[:, None] - middle if num_labels is None else np.eye(3)[labels]
    model = Ridge(alpha=penalty, fit_intercept=False).fit(train, targets)
    expected = model.predict(test).reshape(len(test), -1) + middle
    np.testing.assert_allclose(answers(run, task), expected, atol=1e-3)
    assert np.abs(expected).max() > 0.1


def test_the_penalty_is_the_best_on_other_rows() -> None:
    """The more noise, the larger; scikit-learn tries them all."""
    generator = np.random.default_rng(0)
    chosen = []
    for noise in (1e-6, 1.0, 30.0):
        features = generator.normal(size=(60, 30))
        targets = features @ generator.normal(size=(30, 3)) + noise * generator.normal(size=(60, 3))
        fitted, others = (
            Sums.of(torch.tensor(features[part]), torch.tensor(targets[part]), gram=True)
            for part in (slice(0, 48), slice(48, None))
        )
        errors = [
            mean_squared_error(
                targets[48:],
                Ridge(alpha=alpha, fit_intercept=False)
                .fit(features[:48], targets[:48])
                .predict(features[48:]),
            )
            for alpha in PENALTIES
        ]
        chosen.append(OwnRidge(fitted).chosen(others))
        assert errors[PENALTIES.index(chosen[-1])] == pytest.approx(min(errors), rel=1e-9)
    assert chosen == sorted(chosen)
    assert len(set(chosen)) == 3


def test_a_fifth_of_the_rows_says_which_penalty() -> None:
    """12 of 60, drawn by the task's name; then all rows are fitted with it."""
    task = made_task("a", 3, 60)
    run = learned(Prototype(kind="ridge", projection=40), task)
    features, targets = features_of(run, task, "train"), np.eye(3)[task.split("train").labels]
    order = numpy_generator(0, "held out", "a").permutation(60)
    held, rest = order[:12], order[12:]
    models = [Ridge(alpha=alpha, fit_intercept=False) for alpha in PENALTIES]
    errors = [
        mean_squared_error(
            targets[held], model.fit(features[rest], targets[rest]).predict(features[held])
        )
        for model in models
    ]
    best = models[int(np.argmin(errors))].fit(features, targets)
    expected = best.predict(features_of(run, task, "test"))
    np.testing.assert_allclose(answers(run, task), expected, atol=1e-4)


def test_scores_are_fitted_by_ridge_whatever_the_kind() -> None:
    task = made_task("a", None, 60)
    run = learned(Prototype(), task)
    train, test = (vectors_of(run, task, split) for split in ("train", "test"))
    scores, found = task.split("train").labels[:, None] - 2.5, answers(run, task)
    fits = [
        Ridge(alpha=alpha, fit_intercept=False).fit(train, scores).predict(test) + 2.5
        for alpha in PENALTIES[4:]
    ]
    assert min(np.abs(found[:, 0] - fit.ravel()).max() for fit in fits) < 1e-3


# --- one head for all tasks


@dataclass(frozen=True)
class Placed(Task):
    """A task whose classes stand at ``first`` among 6 of one head."""

    first: int = 0

    @property
    def head_name(self) -> str:
        return "all"

    @property
    def num_outputs(self) -> int:
        return 6


def placed(name: str, first: int, num_labels: int) -> Placed:
    task = made_task(name, num_labels, 40)
    splits = {n: replace(s, labels=s.labels + first) for n, s in task.splits.items()}
    return Placed(name, task.spec, splits, task.hashes, first=first)


def both(one: Task, two: Task) -> Task:
    """A task with the training rows of both."""
    a, b = one.split("train"), two.split("train")
    train = Split(
        np.concatenate([a.token_ids, b.token_ids]),
        np.concatenate([a.offsets, a.offsets[-1] + b.offsets[1:]]),
        np.concatenate([a.first_lengths, b.first_lengths]),
        np.concatenate([a.labels, b.labels]),
    )
    return Placed("both", one.spec, {"train": train}, one.hashes)


def head_after(learner: Prototype, *tasks: Task) -> tuple[Stream, list[Head]]:
    """The shared head after each task."""
    run, heads = Stream(learner, list(tasks)), []
    run.model.heads["all"] = head = Head(learner.projection or 16, 6)
    for task in tasks:
        fit(run.learner, task, SHORT)
        copy = Head(head.in_features, 6)
        copy.load_state_dict(head.state_dict())
        heads.append(copy)
    return run, heads


def test_a_new_task_changes_no_mean_of_other_classes() -> None:
    tasks = placed("a", 0, 3), placed("b", 3, 2)
    _, (first, second) = head_after(Prototype(), *tasks)
    assert torch.equal(first.weight[:3], second.weight[:3])
    assert torch.equal(first.bias[:3], second.bias[:3])
    assert (first.bias[3:] == Head.NEVER).all()
    assert (second.bias[:5] > -1e6).all()
    assert second.bias[5] == Head.NEVER


@pytest.mark.parametrize("options", [{}, {"kind": "ridge", "penalty": 1.0, "projection": 12}])
def test_two_tasks_add_up_to_one_with_all_rows(options: dict) -> None:
    """Classes that both have, as reviews of two shops: 0 to 2 and 2 to 4 of the head."""
    one, two = placed("a", 0, 3), placed("b", 2, 3)
    run, (_, apart) = head_after(Prototype(**options), one, two)
    _, (together,) = head_after(Prototype(**options), both(one, two))
    torch.testing.assert_close(apart.weight, together.weight, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(apart.bias, together.bias, rtol=1e-5, atol=1e-6)
    width = options.get("projection", 16)
    kept = {n: t.numel() for n, t in run.learner.shared_tensors.items()}
    gram = width**2 if options else 0
    assert kept == {"gram.all": gram, "products.all": width * 6, "counts.all": 6}
    assert {t.dtype for t in run.learner.shared_tensors.values()} == {torch.float64}


def test_a_head_of_its_own_is_all_that_is_stored(three_tasks: list[Task]) -> None:
    """And the projection, once: it is drawn from the seed, and read by every prediction."""
    learner = Prototype(kind="ridge", projection=10)
    run = learned(learner, *three_tasks)
    drawn = Stream(Prototype(kind="ridge", projection=10), three_tasks, seed=1)
    encoder, heads = run.model.encoder, (2 + 5 + 1) * (10 + 1)
    assert not torch.equal(encoder.features.projection, drawn.model.encoder.features.projection)
    expected = encoder.num_parameters() + heads
    assert count_stored(learner.stored_states(three_tasks)) == (expected, 4 * expected)
    plain = sum(p.numel() for n, p in encoder.named_parameters() if n in encoder.pretrained)
    assert encoder.num_parameters() == plain + 16 * 10
    assert learner.num_trained(three_tasks[-1]) == 10 + 1
    assert "encoder.features.projection" in learner.served_state("a")
