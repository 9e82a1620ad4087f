"""What a buffer keeps: by class, herded, or as a reservoir; and that it comes back as it was."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, hypergeom

from stream.data.batching import collate
from stream.data.task import Task
from stream.errors import UserError
from stream.learners._shared.replay_buffer import ReplayBuffer
from stream.learners._shared.selection import Reservoir, even_quotas, herded
from stream.learners.base import Learner
from stream.learners.derpp import Derpp
from stream.learners.replay import Replay
from stream.seeding import numpy_generator
from tests.builders import Stream, made_task
from tests.contract.from_disk import check_goes_on, evidence


def uneven_task(*counts: int) -> Task:
    """A task with ``counts`` training rows of its classes, mixed."""
    task = made_task("a", len(counts), sum(counts))
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    train = replace(task.split("train"), labels=labels)
    return replace(task, splits={**task.splits, "train": train})


@pytest.mark.parametrize(
    ("sizes", "budget", "expected"),
    [
        ([30, 30, 30], 12, [4, 4, 4]),
        ([2, 30, 30], 12, [2, 5, 5]),
        ([2, 3, 30], 12, [2, 3, 7]),
        ([2, 3, 4], 12, [2, 3, 4]),
        ([9, 9, 9], 2, [0, 1, 1]),
        ([1, 9, 9], 12, [1, 5, 6]),
    ],
)
def test_quotas_are_as_even_as_sizes_allow(
    sizes: list[int], budget: int, expected: list[int]
) -> None:
    quotas = even_quotas(np.array(sizes), budget, np.random.default_rng(0))
    assert sorted(quotas) == expected
    assert all(quotas <= sizes)


@pytest.mark.parametrize("selection", ["uniform", "herding"])
def test_classes_have_as_many_rows_each(selection: str) -> None:
    """Of 3, 10 and 27 rows, 12: all 3 of the rare class, and the rest is shared."""
    task = uneven_task(3, 10, 27)
    features = np.random.default_rng(1).normal(size=(40, 4))
    counts = {}
    for balance in ("task", "class"):
        buffer = ReplayBuffer(12, 0, balance, selection, lambda task: features)
        buffer.add(task)
        counts[balance] = sorted(Counter(buffer.rows_of(task).labels.tolist()).values())
        assert buffer.examples == 12
    assert counts["class"] == [3, 4, 5]
    assert counts["task"] != counts["class"]


def test_scores_have_no_classes() -> None:
    task, kept = made_task("a", None, 40), []
    for balance in ("task", "class"):
        buffer = ReplayBuffer(12, 0, balance)
        buffer.add(task)
        kept.append(buffer.rows_of(task).token_ids.tolist())
    assert kept[0] == kept[1]


# --- herding


def algorithm_4(features: np.ndarray, count: int) -> list[int]:
    """As iCaRL's paper prints it, with every vector and mean scaled to length 1."""

    def unit(vector: np.ndarray) -> np.ndarray:
        return vector / np.sqrt((vector**2).sum())

    phi = [unit(row) for row in features]
    mu = unit(sum(phi) / len(phi))
    chosen: list[int] = []
    for k in range(1, count + 1):
        distances = {
            x: np.sqrt(((mu - unit((phi[x] + sum(phi[p] for p in chosen)) / k)) ** 2).sum())
            for x in range(len(phi))
            if x not in chosen
        }
        chosen.append(min(distances, key=lambda x: distances[x]))
    return chosen


def test_herding_is_algorithm_4() -> None:
    features = np.random.default_rng(0).normal(0.3, 1.0, size=(40, 6))
    assert herded(features, 15).tolist() == algorithm_4(features, 15)
    first = herded(features, 5)
    assert first.tolist() == herded(features, 15)[:5].tolist()
    assert sorted(herded(features, 40)) == list(range(40))


def test_a_learner_herds_each_class_in_the_encoder_of_the_task_s_end() -> None:
    task = uneven_task(7, 20)
    run = Stream(Replay(selection="herding", balance="class", budget=8, lr=1e-2), [task])
    run.learn(0)
    split, encoder = task.split("train"), run.model.encoder.eval()
    with torch.no_grad():  # row by row, without padding
        rows = [encoder(collate([(task, split, np.array([row]))], 0))[0] for row in range(27)]
    features = torch.stack(rows).double().numpy()
    expected = []
    for label in (0, 1):
        (of_class,) = np.nonzero(split.labels == label)
        expected += of_class[algorithm_4(features[of_class], 4)].tolist()
    found = run.learner.stored.rows_of(task)
    assert found.token_ids.tolist() == split.select(np.array(sorted(expected))).token_ids.tolist()


# --- reservoir


