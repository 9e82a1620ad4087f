"""What methods compute with one head for all tasks, each against its equation in float64."""

import copy

import numpy as np
import pytest
import torch

from stream.data.batches import collate
from stream.data.shared_head import with_shared_head
from stream.data.task import SHARED_HEAD, Task
from stream.learners.agem import Agem
from stream.learners.base import Learner
from stream.learners.derpp import Derpp
from stream.learners.ewc import Ewc
from stream.learners.lwf import Lwf
from stream.learners.replay import Replay
from stream.learners.si import Si
from stream.learners.workload import Epoch
from stream.models.losses import batch_loss
from stream.training.loop import fit
from tests.conftest import SHORT, Stream, made_task

HEAD = f"heads.{SHARED_HEAD}.weight"


def begun(learner: Learner, mask: str = "none") -> tuple[Stream, Task]:
    """The learner after two classes, ready to learn three others; without dropout."""
    run = Stream(learner, with_shared_head([made_task("a", 2, 16), made_task("b", 3, 16)], []))
    run.model._mask = mask
    for module in run.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    fit(learner, run.tasks[0], SHORT)
    learner.start(run.tasks[1])
    run.model.train()
    return run, run.tasks[1]


def logits_by_hand(encoder, head, batch) -> torch.Tensor:
    """Logits [B, M] in float64."""
    features = copy.deepcopy(encoder).double().eval()(batch).detach()
    return features @ head.weight.detach().double().T + head.bias.detach().double()


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return logits.exp().sum(1).log() - logits[torch.arange(len(labels)), labels]


