"""ER-ACE's asymmetric loss and GEM's projection, against their equations in float64."""

import copy

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from stream.data.mixture import Rehearsal
from stream.data.task import Task
from stream.learners._shared.cone import inner_products, turn_aside, weights_of
from stream.learners.er_ace import ErAce, among_present
from stream.learners.gem import Gem
from stream.learners.workload import Epoch
from stream.models.heads import Head
from stream.models.losses import batch_loss
from stream.training.loop import fit
from tests.builders import SHORT, Stream, made_task

# --- ER-ACE


def entropies(logits: np.ndarray, labels: np.ndarray, classes: list[int]) -> np.ndarray:
    """-log of the softmax over some classes alone, row by row."""
    powers = np.exp(logits - logits.max())
    return -np.log(powers[np.arange(len(labels)), labels] / powers[:, classes].sum(1))


def test_er_ace_compares_new_rows_with_the_classes_of_their_batch() -> None:
    """Batches of 8 that lack some of 5 classes; stored rows see all of theirs."""
    tasks = [made_task("a", 4), made_task("b", 5)]
    run = Stream(ErAce(budget=9, replayed=6), tasks)
    run.learn(0)
    learner = run.learner
    learner.start(tasks[1])
    with torch.no_grad():  # logits of different sizes
        run.model.head("b").weight.mul_(50)
    run.model.eval()
    lacking = 0
    for batch in learner.training_batches(tasks[1], Epoch(0, 1, SHORT)):
        stored = logits_of_stored(run.model, batch)
        (new,) = (part.detach().double().numpy() for part in run.model(batch))
        labels, theirs = batch.labels[0].numpy(), batch.remembered.labels[1].numpy()
        present = sorted(set(labels.tolist()))
        lacking += len(present) < 5
        expected = entropies(new, labels, present).mean()
        expected += entropies(stored, theirs, [0, 1, 2, 3]).mean()
        assert len(theirs) == 6
        assert float(learner.loss(batch).detach()) == pytest.approx(expected, rel=1e-5)
    assert lacking


def logits_of_stored(model: torch.nn.Module, batch: Rehearsal) -> np.ndarray:
    """What the head of task a says of stored rows, float64."""
    assert batch.remembered is not None
    with torch.no_grad():
        return model.heads["a"](model.states(batch.remembered).texts).double().numpy()