def test_every_row_of_the_stream_has_the_same_chance() -> None:
    """8 places, tasks of 5, 20 and 15 rows, 1,000 seeds: as a sample without replacement."""
    sizes, counts = {"a": 5, "b": 20, "c": 15}, Counter[tuple[str, int]]()
    of_first = Counter[int]()
    for seed in range(1000):
        reservoir = Reservoir(8)
        for name, size in sizes.items():
            reservoir.pass_by(name, size, numpy_generator(seed, "reservoir", name))
        kept = [(name, row) for name in sizes for row in reservoir.rows_of(name).tolist()]
        assert len(set(kept)) == len(kept) == 8
        counts.update(kept)
        of_first[sum(name == "a" for name, _ in kept)] += 1
    found = [counts[name, row] for name, size in sizes.items() for row in range(size)]
    assert len(found) == 40
    assert chisquare(found).pvalue > 1e-3
    numbers = [of_first[0], of_first[1], of_first[2], sum(of_first[n] for n in (3, 4, 5))]
    chances = [hypergeom.pmf(n, 40, 5, 8) for n in range(3)]
    expected = 1000 * np.array([*chances, 1 - sum(chances)])
    assert chisquare(numbers, expected).pvalue > 1e-3


def test_a_reservoir_is_one_budget_for_all_tasks() -> None:
    tasks = [made_task("a", 2, 6), made_task("b", 3, 30), made_task("c", None, 20)]
    buffer = ReplayBuffer(10, 0, selection="reservoir")
    for count, task in enumerate(tasks, 1):
        buffer.add(task)
        assert buffer.examples == min(10, sum(len(t.split("train")) for t in tasks[:count]))
        for earlier in tasks[:count]:
            kept = buffer.rows_of(earlier)
            assert len(kept.labels) == len(kept)
    sizes = [len(buffer.rows_of(task)) for task in tasks]
    assert buffer.nbytes == sum(buffer.rows_of(task).nbytes for task in tasks)
    np.testing.assert_allclose(buffer.even(), np.array(sizes) / 10)  # every row alike
    generator = np.random.default_rng(0)
    empty = ReplayBuffer(1, 0, selection="reservoir")
    for task in tasks:
        empty.add(task)
    (left,) = [task.name for task in tasks if len(empty.rows_of(task))]
    for _ in range(5):  # what a task without rows would be drawn for goes to the others
        assert [task.name for task, *_ in empty.draw(4, [1 / 3] * 3, generator)] == [left]
    assert [task.name for task, *_ in empty.of_each(4, generator)] == [left]


def test_stored_logits_stay_with_their_rows(three_tasks: list[Task]) -> None:
    """Rows that leave a reservoir take their logits along."""
    run = Stream(Derpp(selection="reservoir", budget=12), three_tasks)
    learner, logits = run.learner, {}
    for task in three_tasks:
        learner.start(task)
        learner.finish(task)
        kept = learner.stored.rows_of(task)
        if len(kept):
            run.model.eval()
            batch = collate([(task, kept, np.arange(len(kept)))], 0)
            with torch.no_grad():
                (values,) = run.model(batch)
            texts = np.split(kept.token_ids, kept.offsets[1:-1])
            logits |= {tuple(text): value for text, value in zip(texts, values, strict=True)}
            with torch.no_grad():  # the next task's logits of these rows would be others
                run.model.encoder.layers()[0].output.dense.bias.add_(0.5)
    assert learner.stored.examples == 12
    assert len(learner.stored.rows_of(three_tasks[0])) < 12
    for task in three_tasks:
        kept = learner.stored.rows_of(task)
        texts = np.split(kept.token_ids, kept.offsets[1:-1]) if len(kept) else []
        stored = learner.shared_tensors[task.name]
        assert len(stored) == len(kept)
        for text, value in zip(texts, stored, strict=True):
            torch.testing.assert_close(value, logits[tuple(text)], rtol=1e-4, atol=1e-6)


# --- from disk


@pytest.mark.parametrize(
    "make",
    [
        lambda: Replay(selection="herding", balance="class", budget=7, lr=1e-2),
        lambda: Derpp(selection="reservoir", budget=12, lr=1e-2),
    ],
)
def test_goes_on_with_the_same_rows(
    make: Callable[[], Learner], three_tasks: list[Task], tmp_path: Path
) -> None:
    """Herded rows cannot be chosen again: the encoder that chose them is gone."""
    run = Stream(make(), three_tasks)
    run.finish()
    check_goes_on(make, three_tasks, evidence(run, three_tasks), tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"selection": "herding", "budget": "all"}, "selection=herding has no effect"),
        ({"balance": "class", "budget": "all"}, "balance=class has no effect"),
        ({"balance": "class", "selection": "reservoir"}, "balance=class has no effect"),
        ({"selection": "first"}, "herding"),
    ],
)
def test_choices_without_effect_are_refused(given: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Replay(**given)
