"""Methods that share weights, each against its defining equation, computed independently."""

import copy
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.learners._shared.quadratic import QuadraticPenalty
from stream.learners._shared.sequential import Penalized
from stream.learners.agem import Agem, turn_aside
from stream.learners.derpp import Derpp
from stream.learners.ewc import Ewc
from stream.learners.finetune import Finetune
from stream.learners.lwf import Lwf, distillation_loss
from stream.learners.shared_adapter import SharedAdapter
from stream.learners.si import Si
from stream.learners.workload import Epoch
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import SHORT, Stream, made_task, made_tasks

LONG = TrainingConfig(epochs=24, min_steps=0, batch_size=8)


def served(run: Stream, task: str) -> dict[str, torch.Tensor]:
    return {n: t.detach().clone() for n, t in run.learner.served_state(task).items()}


@pytest.mark.parametrize("num_labels", [3, None])
def test_fisher_is_the_mean_of_squared_gradients_of_single_examples(num_labels: int | None) -> None:
    """One batch of 8 in float64 with a gradient a row; the learner goes row by row."""
    task = made_task("a", num_labels, 8)
    run = Stream(Ewc(fisher_rows=8), [task])
    run.learner.start(task)
    found = run.learner.fisher(task)
    encoder, head = copy.deepcopy(run.model.encoder).double().eval(), run.model.head("a").double()
    split = task.split("train")
    logits = encoder(collate([(task, split, np.arange(8))], 0)) @ head.weight.T + head.bias
    labels = torch.from_numpy(split.labels)
    if num_labels is None:  # normal with variance 1
        likelihoods = -((logits[:, 0] - labels) ** 2) / 2
    else:
        likelihoods = logits.log_softmax(1)[torch.arange(8), labels]
    named = dict(encoder.named_parameters())
    for name, fisher in found.items():
        rows = [
            torch.autograd.grad(
                one, named[name], retain_graph=True, materialize_grads=True, allow_unused=True
            )[0]
            for one in likelihoods
        ]
        expected = torch.stack([row**2 for row in rows]).mean(0)
        torch.testing.assert_close(fisher.double(), expected, rtol=1e-3, atol=1e-9)
    assert sum(float(f.sum()) for f in found.values()) > 0


def test_the_quadratic_penalty_is_a_sum_over_tasks() -> None:
    generator = np.random.default_rng(0)
    anchors, weights = generator.normal(size=(2, 3, 7)), generator.random((3, 7))
    stored: dict[str, torch.Tensor] = {}
    point, penalty = generator.normal(size=7), QuadraticPenalty(stored, {})
    for anchor, weight in zip(anchors[0], weights, strict=True):
        penalty.add({"x": torch.tensor(anchor)}, {"x": torch.tensor(weight)})
    expected = sum(w * (point - a) for w, a in zip(weights, anchors[0], strict=True))
    np.testing.assert_allclose(penalty.gradient("x", torch.tensor(point)), expected, rtol=1e-12)
    again = QuadraticPenalty(stored, {})
    again.begin({"x": torch.tensor(anchors[0][-1])})
    np.testing.assert_allclose(again.gradient("x", torch.tensor(point)), expected, rtol=1e-12)


@pytest.mark.parametrize(("learner", "copies"), [(Si(), 1), (Ewc(online=True), 1), (Ewc(), 2)])
def test_between_tasks_the_weights_are_the_anchor(
    learner: Penalized, copies: int, three_tasks: list[Task]
) -> None:
    """So besides them only the importance is stored, and offline what earlier anchors pull."""
    run, plain = Stream(learner, three_tasks[:2]), Stream(Finetune(), three_tasks[:2])
    for found in (run, plain):
        for task in found.tasks:
            fit(found.learner, task, SHORT)
    stored = [count_stored(r.learner.stored_states(three_tasks[:2]))[0] for r in (run, plain)]
    shared = sum(p.numel() for p in learner.shared_parameters().values())
    assert stored[0] - stored[1] == copies * shared


def test_online_ewc_keeps_the_newest_anchor_and_a_decayed_sum() -> None:
    generator = np.random.default_rng(0)
    anchors, weights = generator.normal(size=(3, 7)), generator.random((3, 7))
    point, penalty = generator.normal(size=7), QuadraticPenalty({}, {})
    for anchor, weight in zip(anchors, weights, strict=True):
        penalty.replace({"x": torch.tensor(anchor)}, {"x": torch.tensor(weight)}, 0.5)
    total = 0.25 * weights[0] + 0.5 * weights[1] + weights[2]
    expected = total * (point - anchors[2])
    np.testing.assert_allclose(penalty.gradient("x", torch.tensor(point)), expected, rtol=1e-12)