def test_er_ace_pushes_no_class_away_that_the_batch_lacks() -> None:
    logits = torch.randn(6, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels = torch.tensor([1, 3, 3, 1, 1, -100])  # the last row only fills up
    torch.nn.functional.cross_entropy(among_present(logits, labels), labels).backward()
    assert logits.grad is not None
    assert (logits.grad != 0).any(0).tolist() == [False, True, False, True, False]
    masked = among_present(logits, labels)
    assert (masked[:, [0, 2, 4]] == Head.NEVER).all()


# --- GEM


def nearest(gradient: np.ndarray, memories: np.ndarray, margin: float) -> np.ndarray:
    """G'v + g for the v >= margin that minimizes |G'v + g|^2, by another solver."""
    count = len(memories)
    found = minimize(
        lambda v: 0.5 * ((memories.T @ v + gradient) ** 2).sum(),
        np.full(count, margin),
        jac=lambda v: memories @ (memories.T @ v + gradient),
        bounds=[(margin, None)] * count,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert found.success
    return memories.T @ found.x + gradient


@pytest.mark.parametrize("margin", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(6))
def test_the_dual_is_solved(seed: int, margin: float) -> None:
    generator = np.random.default_rng(seed)
    count, length = 1 + seed, 12
    memories = generator.normal(size=(count, length))
    gradient = generator.normal(size=length) - memories.sum(0)  # opposes some
    expected = nearest(gradient, memories, margin)
    tensors = [torch.tensor(gradient[:4]), torch.tensor(gradient[4:].reshape(2, 4))]
    others = [[torch.tensor(m[:4]), torch.tensor(m[4:].reshape(2, 4))] for m in memories]
    assert (memories @ gradient).min() < 0
    turn_aside(tensors, others, margin)
    found = torch.cat([tensor.flatten() for tensor in tensors]).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    if not margin:  # the primal: z.g_k >= 0, and the least change that gets there
        assert (memories @ found).min() > -1e-9
        change = minimize(
            lambda z: ((z - gradient) ** 2).sum(),
            found,
            jac=lambda z: 2 * (z - gradient),
            constraints={"type": "ineq", "fun": lambda z: memories @ z, "jac": lambda z: memories},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(found, change.x, atol=1e-5)


def test_a_gradient_that_opposes_none_stays() -> None:
    memories = np.random.default_rng(0).normal(size=(3, 5))
    gradient = torch.tensor(np.linalg.pinv(memories) @ np.array([0.0, 1.0, 2.0]).clip(1e-6))
    before = gradient.clone()
    turn_aside([gradient], [[torch.tensor(m)] for m in memories], 0.5)
    assert torch.equal(gradient, before)


def test_equal_memories_and_a_memory_of_0_are_no_trouble() -> None:
    memory = np.random.default_rng(0).normal(size=5)
    gradient, rows = -memory, [memory, memory, np.zeros(5)]
    products = np.array([[x @ y for y in (*rows, gradient)] for x in (*rows, gradient)])
    weights = weights_of(products, 0.0)
    np.testing.assert_allclose(weights[:2].sum(), 1.0, rtol=1e-6)
    vectors = [[torch.tensor(row), None] for row in rows]
    np.testing.assert_allclose(inner_products(vectors), products[:3, :3], rtol=1e-12)


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_a_step_of_gem_is_along_the_nearest_gradient(margin: float) -> None:
    """Gradients of a copy in float64, without dropout, projected by another solver."""
    tasks = [made_task("a", 2), made_task("b", None), made_task("c", 3)]
    run = Stream(Gem(budget=6, margin=margin, lr=1e-3), tasks)
    learner = run.learner
    for task in tasks[:2]:
        fit(learner, task, SHORT)
    learner.start(tasks[2])
    run.model.eval()
    turned = 0
    for batch in learner.training_batches(tasks[2], Epoch(0, 1, SHORT)):
        assert [part.task.name for part in batch.parts] == ["c", "a", "b"]
        assert [len(labels) for labels in batch.labels[1:]] == [6, 6]
        model, gradients = copy.deepcopy(run.model).double(), []
        shared = [model.encoder.get_parameter(name) for name in learner.shared_parameters()]
        for place in range(3):
            part = batch.only(slice(place, place + 1))
            logits = [found.double() for found in model_logits(model, part)]
            loss = batch_loss(part, logits)
            found = torch.autograd.grad(loss, shared)
            gradients.append(torch.cat([g.flatten() for g in found]).numpy())
        gradient, memories = gradients[0], np.array(gradients[1:])
        turns = (memories @ gradient).min() < 0
        turned += turns
        expected = nearest(gradient, memories, margin) if turns else gradient
        run.model.zero_grad()
        learner.loss(batch).backward()
        head = run.model.head("c").weight.grad.clone()
        learner.after_backward(batch)
        mine = [p.grad for p in learner.shared_parameters().values()]
        now = torch.cat([g.flatten() for g in mine]).double().numpy()
        np.testing.assert_allclose(now, expected, atol=2e-4 * np.abs(gradient).max())
        assert torch.equal(run.model.head("c").weight.grad, head)
    assert turned


def model_logits(model: torch.nn.Module, batch: object) -> list[torch.Tensor]:
    """What the model says in float64; its own forward pass rounds the vectors to float32."""
    texts, _ = model.encoder.states(batch)
    return [model.heads[part.task.name](texts[part.start : part.stop]) for part in batch.parts]


def test_gem_s_memory_is_all_that_it_stores(three_tasks: list[Task]) -> None:
    """The rows it reads in a step: those of the batch, and the memory of every earlier task."""
    run = Stream(Gem(budget=5), three_tasks)
    reports = [fit(run.learner, task, SHORT) for task in three_tasks]
    steps = reports[0].steps
    assert [r.examples for r in reports] == [32, 32 + 5 * steps, 32 + 10 * steps]
    assert run.learner.stored.examples == 15
    assert not run.learner.shared_tensors
