"""Subsamples nest, keep the shares of classes, and do not depend on the order of the rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream.data.prepare.samples import subsample
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
