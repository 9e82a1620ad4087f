"""Batches: every row once, padded right, in an order that depends on names alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stream.data.batching import collate, epoch_order, evaluation_batches, training_rows
from stream.data.task import Split, Task
from stream.models.losses import batch_loss
from stream.models.task_model import TaskModel
from stream.seeding import derive_seed
from tests.builders import made_spec, made_task, tiny_encoder

LENGTHS = st.lists(st.integers(1, 128), min_size=1, max_size=300)


@given(LENGTHS, st.integers(1, 40))
def test_an_epoch_holds_every_row_once_in_full_batches(lengths: list[int], size: int) -> None:
    batches = epoch_order(np.array(lengths), size, np.random.default_rng(0))
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // size)
    assert sorted(len(b) for b in batches)[1:] == [size] * (len(batches) - 1)


def test_bucketing_pads_less_than_a_plain_shuffle() -> None:
    lengths = np.random.default_rng(0).integers(4, 128, 2000)

    def padded(batches: list[np.ndarray]) -> int:
        return sum(len(b) * int(lengths[b].max()) for b in batches)

    plain = np.random.default_rng(1).permutation(2000)
    bucketed = epoch_order(lengths, 32, np.random.default_rng(1))
    assert padded(bucketed) < 0.65 * padded([plain[i : i + 32] for i in range(0, 2000, 32)])


def test_order_is_a_function_of_seed_name_and_epoch() -> None:
    def order(name: str, seed: int, epoch: int) -> list[list[int]]:
        task = Task(name, made_spec(), made_task("same").splits, {})
        return [list(rows) for rows in training_rows(task, 8, seed, epoch)]

    assert order("a", 0, 0) == order("a", 0, 0)
    assert (
        len({str(order(*key)) for key in [("a", 0, 0), ("b", 0, 0), ("a", 1, 0), ("a", 0, 1)]}) == 4
    )


def test_derived_seeds_do_not_run_together() -> None:
    """(1, "2") and (12, "") must differ, as must names that join to the same text."""
    seeds = [
        derive_seed(1, "2"),
        derive_seed(12, ""),
        derive_seed(0, "a", "b"),
        derive_seed(0, "ab"),
    ]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)


@pytest.fixture
def pair() -> Split:
    """Two rows: 3 + 2 and 1 + 8 tokens."""
    tokens = np.array([2, 11, 3, 12, 3, 2, *range(20, 28)], np.int32)
    return Split(tokens, np.array([0, 5, 14]), np.array([3, 1], np.int32), np.array([1, 0]))


def test_collate_pads_masks_and_marks_the_second_text(pair: Split) -> None:
    task = Task("p", made_spec(kind="pair"), {"train": pair}, {})
    batch = collate([(task, pair, np.array([1, 0]))], pad_id=9)
    assert batch.input_ids.shape == (2, 16)  # 9 tokens, rounded up to a multiple of 8
    assert batch.input_ids[1].tolist() == [2, 11, 3, 12, 3] + [9] * 11
    assert batch.attention_mask.sum(1).tolist() == [9, 5]
    assert batch.token_type_ids[1].tolist() == [0, 0, 0, 1, 1] + [0] * 11
    assert batch.token_type_ids[0].tolist() == [0] + [1] * 8 + [0] * 7
    assert batch.labels[0].tolist() == [0, 1]


def test_collate_keeps_tasks_apart() -> None:
    a, b = made_task("a", 2), made_task("b", None)
    rows = np.array([0, 1, 2])
    batch = collate([(a, a.split("train"), rows), (b, b.split("test"), rows[:2])], 0)
    assert [(p.task.name, p.start, p.stop) for p in batch.parts] == [("a", 0, 3), ("b", 3, 5)]
    assert batch.labels[1].tolist() == b.split("test").labels[:2].tolist()


def test_parts_alone_are_the_batch_without_needless_padding() -> None:
    a, b = made_task("a", 2), made_task("b", None)
    long, short = a.split("train"), b.split("test")
    most = np.argsort(-long.lengths)[:2]
    least = np.argsort(short.lengths)[:3]
    batch = collate([(a, long, most), (b, short, least)], 0)
    for index, (task, split, rows) in enumerate([(a, long, most), (b, short, least)]):
        alone, expected = batch.only(slice(index, index + 1)), collate([(task, split, rows)], 0)
        assert torch.equal(alone.input_ids, expected.input_ids)
        assert torch.equal(alone.attention_mask, expected.attention_mask)
        assert torch.equal(alone.token_type_ids, expected.token_type_ids)
        assert alone.parts == expected.parts
        assert torch.equal(alone.labels[0], expected.labels[0])
    assert batch.only(slice(0, 2)).parts == batch.parts


def test_evaluation_sees_every_row_once_within_the_token_budget() -> None:
    task = made_task("a", rows=50)
    split = task.split("test")
    rows, widths = [], []
    for ((owner, indices),), batch in evaluation_batches([(task, split)], 0, batch_tokens=64):
        assert owner == 0
        rows.extend(indices)
        widths.append(batch.input_ids.shape[1])
        assert batch.input_ids.numel() <= 64
        assert batch.attention_mask.sum(1).tolist() == split.lengths[indices].tolist()
    assert sorted(rows) == list(range(50))
    assert widths == sorted(widths, reverse=True)


def test_evaluation_fills_its_batches() -> None:
    """One more row would be more tokens than allowed."""
    task = made_task("a", rows=50)
    batches = [
        batch for _, batch in evaluation_batches([(task, task.split("test"))], 0, batch_tokens=100)
    ]
    assert len(batches) > 3
    assert all((len(batch) + 1) * batch.width > 100 for batch in batches[:-1])


def test_rows_of_sixteen_batches_are_sorted_by_length_together() -> None:
    lengths = np.random.default_rng(0).permutation(16 * 4) + 1
    batches = epoch_order(lengths, 4, np.random.default_rng(1))
    spans = sorted((int(lengths[b].min()), int(lengths[b].max())) for b in batches)
    assert spans == [(first, first + 3) for first in range(1, 16 * 4, 4)]
    assert spans != [(int(lengths[b].min()), int(lengths[b].max())) for b in batches]


def test_what_a_graph_reads_is_the_next_batch_alone() -> None:
    """A narrower batch follows a wider one: of that no token is left."""
    task, split = (task := made_task("a")), task.split("train")
    by_length = np.argsort(split.lengths)
    short, long = (collate([(task, split, rows)], 0) for rows in (by_length[:4], by_length[-4:]))
    assert short.width < long.width
    inputs = long.padded(len(long), long.width + 8)
    inputs.copy_from(short)
    assert torch.equal(inputs.attention_mask.sum(1), short.attention_mask.sum(1))
    model = TaskModel(tiny_encoder(), 0).eval()
    model.add_head(task)
    torch.testing.assert_close(model(inputs)[0], model(short)[0])


def test_neighbouring_tasks_of_a_batch_have_the_width_of_the_longest() -> None:
    task, split = (task := made_task("a")), task.split("train")
    by_length = np.argsort(split.lengths)
    pieces = [(task, split, rows) for rows in (by_length[-2:], by_length[:2], by_length[2:4])]
    for chosen in (slice(0, 2), slice(1, 3)):
        alone, expected = collate(pieces, 0).only(chosen), collate(pieces[chosen], 0)
        assert torch.equal(alone.input_ids, expected.input_ids)


def test_several_tasks_share_batches() -> None:
    chosen = [(task, task.split("test")) for task in (made_task("a", 2), made_task("b", None))]
    seen: list[list[int]] = [[], []]
    shared = 0
    for parts, batch in evaluation_batches(chosen, 0, batch_tokens=64):
        assert batch.input_ids.numel() <= 64
        shared += len(parts) > 1
        for (owner, rows), part, labels in zip(parts, batch.parts, batch.labels, strict=True):
            task, split = chosen[owner]
            assert part.task is task
            assert labels.tolist() == split.labels[rows].tolist()
            lengths = batch.attention_mask[part.start : part.stop].sum(1).tolist()
            assert lengths == split.lengths[rows].tolist()
            seen[owner].extend(rows)
    assert shared
    assert [sorted(rows) for rows in seen] == [list(range(24))] * 2


def test_take_copies_the_rows_asked_for() -> None:
    split = made_task("a").split("train")
    taken = split.select(np.array([5, 2]))
    assert taken.lengths.tolist() == split.lengths[[5, 2]].tolist()
    start, stop = split.offsets[2], split.offsets[3]
    assert taken.token_ids[taken.offsets[1] :].tolist() == split.token_ids[start:stop].tolist()
    assert len(split.select(np.array([], np.int64))) == 0


@pytest.mark.parametrize("outputs", [3, None])
def test_rows_that_fill_up_change_no_loss_and_no_gradient(outputs: int | None) -> None:
    task = made_task("a", outputs, rows=24)
    model = TaskModel(tiny_encoder(), 0, dropout=0.0).eval()
    model.add_head(task)
    model.head("a").requires_grad_(requires_grad=True)
    whole, few = (collate([(task, task.split("train"), np.arange(n))], 0) for n in (8, 3))
    filled = whole.padded(8, 24)
    filled.copy_from(few)  # after a whole one, whose last rows are still there
    found = []
    for batch in (few, few.padded(8, 16), filled):
        model.zero_grad()
        loss = batch_loss(batch, model(batch))
        loss.backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        found.append((loss, gradients))
    assert len(filled) == 8
    assert len(found[0][1]) > 10
    for loss, gradients in found[1:]:
        torch.testing.assert_close(loss, found[0][0])
        torch.testing.assert_close(gradients, found[0][1], rtol=1e-4, atol=1e-6)