@cache
def finetuned() -> dict[str, str]:
    """What fine-tuning leaves of the three tasks."""
    plain = Stream(Finetune(), made_tasks())
    plain.finish()
    return plain.last_digests()


@pytest.mark.parametrize("make", [Ewc, Si, Lwf])
def test_no_strength_is_finetune_bit_for_bit(make: Callable, three_tasks: list[Task]) -> None:
    run = Stream(make(strength=0.0), three_tasks)
    run.finish()
    assert run.last_digests() == finetuned()


def test_endless_strength_freezes_what_a_task_needs(three_tasks: list[Task]) -> None:
    """Entries with Fisher information stay within a few steps; without a penalty they go on."""
    moved = {}
    for strength in (0.0, 1e12):
        run = Stream(Ewc(lr=1e-3, strength=strength), three_tasks[:2])
        fit(run.learner, three_tasks[0], SHORT)
        before = served(run, "a")
        fisher = run.learner.fisher(three_tasks[0])
        fit(run.learner, three_tasks[1], LONG)
        now = served(run, "a")
        moved[strength] = np.mean(
            [
                float((now[f"encoder.{n}"] - before[f"encoder.{n}"])[f > 1e-8].abs().mean())
                for n, f in fisher.items()
                if (f > 1e-8).any()
            ]
        )
    assert moved[1e12] < 0.2 * moved[0.0]


def test_si_sums_the_path(three_tasks: list[Task]) -> None:
    """Gradients and weights are noted from outside, and summed in float64."""
    run = Stream(Si(strength=1.0, damping=0.3), three_tasks[:1])
    learner, task = run.learner, three_tasks[0]
    name = "body.encoder.layer.1.output.dense.weight"
    weight = run.model.encoder.get_parameter(name)
    gradients, weights = [], [weight.detach().double().numpy().copy()]
    first = {n: p.detach().double().clone() for n, p in run.model.encoder.named_parameters()}
    after_backward = learner.after_backward

    def note(batch: Batch) -> None:
        gradients.append(weight.grad.double().numpy().copy())
        after_backward(batch)

    learner.after_backward = note
    fit(learner, task, SHORT, lambda step: weights.append(weight.detach().double().numpy().copy()))
    steps = np.diff(np.array(weights), axis=0)
    path = -(np.array(gradients) * steps).sum(0)
    squares = [
        ((p.detach().double() - first[n]) ** 2).flatten()
        for n, p in run.model.encoder.named_parameters()
        if n in learner.shared_parameters()
    ]
    xi = 0.3 * torch.cat(squares).mean().item()
    expected = np.maximum(path / ((weights[-1] - weights[0]) ** 2 + xi), 0)
    found = learner.shared_tensors[f"weight.{name}"].double().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-9)
    assert expected.max() > 0


@pytest.mark.parametrize("sign", [1, -1])
def test_agem_projects_only_what_opposes(sign: int) -> None:
    generator = np.random.default_rng(3)
    g, r = generator.normal(size=(2, 30))
    r *= sign * np.sign(g @ r)
    expected = g if sign > 0 else g - (g @ r) / (r @ r) * r
    tensors = [torch.tensor(g[:10]), torch.tensor(g[10:].reshape(4, 5))]
    turn_aside(tensors, [torch.tensor(r[:10]), torch.tensor(r[10:].reshape(4, 5))])
    np.testing.assert_allclose(torch.cat([t.flatten() for t in tensors]), expected, atol=1e-12)
    if sign < 0:
        assert abs(expected @ r) < 1e-10


