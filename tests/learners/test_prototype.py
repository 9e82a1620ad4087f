"""Prototypes against scikit-learn: class means, ridge regression, a shared head."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error
from sklearn.neighbors import NearestCentroid

from stream.data.batching import collate
from stream.data.shared_classes import SharedClasses
from stream.data.shared_head import with_shared_head
from stream.data.task import SHARED_HEAD, Split, Task
from stream.evaluation.evaluate import logits_of
from stream.learners._shared.sums import PENALTIES, Sums
from stream.learners._shared.sums import Ridge as OwnRidge
from stream.learners.prototype import Prototype
from stream.models.heads import Head
from stream.run.accounting import count_stored
from stream.seeding import numpy_generator
from stream.training.loop import fit
from tests.builders import CPU, SHORT, Stream, made_task


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


def of_one_head() -> list[Task]:
    """Three classes, two others, and the first three again, as reviews of two shops."""
    tasks = [made_task("a", 3, 40), made_task("b", 2, 30), made_task("c", 3, 20)]
    return with_shared_head(tasks, [["a", "c"]])


def at_once(tasks: list[Task]) -> Task:
    """One task that has the training rows and the classes of all."""
    splits = [task.split("train") for task in tasks]
    ends = np.cumsum([0, *(split.offsets[-1] for split in splits)])
    train = Split(
        np.concatenate([split.token_ids for split in splits]),
        np.concatenate([[0], *(s.offsets[1:] + e for s, e in zip(splits, ends, strict=False))]),
        np.concatenate([split.first_lengths for split in splits]),
        np.concatenate([split.labels for split in splits]),
    )
    names = tasks[0].shared.names
    shared = SharedClasses(names, tuple(range(len(names))))
    return replace(tasks[0], name="all", splits={"train": train, "test": train}, shared=shared)


def head_of(run: Stream) -> dict[str, torch.Tensor]:
    return {name: p.clone() for name, p in run.model.head(SHARED_HEAD).state().items()}


def test_a_new_task_changes_no_mean_of_other_classes() -> None:
    one, two, _ = of_one_head()
    run = learned(Prototype(), one)
    first = head_of(run)
    assert first["weight"].shape == (3, 16)
    run = Stream(Prototype(), [one, two])
    fit(run.learner, one, SHORT)
    fit(run.learner, two, SHORT)
    second = head_of(run)
    assert second["weight"].shape == (5, 16)
    for name, rows in first.items():
        assert torch.equal(second[name][:3], rows)
    assert (second["bias"] > -1e6).all()


@pytest.mark.parametrize(
    "options",
    [{}, {"metric": "cosine"}, {"kind": "ridge", "penalty": 1.0, "projection": 12}],
)
def test_tasks_add_up_to_one_fit_on_all_rows(options: dict) -> None:
    """That of this program, and scikit-learn's; what is kept between tasks are sums alone."""
    tasks = of_one_head()
    whole = at_once(tasks)
    run, together = learned(Prototype(**options), *tasks), learned(Prototype(**options), whole)
    apart, at_one_time = head_of(run), head_of(together)
    # Features are float32 and computed in other batches: their last digits differ, no more.
    torch.testing.assert_close(apart, at_one_time, rtol=1e-5, atol=1e-6)
    read, labels = (
        features_of if "projection" in options else vectors_of,
        whole.split("train").labels,
    )
    train = read(run, whole, "train")
    if "kind" in options:
        model = Ridge(alpha=1.0, fit_intercept=False).fit(train, np.eye(5)[labels])
        expected = model.coef_
    else:
        rows = unit(train) if options else train
        expected = NearestCentroid().fit(rows, labels).centroids_
        expected = unit(expected) if options else expected
    np.testing.assert_allclose(apart["weight"].double().numpy(), expected, rtol=1e-4, atol=1e-5)
    width = options.get("projection", 16)
    kept = {n: t.numel() for n, t in run.learner.shared_tensors.items()}
    sums = {f"products.{SHARED_HEAD}": width * 5, f"counts.{SHARED_HEAD}": 5}
    assert kept == {f"gram.{SHARED_HEAD}": width**2 if "kind" in options else 0, **sums}
    assert {t.dtype for t in run.learner.shared_tensors.values()} == {torch.float64}


def test_the_order_of_tasks_changes_no_answer() -> None:
    """But for the places of the classes."""
    tasks = [made_task("a", 3, 40), made_task("b", 2, 30), made_task("c", 4, 20)]
    heads = []
    for order in (tasks, tasks[::-1]):
        placed = with_shared_head(order, [])
        run = learned(Prototype(kind="ridge", penalty=0.1, projection=20), *placed)
        names = placed[0].shared.names
        rows = head_of(run)["weight"]
        heads.append({name: rows[place] for place, name in enumerate(names)})
    assert heads[0].keys() == heads[1].keys()
    torch.testing.assert_close(heads[0], heads[1], rtol=1e-4, atol=1e-6)


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