def moved(run: Stream) -> None:
    """Move every trained weight a little."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in run.learner.trained_parameters().values():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))


def first_batch(run: Stream, task: Task):
    return next(run.learner.training_batches(task, Epoch(0, 1, SHORT)))


def test_lwf_holds_the_softmax_over_the_classes_met_before() -> None:
    """Li & Hoiem 2016, equation 3 with p = x / T in both softmaxes; one term, not one a task."""
    learner = Lwf(strength=0.7, temperature=3.0)
    run, task = begun(learner)
    encoder, head = copy.deepcopy(run.model.encoder), copy.deepcopy(run.model.head(SHARED_HEAD))
    moved(run)
    batch = collate([(task, task.split("train"), np.arange(6))], 0)
    now = logits_by_hand(run.model.encoder, run.model.head(SHARED_HEAD), batch)
    before = logits_by_hand(encoder, head, batch)
    target = (before[:, :2] / 3).softmax(1)
    held = -(target * (now[:, :2] / 3).log_softmax(1)).sum(1).mean()
    expected = cross_entropy(now, batch.labels[0]).mean() + 0.7 * held
    assert learner.loss(batch).item() == pytest.approx(expected.item(), rel=1e-5)
    learner.loss(batch).backward()
    assert run.model.head(SHARED_HEAD).weight.grad[:2].abs().sum() > 0  # old rows are trained along


@pytest.mark.parametrize("mask", ["none", "task"])
def test_replay_lets_stored_rows_choose_between_all_classes(mask: str) -> None:
    run, task = begun(Replay(replayed=8), mask)
    moved(run)
    batch = first_batch(run, task)
    head = run.model.head(SHARED_HEAD)
    new = logits_by_hand(run.model.encoder, head, batch)
    old = logits_by_hand(run.model.encoder, head, batch.remembered)
    labels = batch.labels[0]
    own = cross_entropy(new, labels) if mask == "none" else cross_entropy(new[:, 2:], labels - 2)
    stored = cross_entropy(old, batch.remembered.labels[1])
    expected = torch.cat([own, stored]).mean()
    assert len(stored) == 8
    assert run.learner.loss(batch).item() == pytest.approx(expected.item(), rel=1e-5)


def test_derpp_compares_logits_over_the_classes_that_were_met() -> None:
    """Buzzega et al. 2020, equation 6, with logits of two classes although five are met now."""
    learner = Derpp(replayed=4, alpha=0.7, beta=0.3)
    run, task = begun(learner)
    moved(run)
    batch = first_batch(run, task)
    head = run.model.head(SHARED_HEAD)
    parts = [batch.only(slice(i, i + 1)) for i in range(3)]
    logits = [logits_by_hand(run.model.encoder, head, part) for part in parts]
    rows = learner._dark[0][2]
    stored = learner.shared_tensors["a"][rows].double()
    assert stored.shape == (4, 2)
    expected = cross_entropy(logits[0], batch.labels[0]).mean()
    expected += 0.7 * ((logits[1][:, :2] - stored) ** 2).mean()
    expected += 0.3 * cross_entropy(logits[2], batch.labels[2]).mean()
    assert learner.loss(batch).item() == pytest.approx(expected.item(), rel=1e-5)


def test_ewc_holds_the_rows_of_the_head_that_were_met() -> None:
    """The Fisher information of the head is the mean of squared gradients, (p - y) x."""
    learner = Ewc(strength=2.0, fisher_rows=16)
    run, _ = begun(learner)
    first = run.tasks[0]
    batch = collate([(first, first.split("train"), np.arange(16))], 0)
    features = copy.deepcopy(run.model.encoder).double().eval()(batch).detach()
    head = run.model.head(SHARED_HEAD)
    old = features @ head.weight[:2].detach().double().T + head.bias[:2].detach().double()
    error = old.softmax(1) - torch.nn.functional.one_hot(batch.labels[0], 2)
    fisher = (error[:, :, None] * features[:, None]).square().mean(0)
    stored = learner.shared_tensors[f"weight.{HEAD}"]
    torch.testing.assert_close(stored[:2].double(), fisher, rtol=1e-3, atol=1e-9)
    assert (stored[2:] == 0).all()
    anchor = head.weight.detach().clone()
    moved(run)
    head.weight.grad = torch.zeros_like(head.weight)
    learner.after_backward(batch)
    expected = 2.0 * stored * (head.weight.detach() - anchor)
    torch.testing.assert_close(head.weight.grad, expected)


def test_si_follows_the_head_along_its_path() -> None:
    """Zenke et al. 2017: w = -sum g dx, Omega = w / (D^2 + xi) where w is above 0."""
    run, task = begun(Si(xi=0.1))
    head, start = run.model.head(SHARED_HEAD), run.model.head(SHARED_HEAD).weight.detach().clone()
    before = run.learner.shared_tensors[f"weight.{HEAD}"].clone()
    assert before.shape == (5, 16)
    assert (before[2:] == 0).all()
    gradient, step = torch.randn_like(start), 0.1 * torch.randn_like(start)
    batch = collate([(task, task.split("train"), np.arange(4))], 0)
    head.weight.grad = gradient.clone()
    run.learner.after_backward(batch)
    with torch.no_grad():
        head.weight.add_(step)
    run.learner.after_step(batch)
    run.learner.finish(task)
    omega = (-gradient.double() * step.double() / (step.double() ** 2 + 0.1)).clamp(0)
    after = run.learner.shared_tensors[f"weight.{HEAD}"]
    torch.testing.assert_close((after - before).double(), omega, rtol=1e-3, atol=1e-6)


def test_agem_turns_the_gradient_of_the_head_aside_too() -> None:
    """Chaudhry et al. 2019, equation 11, where encoder and head are one vector."""
    run, task = begun(Agem(replayed=8))
    moved(run)
    batch = first_batch(run, task)
    named = run.learner.shared_parameters()
    assert HEAD in named
    gradients = []
    for part in (slice(0, 1), slice(1, None)):
        run.model.zero_grad(set_to_none=True)
        each = batch.only(part)
        batch_loss(each, run.model(each)).backward()
        gradients.append([p.grad.double().clone() for p in named.values() if p.grad is not None])
    new, old = (torch.cat([g.flatten() for g in found]) for found in gradients)
    assert new @ old < 0
    expected = new - (new @ old) / (old @ old) * old
    run.model.zero_grad(set_to_none=True)
    run.learner.loss(batch).backward()
    run.learner.after_backward(batch)
    found = torch.cat([p.grad.flatten() for p in named.values() if p.grad is not None])
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-6)
