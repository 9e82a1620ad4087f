"""Slices of batches: every example is learned once, and means are those of the whole."""

import numpy as np
import pytest
import torch

from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.mixture import Rehearsal
from stream.distributed.slices import Slice
from tests.builders import made_task

TASKS = [made_task("a", 2), made_task("b", 5), made_task("c", None)]


def batch_of(*counts: int) -> Batch:
    """The first rows of so many of the tasks."""
    pairs = zip(TASKS, counts, strict=False)
    return collate([(t, t.split("train"), np.arange(count)) for t, count in pairs], 0)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("rows", [1, 2, 7, 8, 64])
def test_every_row_belongs_to_one_rank(rows: int, ranks: int) -> None:
    slices = [Slice.of(rows, rank, ranks) for rank in range(ranks)]
    assert [row for mine in slices for row in mine.rows[: mine.own]] == list(range(rows))
    assert len({len(mine.rows) for mine in slices}) == 1


@pytest.mark.parametrize("counts", [(7,), (8,), (5, 1), (4, 3, 1)])
def test_the_mean_over_slices_is_that_of_the_whole(counts: tuple[int, ...]) -> None:
    whole = batch_of(*counts)
    values = whole.input_ids.sum(1).double()
    slices = [whole.sliced(rank, 3) for rank in range(3)]
    assert all(len(mine) == len(slices[0]) for mine in slices)
    means = [mine.mean(mine.input_ids.sum(1).double()) for mine in slices]
    torch.testing.assert_close(torch.stack(means).mean(), values.mean())
    first = [mine.only(slice(0, 1)) for mine in slices]
    means = [mine.mean(mine.input_ids.sum(1).double()) for mine in first]
    torch.testing.assert_close(torch.stack(means).mean(), values[: counts[0]].mean())
    for mine in slices:
        for part, labels, all_labels in zip(mine.parts, mine.labels, whole.labels, strict=True):
            assert part.slice is not None
            assert (labels[part.slice.own :] < 0).all() or labels[part.slice.own :].isnan().all()
            own = torch.from_numpy(part.of(all_labels.numpy()))
            assert torch.equal(labels[: part.slice.own], own[: part.slice.own])


def test_the_mean_over_slices_of_rehearsed_rows_is_that_of_the_whole() -> None:
    """They are no `Batch`: all tasks' rows side by side, of which none is a part of its own."""
    mixture = Rehearsal.of(batch_of(2, 4, 3), TASKS).remembered
    assert mixture is not None
    assert len(mixture) == 7
    slices = [mixture.sliced(rank, 3) for rank in range(3)]
    means = [mine.mean(mine.input_ids.sum(1).double()) for mine in slices]
    expected = mixture.input_ids.sum(1).double().mean()
    torch.testing.assert_close(torch.stack(means).mean(), expected)


def test_a_captured_batch_takes_slices_of_other_sizes() -> None:
    """What a graph reads is filled in place: examples, who counts, and the labels of all ranks."""
    batch = Rehearsal.of(batch_of(8, 4), TASKS)
    other = Rehearsal.of(batch_of(5, 3), TASKS)
    inputs = batch.sliced(0, 2)
    inputs = inputs.with_blocks(block.padded(len(block), 16) for block in inputs.blocks)
    wanted = other.sliced(0, 2)
    for mine, theirs in zip(inputs.blocks, wanted.blocks, strict=True):
        mine.copy_from(theirs)
        values = torch.arange(len(mine), dtype=torch.float32)
        torch.testing.assert_close(mine.mean(values), theirs.mean(values[: len(theirs)]))
    assert float(inputs.size) == wanted.size == (5 + 3) / 2
    (labels,) = inputs.all_labels
    assert torch.equal(labels[:5], other.labels[0])
    assert (labels[5:] < 0).all()
