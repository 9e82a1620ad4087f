"""O-LoRA: its equations against numpy in float64, what it trains, what serves."""

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from stream.data.batching import collate
from stream.data.task import Task
from stream.learners.olora import OLora
from stream.models.modules.low_rank import LowRankByTask
from stream.training.loop import fit
from tests.builders import SHORT, Stream, tiny_encoder


def pairs(run: Stream, task: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(A, B) of every changed map, float64: A [r, D_in] reads the input, B [D_out, r]."""
    found = [m for m in run.model.encoder.modules() if isinstance(m, LowRankByTask)]
    return [
        tuple(w.weight.detach().double().numpy() for w in (m.pair(task).down, m.pair(task).up))
        for m in found
    ]


def half_learned(three_tasks: list[Task], **settings: Any) -> Stream:
    """Two tasks learned; the third one begun."""
    run = Stream(OLora(**settings), three_tasks)
    for task in three_tasks[:2]:
        fit(run.learner, task, SHORT)
    run.learner.start(three_tasks[2])
    run.model.eval()
    return run


def test_the_overlap_is_equation_8(three_tasks: list[Task]) -> None:
    run = half_learned(three_tasks, rank=3)
    expected = sum(
        ((earlier @ new.T) ** 2).sum()
        for name in ("a", "b")
        for (earlier, _), (new, _) in zip(pairs(run, name), pairs(run, "c"), strict=True)
    )
    np.testing.assert_allclose(run.learner.overlap().item(), expected, rtol=1e-5)
    assert expected > 0


def test_the_loss_adds_it_times_its_coefficient(three_tasks: list[Task]) -> None:
    task = three_tasks[2]
    batch = collate([(task, task.split("train"), np.arange(8))], 0)
    run = half_learned(three_tasks, orthogonality=0.5)
    whole, overlap = run.learner.loss(batch).item(), run.learner.overlap().item()
    run.learner.orthogonality = 0.0
    np.testing.assert_allclose(whole - run.learner.loss(batch).item(), 0.5 * overlap, rtol=1e-4)


@pytest.mark.parametrize("learning", [False, True])
def test_all_pairs_serve_every_task(*, learning: bool, three_tasks: list[Task]) -> None:
    """The encoder with all changes merged into its weights gives the same vectors.

    That of a task that is still being learned is among them: a probe sees what it does to others.
    """
    run = half_learned(three_tasks, rank=4, alpha=6.0)
    with torch.no_grad():
        for name, parameter in run.model.encoder.named_parameters():
            if ".olora.c.up" in name:
                parameter.fill_(0.05)
    if not learning:
        run.learner.finish(three_tasks[2])
    merged = tiny_encoder().eval()
    body: Any = merged.body
    maps = [
        linear
        for layer in body.encoder.layer
        for linear in (layer.attention.self.query, layer.attention.self.value)
    ]
    with torch.no_grad():
        for name in ("a", "b", "c"):
            for linear, (a, b) in zip(maps, pairs(run, name), strict=True):
                linear.weight += torch.from_numpy(6.0 / 4 * b @ a).float()
    task = three_tasks[0]
    batch = collate([(task, task.split("test"), np.arange(8))], 0)
    with torch.no_grad(), run.learner.serving(task):
        run.model.eval()
        torch.testing.assert_close(run.model.encoder(batch), merged(batch), rtol=1e-4, atol=1e-5)
    served = run.learner.served_state("a")
    assert sum(".olora." in name for name in served) == 3 * 2 * 4  # tasks x (A, B) x maps


def test_earlier_pairs_stay_and_the_base_too(three_tasks: list[Task]) -> None:
    run = half_learned(three_tasks)
    before = {n: p.detach().clone() for n, p in run.model.encoder.named_parameters()}
    fit(run.learner, three_tasks[2], SHORT)
    now = dict(run.model.encoder.named_parameters())
    changed = {n for n, tensor in before.items() if not torch.equal(tensor, now[n])}
    assert changed
    assert all(".olora.c." in name for name in changed)


def test_a_large_coefficient_keeps_subspaces_apart(three_tasks: list[Task]) -> None:
    found = {}
    for strength in (0.0, 100.0):
        run = Stream(OLora(orthogonality=strength), three_tasks[:2])
        run.learn(0)
        schedule = dataclasses.replace(SHORT, epochs=20)
        fit(run.learner, three_tasks[1], schedule)
        found[strength] = run.learner.overlap().item()
    assert found[100.0] < 0.5 * found[0.0]


def test_a_stream_of_one_task_is_lora(three_tasks: list[Task]) -> None:
    """Nothing is there to be orthogonal to: the coefficient has no influence."""
    digests = []
    for strength in (0.0, 3.0):
        run = Stream(OLora(orthogonality=strength), three_tasks[:1])
        run.finish()
        digests.append(run.last_digests())
    assert digests[0] == digests[1]
    assert copy.deepcopy(run.learner.active) is run.learner.active
