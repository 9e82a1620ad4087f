"""OGD: what is stored of a task's outputs, and that nothing moves along it."""

import copy

import numpy as np
import pytest
import torch

from stream.data.batching import collate
from stream.data.task import Task
from stream.learners._shared.directions import project_out, true_outputs, widened
from stream.learners.ogd import Ogd
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import SHORT, Stream, made_task

NORM = 1e-5


def flat(tensors: list[torch.Tensor]) -> np.ndarray:
    return torch.cat([tensor.detach().flatten() for tensor in tensors]).double().numpy()


def held(run: Stream) -> list[torch.Tensor]:
    return list(run.learner.shared_parameters().values())


def test_directions_are_orthonormal_and_span_what_they_are_of() -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(9, 40, generator=generator)
    vectors[2] = 3 * vectors[0] - vectors[1]  # adds nothing
    first = widened([], vectors[:5])
    second = widened([first], vectors[4:])  # its first row is in the span already
    assert (len(first), len(second)) == (4, 4)
    rows = torch.cat([first, second]).double()
    torch.testing.assert_close(rows @ rows.T, torch.eye(8).double(), atol=1e-6, rtol=0)
    left = vectors.double() - (vectors.double() @ rows.T) @ rows
    assert left.abs().max() < 1e-5
    assert widened([first, second], vectors[:2]).shape == (0, 40)


def test_a_projection_is_what_least_squares_leave() -> None:
    generator = np.random.default_rng(0)
    vectors, gradient = generator.normal(size=(5, 30)), generator.normal(size=30)
    fitted, *_ = np.linalg.lstsq(vectors.T, gradient, rcond=None)
    bases = [widened([], torch.tensor(vectors[:3]))]
    bases.append(widened(bases, torch.tensor(vectors[3:])))
    tensors = [torch.tensor(gradient[:10].reshape(2, 5)), torch.tensor(gradient[10:])]
    project_out(bases, tensors)
    np.testing.assert_allclose(flat(tensors), gradient - vectors.T @ fitted, atol=1e-12)


@pytest.mark.parametrize("num_labels", [3, None])
def test_stored_are_the_gradients_of_the_true_outputs(num_labels: int | None) -> None:
    """The logit of the true class, or the score, of each of 24 rows; all lie in the span."""
    task = made_task("a", num_labels)
    run = Stream(Ogd(directions=24, size=2), [task])
    fit(run.learner, task, SHORT)
    basis = run.learner.shared_tensors["a"].double().numpy()
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-6)
    encoder, head = copy.deepcopy(run.model.encoder).double().eval(), run.model.head("a").double()
    parameters = [encoder.get_parameter(name) for name in run.learner.shared_parameters()]
    split = task.split("train")
    logits = encoder(collate([(task, split, np.arange(24))], 0)) @ head.weight.T + head.bias
    rank = []
    for row, label in enumerate(split.labels.tolist()):
        output = logits[row, 0 if num_labels is None else label]
        gradients = torch.autograd.grad(output, parameters, retain_graph=True)
        rank.append(gradient := flat(list(gradients)))
        left = gradient - basis.T @ (basis @ gradient)
        assert np.linalg.norm(left) < 1e-4 * np.linalg.norm(gradient)
    assert len(basis) <= np.linalg.matrix_rank(np.array(rank), rtol=1e-6)


def test_the_output_of_a_span_is_the_mean_of_its_ends() -> None:
    logits = torch.arange(12.0).reshape(1, 12)  # of 6 tokens, first and last each
    part = type("Part", (), {"task": type("T", (), {"is_span": True})})
    found = true_outputs(part, logits, torch.tensor([[2, 4, 1, 6]]))
    assert found.tolist() == [(logits[0, 2 * 2] + logits[0, 2 * 4 + 1]) / 2]


@pytest.mark.parametrize("hold_steps", [True, False])
def test_nothing_moves_along_stored_directions(
    *, hold_steps: bool, three_tasks: list[Task]
) -> None:
    """Gradients are orthogonal to all directions; AdamW's steps are so where they are held."""
    run = Stream(Ogd(directions=4, size=4, hold_steps=hold_steps), three_tasks)
    learner, seen = run.learner, []
    after_backward = learner.after_backward

    def watch(batch: object) -> None:
        before = flat([p.grad for p in held(run)])
        after_backward(batch)
        now = flat([p.grad for p in held(run)])
        if learner.shared_tensors:
            rows = np.concatenate([t.double().numpy() for t in learner.shared_tensors.values()])
            assert np.abs(rows @ now).max() < NORM * np.linalg.norm(before)
            np.testing.assert_allclose(  # the rest of the gradient is all there
                now, before - rows.T @ (rows @ before), atol=NORM * np.abs(before).max()
            )
            seen.append(np.abs(rows @ before).max())

    learner.after_backward = watch
    fit(learner, three_tasks[0], SHORT)
    fit(learner, three_tasks[1], SHORT)
    rows = np.concatenate([t.double().numpy() for t in learner.shared_tensors.values()])
    assert len(rows) == 8
    start = flat(held(run))
    fit(learner, three_tasks[2], SHORT)
    moved = flat(held(run)) - start
    along = np.abs(rows @ moved).max() / np.linalg.norm(moved)
    assert (along < NORM) == hold_steps
    assert along < 0.2
    assert min(seen) > 0


def test_the_ledger_counts_directions(three_tasks: list[Task]) -> None:
    """Each is as long as what tasks share: 3 of each of two tasks."""
    run = Stream(Ogd(directions=3, size=4), three_tasks)
    run.learn(0)
    run.learn(1)
    shared = sum(p.numel() for p in held(run))
    stored = count_stored(run.learner.stored_states(three_tasks[:2]))
    heads = sum(p.numel() for n in "ab" for p in run.model.head(n).parameters())
    expected = run.model.encoder.num_parameters() + heads + 6 * shared
    assert stored == (expected, 4 * expected)
