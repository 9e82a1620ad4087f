"""Subsamples nest, keep the shares of classes, and do not depend on the order of the rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream.data.prepare.samples import num_short, subsample
from stream.data.task import Rows


def made_rows(labels: list[int]) -> Rows:
    return Rows(tuple((f"text number {i}",) for i in range(len(labels))), np.array(labels))


LABELS = st.lists(st.integers(0, 3), min_size=1, max_size=80)


@given(LABELS, st.integers(1, 80), st.integers(1, 80))
def test_smaller_samples_lie_within_larger_ones(labels: list[int], a: int, b: int) -> None:
    rows = made_rows(labels)
    small, large = (subsample(rows, n, 4) for n in sorted((a, b)))
    assert set(small.texts) <= set(large.texts)
    assert len(large) == min(max(a, b), len(labels))


@given(LABELS, st.integers(1, 80))
def test_classes_keep_their_share_to_within_a_row(labels: list[int], limit: int) -> None:
    taken = subsample(made_rows(labels), limit, 4).labels
    share = min(limit / len(labels), 1)
    for label in range(4):
        assert abs((taken == label).sum() - labels.count(label) * share) <= 1 + 1e-9


def test_labels_follow_their_texts_and_the_order_stays() -> None:
    rows = made_rows([i % 3 for i in range(30)])
    taken = subsample(rows, 10, 3)
    numbers = [int(text.rpartition(" ")[2]) for (text,) in taken.texts]
    assert numbers == sorted(numbers)
    assert taken.labels.tolist() == [n % 3 for n in numbers]


def test_order_of_the_rows_does_not_matter() -> None:
    rows = made_rows([i % 3 for i in range(30)])
    shuffled = rows.select(np.random.default_rng(0).permutation(30))
    assert set(subsample(rows, 10, 3).texts) == set(subsample(shuffled, 10, 3).texts)


def test_regression_is_one_stratum() -> None:
    rows = Rows(tuple((str(i),) for i in range(20)), np.linspace(0, 5, 20))
    assert len(subsample(rows, 7, None)) == 7
    assert subsample(rows, None, None) is rows


@given(LABELS, st.integers(1, 30), st.integers(1, 30), st.none() | st.integers(0, 2**63 - 1))
def test_each_class_gives_as_many_rows(
    labels: list[int], few: int, many: int, seed: int | None
) -> None:
    rows = made_rows(labels)
    few, many = sorted((few, many))
    small, large = (subsample(rows, None, 4, n, seed) for n in (few, many))
    sizes = np.bincount(labels, minlength=4)
    assert np.bincount(small.labels, minlength=4).tolist() == np.minimum(sizes, few).tolist()
    assert set(small.texts) <= set(large.texts)
    assert num_short(rows, 4, few) == ((sizes > 0) & (sizes < few)).sum()
    both = subsample(rows, 10, 4, few, seed)
    assert set(both.texts) <= set(small.texts)
    assert len(both) == min(10, len(small))


def test_a_sample_depends_on_its_own_rows_and_the_seed_alone() -> None:
    """Rows that others add or leave out do not change which of the rest come first."""
    rows = made_rows([i % 3 for i in range(60)])
    shuffled = rows.select(np.random.default_rng(0).permutation(60))
    found = [set(subsample(rows, None, 3, 5, seed).texts) for seed in (None, 0, 1, 2)]
    for seed, texts in zip((None, 0, 1, 2), found, strict=True):
        assert set(subsample(shuffled, None, 3, 5, seed).texts) == texts
        kept = np.array([i for i, text in enumerate(rows.texts) if text in texts or i % 2])
        assert set(subsample(rows.select(kept), None, 3, 5, seed).texts) == texts
    assert len(set(map(frozenset, found))) == 4
    all_seeds = [subsample(rows, None, 3, 5, seed).texts for seed in range(200)]
    counts = [sum(text in sample for sample in all_seeds) for text in rows.texts]
    assert min(counts) > 25  # each row is in a quarter of the samples: 50 of 200, sd 6
    assert max(counts) < 80


def test_a_task_of_scores_counts_as_one_class() -> None:
    rows = Rows(tuple((str(i),) for i in range(20)), np.linspace(0, 5, 20))
    assert len(subsample(rows, None, None, 7)) == 7
    assert num_short(rows, None, 30) == 1
