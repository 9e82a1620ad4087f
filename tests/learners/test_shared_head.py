"""What methods compute with one head for all tasks, each against its equation in float64."""

import copy
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from stream.data.batching import collate
from stream.data.mixture import Rehearsal
from stream.data.shared_head import with_shared_head
from stream.data.task import SHARED_HEAD, Task
from stream.learners.agem import Agem
from stream.learners.base import Learner
from stream.learners.derpp import Derpp
from stream.learners.er_ace import ErAce
from stream.learners.ewc import Ewc
from stream.learners.gem import Gem
from stream.learners.lwf import Lwf
from stream.learners.ogd import Ogd
from stream.learners.replay import Replay
from stream.learners.si import Si
from stream.learners.workload import Epoch
from stream.models.losses import batch_loss
from stream.training.loop import fit
from tests.builders import SHORT, Stream, made_task

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


def test_er_ace_compares_stored_rows_with_all_classes_that_were_met() -> None:
    """Caccia et al. 2022, equation 2: a new row with the classes of its batch alone."""
    run, task = begun(ErAce(replayed=8))
    moved(run)
    train = task.split("train")
    two_of_three = np.flatnonzero(train.labels != 3)[:6]
    drawn = run.learner.stored.of_each(8, np.random.default_rng(0))
    batch = Rehearsal.of(collate([(task, train, two_of_three), *drawn], 0), run.learner.learned)
    head, parts = run.model.head(SHARED_HEAD), (batch.new, batch.remembered)
    new, stored = (logits_by_hand(run.model.encoder, head, part) for part in parts)
    assert (new.shape[1], stored.shape[1]) == (5, 5)
    assert set(batch.labels[0].tolist()) == {2, 4}
    expected = cross_entropy(new[:, [2, 4]], (batch.labels[0] == 4).long()).mean()
    expected += cross_entropy(stored, batch.remembered.labels[1]).mean()
    assert run.learner.loss(batch).item() == pytest.approx(expected.item(), rel=1e-5)


def all_classes(rows: torch.Tensor) -> torch.Tensor:
    """Rows of the classes met, and zeros for the others of 5."""
    return torch.cat([rows, rows.new_zeros(5 - len(rows), *rows.shape[1:])])


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """What all tasks share as one vector: the head last, with entries for all classes."""
    whole = [*tensors[:-2], *map(all_classes, tensors[-2:])]
    return torch.cat([tensor.detach().double().flatten() for tensor in whole])


def of_true_logits(run: Stream, task: Task) -> torch.Tensor:
    """The gradient of each training row's true logit, in float64, as `flat` vectors [N, P]."""
    encoder = copy.deepcopy(run.model.encoder).double().eval()
    head = copy.deepcopy(run.model.head(SHARED_HEAD)).double().requires_grad_()
    names = [name for name in run.learner.shared_parameters() if not name.startswith("heads.")]
    wanted = [*map(encoder.get_parameter, names), head.weight, head.bias]
    split = task.split("train")
    logits = encoder(collate([(task, split, np.arange(len(split)))], 0)) @ head.weight.T + head.bias
    gradients = [
        torch.autograd.grad(logits[row, label], wanted, retain_graph=True)
        for row, label in enumerate(split.labels.tolist())
    ]
    return torch.stack([flat(found) for found in gradients])


def test_ogd_moves_along_no_true_logit_with_the_head_inside() -> None:
    """Farajtabar et al. 2020, algorithm 1, over two classes, three more, and the first two again.

    Gradients are what least squares leave, steps are orthogonal; a logit of before has no part in
    the rows of classes that were met later.
    """
    tasks = [made_task("a", 2, 16), made_task("b", 3, 16), made_task("c", 2, 16)]
    learner = Ogd(directions=16, size=2)
    run = Stream(learner, with_shared_head(tasks, [["a", "c"]]))
    vectors = torch.zeros(0)
    for task in run.tasks:
        learner.start(task)
        shared = list(learner.shared_parameters().values())
        before, generator = flat(shared), torch.Generator().manual_seed(0)
        gradients = [torch.randn(parameter.shape, generator=generator) for parameter in shared]
        for parameter, gradient in zip(shared, gradients, strict=True):
            parameter.grad = gradient.clone()
        learner.after_backward(first_batch(run, task))
        given = flat(gradients)
        fitted = vectors.T @ torch.linalg.lstsq(vectors.T, given).solution if len(vectors) else 0.0
        found = flat([parameter.grad for parameter in shared if parameter.grad is not None])
        torch.testing.assert_close(found, given - fitted, rtol=0, atol=1e-3)
        fit(learner, task, SHORT)
        shared = list(learner.shared_parameters().values())
        moved_by = flat(shared) - before
        assert moved_by[-5:].abs().max() > 0  # biases of the head
        if len(vectors):
            along = (vectors @ moved_by).abs() / (vectors.norm(dim=1) * moved_by.norm())
            assert along.max() < 1e-4  # stored in float32
        new = of_true_logits(run, task)
        vectors = torch.cat([vectors, new]) if len(vectors) else new
    widths = [len(learner.shared_tensors[name][0]) for name in "abc"]
    assert [width - widths[0] for width in widths] == [0, 3 * 17, 3 * 17]


def test_derpp_compares_logits_over_the_classes_that_were_met() -> None:
    """Buzzega et al. 2020, equation 6, with logits of two classes although five are met now."""
    learner = Derpp(replayed=4, alpha=0.7, beta=0.3)
    run, task = begun(learner)
    moved(run)
    batch = first_batch(run, task)
    head = run.model.head(SHARED_HEAD)
    parts = (batch.new, batch.remembered)
    new, stored_rows = (logits_by_hand(run.model.encoder, head, part) for part in parts)
    logits = [new, *stored_rows.split(4)]
    rows = batch.remembered.labels[3][:4]
    stored = learner.shared_tensors["a"][rows].double()
    assert stored.shape == (4, 2)
    expected = cross_entropy(logits[0], batch.labels[0]).mean()
    expected += 0.7 * ((logits[1][:, :2] - stored) ** 2).mean()
    expected += 0.3 * cross_entropy(logits[2], batch.remembered.labels[1][4:]).mean()
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
    """Zenke et al. 2017: w = -sum g dx, Omega = w / (D^2 + xi) where w is above 0.

    xi is ``damping`` times the mean of D^2 over all shared weights, of which the head's alone move.
    """
    run, task = begun(Si(damping=0.3))
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
    squares = (head.weight.detach().double() - start.double()) ** 2
    xi = 0.3 * squares.sum() / sum(p.numel() for p in run.learner.shared_parameters().values())
    omega = (-gradient.double() * step.double() / (squares + xi)).clamp(0)
    after = run.learner.shared_tensors[f"weight.{HEAD}"]
    torch.testing.assert_close((after - before).double(), omega, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("learner", [Agem(replayed=8), Gem(replayed=8, margin=0.0)])
def test_the_gradient_of_the_head_is_turned_aside_too(learner: Learner) -> None:
    """Chaudhry et al. 2019, equation 11, where encoder and head are one vector.

    With one earlier task it is what Lopez-Paz & Ranzato 2017, equation 11, comes to as well.
    """
    run, task = begun(learner)
    moved(run)
    mixed = next(run.learner.stored.mixed(task, Epoch(0, 1, SHORT), 0, 8))
    batch = mixed if isinstance(learner, Gem) else Rehearsal.of(mixed, run.learner.learned)
    named = run.learner.shared_parameters()
    assert HEAD in named
    gradients = []
    for part in (slice(0, 1), slice(1, None)):
        run.model.zero_grad(set_to_none=True)
        each = mixed.only(part)
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
