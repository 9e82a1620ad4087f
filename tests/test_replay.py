"""Replay: budgets, sampling weights, and who learns from a mixed batch."""

import numpy as np
import pytest

from stream.errors import UserError
from stream.learners.replay import Replay
from stream.memory import ReplayMemory
from stream.schedule import Epoch
from tests.conftest import SHORT, Stream, made_task


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
    memory = ReplayMemory(budget, seed=0)
    task = made_task("a", rows=24)
    memory.remember(task)
    ((_, rows, drawn),) = memory.draw(1000, [1.0], np.random.default_rng(0))
    assert memory.examples == kept
    assert sorted(drawn) == list(range(kept))  # asked for more than there is: all, none twice
    originals = {tuple(task.split("train").take(np.array([i])).token_ids) for i in range(24)}
    assert {tuple(rows.take(np.array([i])).token_ids) for i in range(kept)} <= originals
    expected = sum(
        r.nbytes for r in (rows.token_ids, rows.offsets, rows.first_lengths, rows.labels)
    )
    assert memory.nbytes == expected


def test_draws_follow_the_weights() -> None:
    memory = ReplayMemory(50, seed=0)
    for name in "ab":
        memory.remember(made_task(name, rows=50))
    generator = np.random.default_rng(0)
    drawn = {"a": 0, "b": 0}
    for _ in range(300):
        for task, _, rows in memory.draw(10, [0.2, 0.8], generator):
            drawn[task.name] += len(rows)
    assert drawn["b"] / 3000 == pytest.approx(0.8, abs=0.03)


def test_mixed_batches_train_the_heads_of_their_tasks_only() -> None:
    tasks = [made_task("a", 2), made_task("b", 5), made_task("c", None)]
    run = Stream(Replay(replayed=1), tasks)
    run.learn(0)
    run.learn(1)
    run.learner.begin_task(tasks[2])
    batch = next(run.learner.training_batches(tasks[2], Epoch(0, 1, SHORT)))
    present = {part.task.name for part in batch.parts}
    assert len(present) == 2
    assert batch.parts[0].task.name == "c"
    run.model.zero_grad()
    run.learner.loss(batch).backward()
    reached = {
        name
        for name, head in run.model.heads.items()
        if head.weight.grad is not None and head.weight.grad.any()
    }
    assert reached == present


def test_loss_is_the_mean_over_all_examples() -> None:
    import torch

    tasks = [made_task("a", 2), made_task("b", None)]
    run = Stream(Replay(replayed=5), tasks)
    run.learn(0)
    run.learner.begin_task(tasks[1])
    run.model.eval()
    batch = next(run.learner.training_batches(tasks[1], Epoch(0, 1, SHORT)))
    scores, classes = run.model(batch)
    assert batch.parts[0].task.name == "b"
    squares = ((scores[:, 0] - batch.labels[0]) ** 2).double().tolist()
    logs = (-torch.log_softmax(classes.double(), 1)).tolist()
    entropies = [logs[i][label] for i, label in enumerate(batch.labels[1].tolist())]
    expected = np.mean(squares + entropies)
    assert run.learner.loss(batch).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("bad", [{"budget": 0}, {"budget": "some"}, {"replayed": 0}])
def test_bad_settings(bad: dict) -> None:
    with pytest.raises(UserError, match="must be at least 1"):
        Replay(**bad)
    with pytest.raises(UserError, match="'proportional'"):
        Replay(sampling="proportionl")