class _Kernels(TorchDispatchMode):
    """Counts the operations inside the block that compute something."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def test_agem_projects_all_tensors_at_once() -> None:
    """Hundreds of tensors take no more kernels than two: each one is short, and there are many."""
    counts = []
    for many in (2, 200):
        gradient, reference = ([torch.full((3, 4), x) for _ in range(many)] for x in (1.0, -2.0))
        with _Kernels() as kernels:
            turn_aside(gradient, reference)
        counts.append(kernels.count)
        assert not torch.stack(gradient).any()  # nothing is left of what goes along the reference
    assert counts[0] == counts[1]


def test_agem_never_steps_against_the_memory(three_tasks: list[Task]) -> None:
    run = Stream(Agem(lr=1e-3, budget=8, replayed=8), three_tasks[:2])
    fit(run.learner, three_tasks[0], SHORT)
    learner, dots = run.learner, []
    after_backward = learner.after_backward

    def watch(batch: Batch) -> None:
        torch.manual_seed(0)
        after_backward(batch)
        torch.manual_seed(0)  # the same dropout masks
        shared = learner.shared_parameters().values()
        loss = learner.stored_loss(batch)
        reference = torch.autograd.grad(loss, list(shared), allow_unused=True)
        pairs = [(p.grad, r) for p, r in zip(shared, reference, strict=True) if r is not None]
        norm = sum(float((r**2).sum()) for _, r in pairs)
        dots.append(sum(float((g * r).sum()) for g, r in pairs) / norm)

    learner.after_backward = watch
    fit(learner, three_tasks[1], SHORT)
    assert min(dots) > -1e-5
    assert len(dots) > 1


def test_derpp_loss(three_tasks: list[Task]) -> None:
    alpha, beta = 0.7, 0.4
    run = Stream(Derpp(budget=6, replayed=4, alpha=alpha, beta=beta), three_tasks[:2])
    learner = run.learner
    fit(learner, three_tasks[0], SHORT)
    stored = learner.shared_tensors["a"].double().numpy()
    learner.start(three_tasks[1])
    run.model.eval()
    batch = next(learner.training_batches(three_tasks[1], Epoch(0, 1, SHORT)))
    stored_rows, labels = batch.remembered, batch.remembered.labels[1]
    rows, is_dark = stored_rows.labels[3].numpy(), labels == -100
    assert is_dark.tolist() == [True] * 4 + [False] * 4
    with torch.no_grad():  # as if something had been learned
        run.model.encoder.layers()[0].output.dense.bias.add_(0.5)
    found = learner.loss(batch).detach()
    logits = [part.detach().double().numpy() for part in run.model(batch)]
    with torch.no_grad():
        texts = run.model.states(stored_rows).texts
        logits += [run.model.head("a")(half).double().numpy() for half in (texts[:4], texts[4:])]

    def nll(values: np.ndarray, labels: torch.Tensor) -> float:
        shifted = values - np.log(np.exp(values).sum(1, keepdims=True))
        return float(-shifted[np.arange(len(labels)), labels].mean())

    moved = ((logits[1] - stored[rows[:4]]) ** 2).mean()
    expected = nll(logits[0], batch.labels[0]) + alpha * moved + beta * nll(logits[2], labels[4:])
    assert float(found) == pytest.approx(expected, rel=1e-4)
    assert moved > 0


def test_lwf_holds_softened_outputs(three_tasks: list[Task]) -> None:
    generator = np.random.default_rng(0)
    now, before = generator.normal(size=(2, 6, 4))

    def soft(values: np.ndarray) -> np.ndarray:
        powers = np.exp(values) ** (1 / 2.0)  # equation 3: p^(1/T), normalized
        return powers / powers.sum(1, keepdims=True)

    expected = -(soft(before) * np.log(soft(now))).sum(1)
    found = distillation_loss(three_tasks[0], torch.tensor(now), torch.tensor(before), 2.0)
    assert found.numpy() == pytest.approx(expected)
    change = distillation_loss(
        three_tasks[2], torch.tensor(now[:, :1]), torch.tensor(before[:, :1]), 2.0
    )
    assert change.numpy() == pytest.approx((now[:, 0] - before[:, 0]) ** 2 / 2)


@pytest.mark.parametrize("make", [Ewc, Si, Lwf, Derpp, Agem])
def test_on_an_adapter_the_encoder_stays(make: Callable, three_tasks: list[Task]) -> None:
    """The option of every such method; without a penalty it is `shared_adapter`."""
    run = Stream(make(part="adapter", lr=1e-3, size=4), three_tasks)
    before = {n: p.detach().clone() for n, p in run.model.encoder.named_parameters()}
    run.finish()
    norms = run.model.encoder.layernorm_names()
    for name in run.model.encoder.pretrained - norms:
        assert torch.equal(run.model.encoder.get_parameter(name), before[name]), name
    changed = [n for n, p in run.model.encoder.named_parameters() if not torch.equal(p, before[n])]
    assert any("adapter" in name for name in changed)


def test_without_a_penalty_it_is_the_shared_adapter(three_tasks: list[Task]) -> None:
    run = Stream(Ewc(part="adapter", lr=1e-3, head_lr=None, strength=0.0), three_tasks)
    plain = Stream(SharedAdapter(lr=1e-3), three_tasks)
    run.finish()
    plain.finish()
    assert run.last_digests() == plain.last_digests()
