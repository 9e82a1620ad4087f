"""Replay: budgets, sampling weights, and what is learned of stored examples."""

import numpy as np
import pytest
import torch

from stream.data.batch import Batch
from stream.data.mixture import Rehearsal
from stream.errors import UserError
from stream.learners._shared.replay_buffer import ReplayBuffer
from stream.learners.replay import Replay
from stream.learners.workload import Epoch
from stream.models.losses import batch_loss
from tests.builders import SHORT, Stream, made_task


def weights(sampling: str, epoch: int) -> np.ndarray:
    run = Stream(Replay(sampling=sampling), [])
    run.learner.learned = [made_task("a", rows=10), made_task("b", rows=40)]
    return run.learner._weights(Epoch(epoch, 5, SHORT))


@pytest.mark.parametrize(
    ("sampling", "epoch", "alpha"),
    [
        ("uniform", 0, 0.0),
        ("proportional", 0, 1.0),
        ("sqrt", 0, 0.5),
        ("annealed", 0, 1.0),  # alpha = 1 - 0.8 (e - 1) / (E - 1), e from 1
        ("annealed", 1, 0.8),
        ("annealed", 4, 0.2),
    ],
)
def test_sampling_weights(sampling: str, epoch: int, alpha: float) -> None:
    raw = np.array([10.0, 40.0]) ** alpha
    assert weights(sampling, epoch) == pytest.approx(raw / raw.sum())


def test_annealing_over_one_epoch_is_proportional() -> None:
    run = Stream(Replay(sampling="annealed"), [])
    run.learner.learned = [made_task("a", rows=10), made_task("b", rows=30)]
    assert run.learner._weights(Epoch(0, 1, SHORT)) == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize(("budget", "kept"), [(7, 7), (100, 24), (None, 24)])
def test_budget(budget: int | None, kept: int) -> None:
    memory = ReplayBuffer(budget, seed=0)
    task = made_task("a", rows=24)
    memory.add(task)
    ((_, rows, drawn),) = memory.draw(1000, [1.0], np.random.default_rng(0))
    assert memory.examples == kept
    assert sorted(drawn) == list(range(kept))  # asked for more than there is: all, none twice
    originals = {tuple(task.split("train").select(np.array([i])).token_ids) for i in range(24)}
    assert {tuple(rows.select(np.array([i])).token_ids) for i in range(kept)} <= originals
    expected = sum(
        r.nbytes for r in (rows.token_ids, rows.offsets, rows.first_lengths, rows.labels)
    )
    assert memory.nbytes == expected


def test_draws_follow_the_weights() -> None:
    memory = ReplayBuffer(50, seed=0)
    for name in "ab":
        memory.add(made_task(name, rows=50))
    generator = np.random.default_rng(0)
    drawn = {"a": 0, "b": 0}
    for _ in range(300):
        for task, _, rows in memory.draw(10, [0.2, 0.8], generator):
            drawn[task.name] += len(rows)
    assert drawn["b"] / 3000 == pytest.approx(0.8, abs=0.03)


def begun_third(replayed: int) -> tuple[Stream, Batch]:
    """A third task begun, behind a regression; its first batch with ``replayed`` rows behind it."""
    tasks = [made_task("a", 2), made_task("b", 5), made_task("c", None)]
    run = Stream(Replay(replayed=replayed), [tasks[2], tasks[1], tasks[0]])
    run.learn(0)
    run.learn(1)
    run.learner.start(tasks[0])
    run.model.eval()
    memory = run.learner.buffer
    return run, next(memory.mixed(tasks[0], Epoch(0, 1, SHORT), 0, replayed))


def test_a_rehearsal_trains_the_heads_of_its_tasks_only() -> None:
    run, batch = begun_third(replayed=1)
    present = {part.task.name for part in batch.parts}
    assert len(present) == 2
    assert batch.parts[0].task.name == "a"
    run.model.zero_grad()
    run.learner.loss(Rehearsal.of(batch, run.learner.learned)).backward()
    reached = {
        name
        for name, head in run.model.heads.items()
        if head.weight.grad is not None and head.weight.grad.any()
    }
    assert reached == present


def test_loss_is_the_mean_over_all_examples() -> None:
    run, batch = begun_third(replayed=9)
    assert [part.task.name for part in batch.parts] == ["a", "c", "b"]
    new, scores, classes = run.model(batch)
    squares = ((scores[:, 0] - batch.labels[1]) ** 2).double().tolist()
    entropies = []
    for logits, labels in ((new, batch.labels[0]), (classes, batch.labels[2])):
        logs = (-torch.log_softmax(logits.double(), 1)).tolist()
        entropies += [logs[i][label] for i, label in enumerate(labels.tolist())]
    rehearsal = Rehearsal.of(batch, run.learner.learned)
    assert len(rehearsal) == len(batch) == len(squares) + len(entropies)
    found = run.learner.loss(rehearsal)
    assert found.item() == pytest.approx(np.mean(squares + entropies), rel=1e-5)


def test_a_rehearsal_has_the_gradients_of_its_parts() -> None:
    run, batch = begun_third(replayed=9)
    gradients = []
    for loss in (
        run.learner.loss(Rehearsal.of(batch, run.learner.learned)),
        batch_loss(batch, run.model(batch)),
    ):
        run.model.zero_grad()
        loss.backward()
        gradients.append(
            {n: p.grad.clone() for n, p in run.model.named_parameters() if p.grad is not None}
        )
    mixed, by_part = gradients
    assert mixed.keys() == by_part.keys()
    for name, gradient in by_part.items():
        torch.testing.assert_close(mixed[name], gradient, rtol=1e-3, atol=1e-6)


def test_which_tasks_are_remembered_changes_no_shape() -> None:
    """So that one captured step serves every draw."""
    run, _ = begun_third(replayed=3)
    task = run.tasks[2]
    shapes, tasks = set(), set()
    for epoch in range(4):
        for batch in run.learner.training_batches(task, Epoch(epoch, 4, SHORT)):
            new, remembered = batch.blocks
            shapes.add((len(remembered), *(label.shape for label in remembered.labels)))
            tasks.add(tuple(remembered.labels[0].tolist()))
            assert not isinstance(remembered, Batch)
            assert isinstance(new, Batch)
    assert len(shapes) == 1
    assert len(tasks) > 2


@pytest.mark.parametrize("bad", [{"budget": 0}, {"budget": "some"}, {"replayed": 0}])
def test_bad_settings(bad: dict) -> None:
    with pytest.raises(UserError, match="must be at least 1"):
        Replay(**bad)
    with pytest.raises(UserError, match="'proportional'"):
        Replay(sampling="proportionl")
