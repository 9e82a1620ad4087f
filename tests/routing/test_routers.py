"""The decisions of routers, against closed forms, scikit-learn and torch."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

from stream.config.router import RouterConfig
from stream.config.task import TaskSpec
from stream.errors import UserError
from stream.routing.base import decide
from stream.routing.class_mean import ClassMean
from stream.routing.confidence import Confidence
from stream.routing.entropy import Entropy
from stream.routing.mahalanobis import Mahalanobis
from stream.routing.statistics import ClassStatistics
from stream.seeding import numpy_generator

D = 5
Rows = tuple[np.ndarray, np.ndarray]


def rows(name: str, classes: int, each: int = 12, places: float = 2.0) -> Rows:
    """Features [N, D] of classes of equal size, correlated, and their classes [N]."""
    generator = numpy_generator(0, "routers", name)
    mix = numpy_generator(0, "routers", "mix").normal(size=(D, D))
    labels = np.repeat(np.arange(classes), each)
    means = places * generator.normal(size=(classes, D))
    return means[labels] + generator.normal(size=(len(labels), D)) @ mix, labels


def parts(features: np.ndarray, labels: np.ndarray, size: int = 7) -> Iterator[Rows]:
    """Yield them shuffled, some rows at a time."""
    order = numpy_generator(0, "order").permutation(len(labels))
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        yield features[chosen], labels[chosen]


def test_statistics_of_one_pass_are_those_of_two() -> None:
    features, labels = rows("statistics", 4)
    features, labels = features + 1e6, labels * 2  # far from 0, and classes without a row
    found = ClassStatistics(scatter=True)
    for some in parts(features, labels):
        found.add(*some)
    means = np.stack([features[labels == c].mean(0) for c in (0, 2, 4, 6)])
    centred = features - means[labels // 2]
    assert found.rows == len(labels)
    np.testing.assert_allclose(found.means, means, rtol=1e-14)
    np.testing.assert_allclose(found.scatter, centred.T @ centred, rtol=1e-8, atol=1e-6)


def test_the_nearest_mean_decides() -> None:
    router = ClassMean(RouterConfig(kind="class_mean"))
    router.learn("a", [(np.array([[0.0, 1.0], [0.0, 3.0], [8.0, 0.0]]), np.array([0, 0, 1]))])
    router.learn("b", [(np.array([[4.0, 2.0]]), np.array([0]))])
    assert router.tasks["a"]["means"].tolist() == [[0.0, 2.0], [8.0, 0.0]]
    texts = np.array([[1.9, 2.0], [2.1, 2.0], [2.0, 2.0], [7.0, 0.0], [5.0, 9.0]])
    costs = router.costs(texts, ["a", "b"])
    expected = [[3.61, 4.41], [4.41, 3.61], [4.0, 4.0], [1.0, 13.0], [74.0, 50.0]]
    np.testing.assert_allclose(costs, expected, atol=1e-12)
    assert decide(costs).tolist() == [0, 1, 0, 0, 1]  # the third is as near to both: the first


def test_class_means_agree_with_scikit_learn() -> None:
    data = {name: rows(name, classes) for name, classes in (("a", 2), ("b", 4), ("c", 3))}
    router = ClassMean(RouterConfig(kind="class_mean"))
    for name, (features, labels) in data.items():
        router.learn(name, parts(features, labels))
    first = np.cumsum([0, 2, 4])
    every = [labels + start for (_, labels), start in zip(data.values(), first, strict=True)]
    model = NearestCentroid().fit(np.concatenate([f for f, _ in data.values()]), np.hstack(every))
    texts = numpy_generator(0, "texts").normal(scale=3, size=(200, D))
    owner = np.repeat([0, 1, 2], [2, 4, 3])[model.predict(texts)]
    assert decide(router.costs(texts, list(data))).tolist() == owner.tolist()


def test_a_covariance_turns_a_decision() -> None:
    """Wide along the first axis, narrow along the second: distances in closed form."""
    router = Mahalanobis(RouterConfig(kind="mahalanobis", shrinkage=0.5))
    spread = np.array([[4.0, 0.0], [-4.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    router.learn("a", [(spread, np.zeros(4, np.int64))])
    router.learn("b", [(spread + 3, np.zeros(4, np.int64))])
    # S = diag(8, 0.5), its mean 4.25; shrunk by half: diag(6.125, 2.375).
    np.testing.assert_allclose(router.covariance(), np.diag([6.125, 2.375]))
    text = np.array([[2.9, 0.9]])
    expected = [[8.41 / 6.125 + 0.81 / 2.375, 0.01 / 6.125 + 4.41 / 2.375]]
    np.testing.assert_allclose(router.costs(text, ["a", "b"]), expected, rtol=1e-12)
    assert decide(router.costs(text, ["a", "b"])).tolist() == [0]
    plain = ClassMean(RouterConfig(kind="class_mean"))
    plain.tasks = router.tasks
    assert decide(plain.costs(text, ["a", "b"])).tolist() == [1]


@pytest.mark.parametrize("shrinkage", [1e-3, 0.3, 1.0])
def test_mahalanobis_distances_are_those_of_linear_discriminants(shrinkage: float) -> None:
    """Log posteriors of LDA with equal priors are minus half the distances, up to a constant."""
    data = {name: rows(name, classes) for name, classes in (("a", 1), ("b", 1), ("c", 1))}
    router = Mahalanobis(RouterConfig(kind="mahalanobis", shrinkage=shrinkage))
    for name, (features, labels) in data.items():
        router.learn(name, parts(features, labels))
    model = LinearDiscriminantAnalysis("lsqr", shrinkage=shrinkage, priors=[1 / 3] * 3)
    owners = np.repeat([0, 1, 2], 12)
    model.fit(np.concatenate([features for features, _ in data.values()]), owners)
    texts = numpy_generator(0, "texts").normal(scale=3, size=(50, D))
    costs = router.costs(texts, list(data))
    scores = -2 * model.decision_function(texts)
    np.testing.assert_allclose(costs[:, 1:] - costs[:, :1], scores[:, 1:] - scores[:, :1])
    inverse = np.linalg.inv(router.covariance())
    away = texts - router.tasks["b"]["means"].numpy()[0]
    np.testing.assert_allclose(costs[:, 1], np.einsum("nd,de,ne->n", away, inverse, away))


def test_a_new_task_changes_nothing_of_an_earlier_one_but_the_covariance() -> None:
    config = RouterConfig(kind="mahalanobis")
    router, alone = Mahalanobis(config), Mahalanobis(config)
    both = {name: rows(name, 3) for name in ("a", "b")}
    router.learn("a", parts(*both["a"]))
    means, before = router.tasks["a"]["means"].clone(), router.covariance()
    router.learn("b", parts(*both["b"]))
    assert torch.equal(router.tasks["a"]["means"], means)
    assert not np.allclose(router.covariance(), before)
    alone.learn("b", parts(*both["b"]))
    assert torch.equal(router.tasks["b"]["means"], alone.tasks["b"]["means"])
    assert int(router.shared["rows"]) == 72


def test_equal_rows_have_no_covariance_and_take_the_identity() -> None:
    router = Mahalanobis(RouterConfig(kind="mahalanobis"))
    router.learn("a", [(np.ones((2, 3)), np.zeros(2, np.int64))])
    np.testing.assert_array_equal(router.covariance(), np.eye(3))
    np.testing.assert_allclose(router.costs(np.zeros((1, 3)), ["a"]), [[3.0]])


def test_entropy_is_a_fraction_of_the_most_that_there_can_be() -> None:
    router = Entropy(RouterConfig(kind="entropy"))
    np.testing.assert_allclose(router.cost(np.zeros((1, 7))), [1.0])
    np.testing.assert_allclose(router.cost(np.array([[900.0, 0.0]])), [0.0], atol=1e-12)
    quarter = np.log([[0.25, 0.75]])
    expected = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    np.testing.assert_allclose(router.cost(quarter), [expected])
    logits = numpy_generator(0, "logits").normal(scale=3, size=(20, 4))
    theirs = torch.distributions.Categorical(logits=torch.from_numpy(logits)).entropy().numpy()
    np.testing.assert_allclose(router.cost(logits), theirs / np.log(4))


def test_confidence_is_the_largest_probability_or_the_energy() -> None:
    logits = numpy_generator(0, "logits").normal(scale=3, size=(20, 4))
    tensor = torch.from_numpy(logits)
    softmax = Confidence(RouterConfig(kind="confidence")).cost(logits)
    np.testing.assert_allclose(softmax, -tensor.softmax(1).amax(1).numpy())
    energy = Confidence(RouterConfig(kind="confidence", confidence="energy")).cost(logits)
    np.testing.assert_allclose(energy, -tensor.logsumexp(1).numpy())
    np.testing.assert_allclose(
        Confidence(RouterConfig(kind="confidence", confidence="energy")).cost(np.zeros((1, 3))),
        [-np.log(3)],
    )


def test_a_function_of_ones_own_judges_no_answers_of_other_tasks() -> None:
    values = {"title": "made", "kind": "span", "source": "made", "metric": "my_module:judge"}
    spec = TaskSpec(**values)
    with pytest.raises(UserError, match="'my_module:judge' of task 'mine' cannot judge answers"):
        RouterConfig().check({"mine": spec})
    RouterConfig().check({"mine": replace(spec, metric="exact_match")})
