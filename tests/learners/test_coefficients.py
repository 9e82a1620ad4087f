"""What each method adds to the loss, with its coefficient, against the formula in float64."""

import copy
import math

import numpy as np
import pytest
import torch

from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.learners._shared.replay_buffer import ReplayBuffer
from stream.learners._shared.sequential import Penalized
from stream.learners._shared.sparse import Sparse
from stream.learners.adapter import Adapter
from stream.learners.adapterfusion import AdapterFusion
from stream.learners.agem import Agem
from stream.learners.derpp import Derpp
from stream.learners.diff_pruning import DiffPruning
from stream.learners.ewc import Ewc
from stream.learners.lt_sft import LtSft
from stream.learners.lwf import Lwf, distillation_loss
from stream.learners.olora import OLora
from stream.learners.replay import Replay
from stream.learners.si import Si
from stream.learners.workload import Epoch, Workload
from stream.models.losses import batch_loss
from stream.models.modules.composition import Attention
from stream.models.task_model import TaskModel
from tests.builders import SHORT, Stream, made_task, tiny_encoder


def rows_of(task: Task, count: int = 8) -> Batch:
    return collate([(task, task.split("train"), np.arange(count))], 0)


def moved(run: Stream, seed: int = 0, size: float = 0.1) -> None:
    """Change everything in the encoder, so that nothing is where it was."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in run.model.encoder.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=size)


# --- quadratic penalties


@pytest.mark.parametrize(
    ("learner", "factor"),
    [
        (Ewc(strength=6.0, fisher_rows=1), 6.0 / 2),
        (Ewc(strength=6.0, fisher_rows=1, online=True, decay=0.25), 6.0 / 2 * 0.25),
        (Si(strength=6.0), 6.0),
    ],
)
def test_a_penalty_has_the_strength_of_its_equation(
    learner: Penalized, factor: float, three_tasks: list[Task]
) -> None:
    """EWC: strength / 2 sum F (x - a)^2; SI: strength sum Omega (x - a)^2; by autograd.

    Online EWC's F of earlier tasks counts ``decay`` times while the next task is learned.
    """
    run = Stream(learner, three_tasks[:2])
    learner.start(three_tasks[0])
    learner.finish(three_tasks[0])
    generator, weights = torch.Generator().manual_seed(0), {}
    for name in learner.shared_parameters():
        weight = learner.shared_tensors[f"weight.{name}"]
        weights[name] = weight.copy_(torch.rand(weight.shape, generator=generator)).double()
    learner.start(three_tasks[1])
    shared = learner.shared_parameters()
    anchors = {name: p.detach().double().clone() for name, p in shared.items()}
    moved(run)
    for parameter in shared.values():
        parameter.grad = torch.full_like(parameter, 0.25)
    learner.after_backward(rows_of(three_tasks[1]))
    for name, parameter in shared.items():
        x = parameter.detach().double().requires_grad_()
        (factor * (weights[name] * (x - anchors[name]) ** 2).sum()).backward()
        torch.testing.assert_close(parameter.grad.double(), 0.25 + x.grad, rtol=1e-4, atol=1e-5)


def test_si_notes_the_gradient_of_the_loss_alone(three_tasks: list[Task]) -> None:
    """Before the penalty is added, and as a copy that the optimizer does not change."""
    learner = Si(strength=1e6)
    run = Stream(learner, three_tasks[:2])
    run.learn(0)
    learner.start(three_tasks[1])
    moved(run)
    shared = learner.shared_parameters()
    for parameter in shared.values():
        parameter.grad = torch.full_like(parameter, 0.25)
    learner.after_backward(rows_of(three_tasks[1]))
    before = {name: p.detach().double().clone() for name, p in shared.items()}
    for parameter in shared.values():  # as clipping does, and a step
        parameter.grad.zero_()
    moved(run, seed=1, size=0.01)
    learner.after_step(rows_of(three_tasks[1]))
    for name, parameter in shared.items():
        expected = -0.25 * (parameter.detach().double() - before[name])
        path = learner.fit_tensors[f"path.{name}"].double()
        torch.testing.assert_close(path, expected, rtol=1e-3, atol=1e-6)


def test_si_keeps_the_sum_of_all_tasks(three_tasks: list[Task]) -> None:
    """Omega is a sum over tasks; a path that raised the loss counts as 0."""
    learner = Si(damping=0.1)
    run = Stream(learner, three_tasks[:2])
    run.learn(0)
    name = "body.encoder.layer.1.output.dense.weight"
    first = learner.shared_tensors[f"weight.{name}"].double().clone()
    learner.start(three_tasks[1])
    shared = learner.shared_parameters()
    starts = {n: p.detach().double().clone() for n, p in shared.items()}
    start = starts[name]
    moved(run)
    path = torch.randn(start.shape, generator=torch.Generator().manual_seed(0))
    learner.fit_tensors[f"path.{name}"].copy_(path)
    learner.finish(three_tasks[1])
    change = learner.shared_parameters()[name].detach().double() - start
    squares = [((p.detach().double() - starts[n]) ** 2).flatten() for n, p in shared.items()]
    xi = 0.1 * torch.cat(squares).mean()
    expected = first + (path.double() / (change**2 + xi)).clamp(min=0)
    found = learner.shared_tensors[f"weight.{name}"].double()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("size", [1e-3, 1e-1])
@pytest.mark.parametrize(("options", "damping"), [({}, 0.1), ({"damping": 0.3}, 0.3)])
def test_si_damps_relative_to_what_moved(options: dict, damping: float, size: float) -> None:
    """One matrix moved, all else stayed: importances go with 1 / size^2, their ratio does not."""
    task = made_task("a")
    learner = Si(**options)
    Stream(learner, [task])
    learner.start(task)
    shared = learner.shared_parameters()
    weight = shared["body.encoder.layer.1.output.dense.weight"]
    with torch.no_grad():
        weight.add_(size)
    for name, tensor in learner.fit_tensors.items():
        if name.startswith("path."):
            tensor.fill_(1.0)
    xi = damping * size**2 * weight.numel() / sum(p.numel() for p in shared.values())
    learner.finish(task)
    for name, parameter in shared.items():
        expected = 1 / (xi + (size**2 if parameter is weight else 0))
        found = learner.shared_tensors[f"weight.{name}"]
        torch.testing.assert_close(found, torch.full_like(found, expected), rtol=1e-3, atol=0)


def test_si_makes_nothing_important_where_nothing_moved() -> None:
    task = made_task("a")
    learner = Si()
    Stream(learner, [task])
    learner.start(task)
    learner.finish(task)
    assert not any(tensor.any() for tensor in learner.shared_tensors.values())


# --- Fisher information


def test_fisher_rows_are_a_random_sample_seeded_by_name() -> None:
    """Of 24 rows, 6: their mean information, whichever they are; and not the first ones."""
    task = made_task("a", 3, 24)
    drawn = []
    for seed, name in ((0, "a"), (0, "a"), (1, "a"), (0, "b")):
        named = Task(name, task.spec, task.splits, task.hashes)
        run = Stream(Ewc(fisher_rows=6), [named], seed=seed)
        run.learner.start(named)
        read: list[tuple[int, ...]] = []
        run.model.encoder.register_forward_pre_hook(
            lambda module, given, read=read: read.append(tuple(given[0].input_ids[0].tolist()))
        )
        states = run.model.encoder.states
        run.model.encoder.states = lambda batch, read=read, states=states: (
            read.append(tuple(batch.input_ids[0].tolist())),
            states(batch),
        )[1]
        run.learner.fisher(named)
        assert len(set(read)) == 6
        drawn.append(read)
    assert drawn[0] == drawn[1]
    assert len({tuple(rows) for rows in drawn}) == 3
    split = task.split("train")
    first = {tuple(split.token_ids[split.offsets[i] : split.offsets[i + 1]]) for i in range(6)}
    for rows in (drawn[0], drawn[2]):
        assert {tuple(token for token in row if token) for row in rows} != first


@pytest.mark.parametrize("training", [False, True])
def test_fisher_is_measured_without_dropout_and_leaves_the_mode(*, training: bool) -> None:
    task = made_task("a", 3, 8)
    run = Stream(Ewc(fisher_rows=8), [task])
    run.learner.start(task)
    run.model.train(training)
    twice = [run.learner.fisher(task) for _ in range(2)]
    assert run.model.training is training
    assert all(parameter.grad is None for parameter in run.model.parameters())
    for name, fisher in twice[0].items():
        assert torch.equal(fisher, twice[1][name])


@pytest.mark.parametrize(("online", "decay"), [(False, 1.0), (True, 0.25)])
def test_importance_is_the_fisher_information_after_the_task(
    *, online: bool, decay: float, three_tasks: list[Task]
) -> None:
    """Of the learned weights alone: no gradient of the last training step is in it."""
    name = "body.encoder.layer.1.output.dense.weight"
    learner = Ewc(online=online, decay=decay, fisher_rows=4)
    run = Stream(learner, three_tasks[:2])
    run.learn(0)
    first = learner.shared_tensors[f"weight.{name}"].double().clone()
    run.learn(1)
    newest = learner.fisher(three_tasks[1])[name].double()
    found = learner.shared_tensors[f"weight.{name}"].double()
    torch.testing.assert_close(found, decay * first + newest, rtol=1e-5, atol=1e-12)
    assert any(key.startswith("pull.") for key in learner.shared_tensors) is not online


# --- distillation


def test_lwf_adds_strength_times_what_its_teacher_says(three_tasks: list[Task]) -> None:
    """The teacher is the encoder before the task, without dropout; one term for each old head."""
    strength, temperature = 3.5, 2.0
    order = [three_tasks[0], three_tasks[2], three_tasks[1]]  # classes, scores, then the new one
    learner = Lwf(strength=strength)
    run = Stream(learner, order)
    run.learn(0)
    run.learn(1)
    learner.start(order[2])
    teacher = copy.deepcopy(run.model.encoder).eval()
    moved(run)
    batch = rows_of(order[2])
    run.model.eval()
    found = learner.loss(batch)
    with torch.no_grad():
        before, now = teacher(batch).double(), run.model.encoder(batch).double()

        def outputs(states: torch.Tensor, task: Task) -> torch.Tensor:
            head = run.model.head(task.name)
            return states @ head.weight.double().T + head.bias.double()

        expected = torch.nn.functional.cross_entropy(outputs(now, order[2]), batch.labels[0])
        then = (outputs(before, order[0]) / temperature).exp()
        target = then / then.sum(1, keepdim=True)
        powers = (outputs(now, order[0]) / temperature).exp()
        entropy = -(target * (powers / powers.sum(1, keepdim=True)).log()).sum(1).mean()
        squares = ((outputs(now, order[1]) - outputs(before, order[1])) ** 2).mean() / 2
    assert float(squares) > 1e-4
    expected = expected + strength * (entropy + squares)
    assert found.item() == pytest.approx(float(expected), rel=1e-5)
    run.model.train()
    assert not learner._teacher.training


def test_lwf_holds_both_ends_of_a_span() -> None:
    """Each end is a choice among the tokens: two softmaxes, whose losses are averaged."""

    class Span:
        is_regression, is_span = False, True

    generator = np.random.default_rng(0)
    now, before = generator.normal(size=(2, 3, 5, 2))  # 3 texts of 5 tokens, 2 ends
    target, found = (np.exp(x / 2) / np.exp(x / 2).sum(1, keepdims=True) for x in (before, now))
    expected = -(target * np.log(found)).sum(1).mean(1)
    flat = (torch.tensor(x.reshape(3, 10)) for x in (now, before))
    assert distillation_loss(Span, *flat, 2.0).numpy() == pytest.approx(expected)


# --- stored examples


def kept_rows(buffer: ReplayBuffer, task: Task) -> list[int]:
    """The positions of stored rows in the task, told by their token ids."""
    train, stored = task.split("train"), buffer.rows_of(task)
    texts = {train.select(np.array([i])).token_ids.tobytes(): i for i in range(len(train))}
    return [texts[stored.select(np.array([i])).token_ids.tobytes()] for i in range(len(stored))]


def test_stored_rows_are_a_uniform_sample_seeded_by_the_name() -> None:
    """Over 200 seeds each of 24 rows is among the 6 stored ones about 50 times."""
    task, counts = made_task("a", 2, 24), np.zeros(24)
    for seed in range(200):
        buffer = ReplayBuffer(6, seed)
        buffer.add(task)
        rows = kept_rows(buffer, task)
        assert rows == sorted(rows)
        counts[rows] += 1
    expected, deviation = 200 * 6 / 24, math.sqrt(200 * 0.25 * 0.75)
    assert abs(counts - expected).max() < 4 * deviation
    other = Task("other", task.spec, task.splits, task.hashes)
    samples = []
    for known in (task, other):
        buffer = ReplayBuffer(6, 0)
        buffer.add(known)
        samples.append(kept_rows(buffer, known))
    assert samples[0] != samples[1]


def test_drawn_rows_are_random_and_the_counts_too() -> None:
    """Each of 24 stored rows comes about as often; a task's share varies from draw to draw."""
    buffer = ReplayBuffer(None, 0)
    for name in "ab":
        buffer.add(made_task(name, 2, 24))
    generator, counts, shares = np.random.default_rng(0), np.zeros(24), []
    for _ in range(400):
        drawn = {task.name: rows for task, _, rows in buffer.draw(6, [0.5, 0.5], generator)}
        counts[drawn.get("a", np.array([], int))] += 1
        shares.append(len(drawn.get("a", ())))
    assert abs(counts - 400 * 3 / 24).max() < 4 * math.sqrt(400 * 3 / 24)
    assert np.var(shares) == pytest.approx(6 / 4, rel=0.25)  # binomial


def test_draws_are_those_of_seed_task_and_epoch() -> None:
    tasks = [made_task("a"), made_task("b"), made_task("c")]

    def drawn(seed: int, task: Task, epoch: int) -> list[list[int]]:
        buffer = ReplayBuffer(None, seed)
        buffer.add(tasks[0])
        batches = buffer.mixed(task, Epoch(epoch, 2, SHORT), 0, 4)
        return [batch.input_ids[batch.parts[1].start :, :4].tolist() for batch in batches]

    first = drawn(0, tasks[1], 0)
    assert drawn(0, tasks[1], 0) == first
    assert len(first) == 3
    assert first[0] != first[1]
    for other in (drawn(1, tasks[1], 0), drawn(0, tasks[1], 1), drawn(0, tasks[2], 0)):
        assert other != first


def test_agem_learns_new_rows_and_turns_the_shared_gradient_alone(
    three_tasks: list[Task],
) -> None:
    """What is left is the new rows' gradient, projected by hand in float64; heads are as it was."""
    learner = Agem(budget=8, replayed=8)
    run = Stream(learner, three_tasks[:2])
    run.learn(0)
    learner.start(three_tasks[1])
    run.model.eval()  # without dropout both gradients can be computed again
    batch = next(learner.training_batches(three_tasks[1], Epoch(0, 1, SHORT)))
    remembered = batch.remembered
    assert len(remembered) == 8

    def gradients(loss: torch.Tensor) -> dict[str, torch.Tensor]:
        named = learner.trained_parameters()
        found = torch.autograd.grad(
            loss, list(named.values()), materialize_grads=True, allow_unused=True
        )
        return dict(zip(named, (g.double() for g in found), strict=True))

    old = run.model.head("a")(run.model.states(remembered).texts)
    stored = gradients(torch.nn.functional.cross_entropy(old, remembered.labels[1]))
    new = gradients(batch_loss(batch.new, run.model(batch)))
    shared = [f"encoder.{name}" for name in learner.shared_parameters()]
    for sign in (1, -1):  # one of them opposes the stored examples' gradient
        run.model.zero_grad()
        (sign * learner.loss(batch)).backward()
        learner.after_backward(batch)
        dot = sign * sum(float((new[n] * stored[n]).sum()) for n in shared)
        square = sum(float((stored[n] ** 2).sum()) for n in shared)
        for name, parameter in learner.trained_parameters().items():
            expected = sign * new[name]
            if name in shared:
                expected = expected - min(dot / square, 0.0) * stored[name]
            found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-6)


# --- fusion


def test_fusion_holds_the_value_maps_to_the_identity(three_tasks: list[Task]) -> None:
    """0.01 |V - I|^2 summed over all layers, in the fusion's stage alone."""
    learner = AdapterFusion()
    run = Stream(learner, three_tasks[:1])
    learner.start(three_tasks[0])
    run.model.eval()
    batch, losses = rows_of(three_tasks[0]), []
    fusions = [m for m in run.model.encoder.modules() if isinstance(m, Attention)]
    assert len(fusions) == 2
    with torch.no_grad():
        for number, fusion in enumerate(fusions):
            generator = torch.Generator().manual_seed(number)
            fusion.value.weight.add_(torch.randn(16, 16, generator=generator))
        for epoch in (0, 3):
            next(learner.training_batches(three_tasks[0], Epoch(epoch, 4, SHORT)))
            losses.append([learner.loss(batch).item(), batch_loss(batch, run.model(batch)).item()])
        values = [fusion.value.weight.double().numpy() for fusion in fusions]
    penalty = 0.01 * sum(((value - np.eye(16)) ** 2).sum() for value in values)
    assert losses[0][0] == losses[0][1]
    assert losses[1][0] - losses[1][1] == pytest.approx(penalty, rel=1e-4)
    assert penalty > 1


def test_fusion_takes_the_steps_of_two_stages() -> None:
    """As many epochs for each as another method has in all."""
    task = made_task("a", rows=24)
    learner = AdapterFusion()
    Stream(learner, [task])
    assert learner.workload(task, SHORT) == Workload(4, 12, 96)


# --- half precision


def test_a_step_in_bf16_computes_with_the_weights_of_the_step_before() -> None:
    """A learner whose copy was made long ago has the loss of one whose copy is new."""
    task = made_task("a", 3)
    batch = rows_of(task)

    def begun() -> Stream:
        run = Stream(Adapter(init_std=0.1), [task])
        run.model = TaskModel(tiny_encoder(), 0, 0.0, precision="bf16")
        run.learner.attach(run.model, tasks=[task], seed=0, pad_id=0)
        run.learner.start(task)
        run.model.eval()
        run.model.sync_bf16_copy()
        return run

    def loss_of(run: Stream) -> tuple[float, dict[str, torch.Tensor]]:
        run.model.zero_grad()
        with run.model.computing():
            loss = run.learner.loss(batch)
            loss.backward()
        trained = run.learner.trained_parameters()
        return loss.item(), {n: p.grad.clone() for n, p in trained.items() if p.grad is not None}

    stepped, fresh = begun(), begun()
    first, gradients = loss_of(stepped)
    with torch.no_grad():
        for name, parameter in stepped.learner.trained_parameters().items():
            parameter.sub_(gradients[name], alpha=0.1)
            fresh.model.get_parameter(name).copy_(parameter)
    fresh.model.sync_bf16_copy()
    (second, found), (expected, wanted) = loss_of(stepped), loss_of(fresh)
    assert second == expected
    assert second < first - 0.01
    assert all(torch.equal(found[name], gradient) for name, gradient in wanted.items())


@pytest.mark.parametrize("olds", [1, 2])
def test_lwf_holds_every_old_head(olds: int, three_tasks: list[Task]) -> None:
    """Each old task adds its mean distillation loss times the strength, the first one too."""
    learner = Lwf(strength=2.0)
    run = Stream(learner, three_tasks[: olds + 1])
    for task in three_tasks[:olds]:
        learner.start(task)
        learner.finish(task)
    new = three_tasks[olds]
    learner.start(new)
    teacher = copy.deepcopy(run.model.encoder).eval()
    moved(run)
    run.model.eval()
    batch = rows_of(new)
    with torch.no_grad():
        before, now, terms = teacher(batch), run.model.encoder(batch), []
        for old in three_tasks[:olds]:
            head = run.model.head(old.name)
            outputs = head(now), head(before)
            terms.append(distillation_loss(old, *outputs, 2.0).mean().item())
        found = learner.loss(batch).item() - batch_loss(batch, run.model(batch)).item()
    assert found == pytest.approx(2.0 * sum(terms), rel=1e-4)


def test_derpp_draws_twice(three_tasks: list[Task]) -> None:
    """Logits and labels are those of two separate draws; the first one's logits are compared."""
    learner = Derpp(budget=12, replayed=6)
    run = Stream(learner, three_tasks[:2])
    learner.start(three_tasks[0])
    learner.finish(three_tasks[0])
    learner.start(three_tasks[1])
    drawn = []
    for batch in learner.training_batches(three_tasks[1], Epoch(0, 1, SHORT)):
        one, two = batch.remembered.input_ids.split(6)
        split, rows = learner.stored.rows_of(three_tasks[0]), batch.remembered.labels[3][:6]
        dark = collate([(three_tasks[0], split, rows.numpy())], 0)
        assert torch.equal(one[:, : dark.width], dark.input_ids)
        drawn.append({tuple(row) for row in one.tolist()} == {tuple(row) for row in two.tolist()})
    assert not any(drawn)
    assert run.learner.shared_tensors["a"].shape == (12, 2)


def test_replay_draws_tasks_by_the_weights_that_it_says() -> None:
    """``proportional``: 8 and 72 rows give a tenth and nine tenths of what is replayed."""
    tasks = [made_task("a", 2, 8), made_task("b", 3, 72), made_task("c", 2, 160)]
    learner = Replay(sampling="proportional", budget="all", replayed=10)
    Stream(learner, tasks)
    for task in tasks[:2]:
        learner.start(task)
        learner.finish(task)
    learner.start(tasks[2])
    counts = {"a": 0, "b": 0}
    for epoch in range(4):
        for batch in learner.training_batches(tasks[2], Epoch(epoch, 4, SHORT)):
            own = batch.remembered.labels[0]
            counts["a"] += int((own == 0).sum())
            counts["b"] += int((own == 1).sum())
    assert counts["a"] + counts["b"] == 4 * 20 * 10
    assert counts["b"] / 800 == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / 800))


def test_a_budget_is_per_task_and_the_sample_the_run_s_own() -> None:
    tasks, kept = [made_task("a"), made_task("b")], []
    for seed in (0, 1):
        learner = Replay(budget=6)
        Stream(learner, tasks, seed=seed)
        for task in tasks:
            learner.start(task)
            learner.finish(task)
        assert learner.stored.examples == 12
        kept.append(kept_rows(learner.stored, tasks[0]))
    assert kept[0] != kept[1]
    learner = Replay(budget="all")
    Stream(learner, tasks)
    learner.start(tasks[0])
    learner.finish(tasks[0])
    assert learner.stored.examples == 24


# --- few entries


@pytest.mark.parametrize("learner", [LtSft(fraction=0.1), DiffPruning(fraction=0.1)])
def test_the_largest_changes_are_chosen_and_the_rest_taken_back(learner: Sparse) -> None:
    """By size, whatever the sign; gradients elsewhere are 0, and so is what a step does there."""
    task = made_task("a")
    run = Stream(learner, [task])
    learner.start(task)
    first = {n: t.clone() for n, t in learner.task_parameters.first.items()}
    moved(run)
    changes = {n: p.detach() - first[n] for n, p in learner.read_parameters.items()}
    learner._choose()
    sizes = torch.cat([change.abs().flatten() for change in changes.values()])
    count = round(0.1 * len(sizes))
    least = sizes.sort(descending=True).values[count - 1]
    assert sum(int(mask.sum()) for mask in learner.chosen.values()) == count
    for name, change in changes.items():
        assert torch.equal(learner.chosen[name], change.abs() >= least), name
        elsewhere = ~learner.chosen[name]
        now = learner.read_parameters[name]
        assert torch.equal(now[elsewhere], first[name][elsewhere])
        now.grad = torch.ones_like(now)
    learner.after_backward(rows_of(task))
    for name, parameter in learner.read_parameters.items():
        assert torch.equal(parameter.grad, learner.chosen[name].float())
    moved(run)
    learner.after_step(rows_of(task))
    for name, parameter in learner.read_parameters.items():
        assert torch.equal(parameter != first[name], learner.chosen[name])


def test_a_stored_difference_is_what_was_learned() -> None:
    """First + difference is what the encoder held, but for rounding; it is what serves, exactly."""
    task = made_task("a")
    learner = LtSft()
    run = Stream(learner, [task])
    learner.start(task)
    moved(run)
    held = {name: p.detach().clone() for name, p in learner.read_parameters.items()}
    learner.finish(task)
    served = learner.task_parameters.values("a")
    for name, parameter in learner.read_parameters.items():
        torch.testing.assert_close(served[name], held[name], rtol=1e-5, atol=1e-6)
        assert torch.equal(served[name], parameter)


# --- what follows from the hooks


def test_batches_are_those_of_the_seed_and_the_epoch() -> None:
    task, found = made_task("a"), []
    for seed, epoch in ((0, 0), (0, 0), (1, 0), (0, 1)):
        learner = Adapter(size=2)
        Stream(learner, [task], seed=seed)
        batches = learner.training_batches(task, Epoch(epoch, 2, SHORT))
        found.append([batch.input_ids.tolist() for batch in batches])
    assert found[0] == found[1]
    assert found[2] != found[0]
    assert found[3] != found[0]


def test_what_is_loaded_replaces_what_was_there(three_tasks: list[Task]) -> None:
    learner = Ewc()
    Stream(learner, three_tasks)
    learner.shared_tensors["weight.of another run"] = torch.ones(1)
    learner.load_shared_state({"kept.weight.x": torch.zeros(2)})
    assert list(learner.shared_tensors) == ["weight.x"]
    learner.fit_tensors["there"] = place = torch.zeros(2)
    learner.load_fit_state({"there": torch.ones(2), "new": torch.full((1,), 3.0)})
    assert learner.fit_tensors["there"] is place
    assert place.tolist() == [1.0, 1.0]
    assert learner.fit_tensors["new"].tolist() == [3.0]


def test_what_the_loss_reads_besides_the_encoder_has_its_gradient_in_bf16(
    three_tasks: list[Task],
) -> None:
    """O-LoRA's overlap is of the float32 maps themselves: its gradient adds to the copy's."""
    found = []
    for orthogonality in (0.0, 1e3):
        learner = OLora(orthogonality=orthogonality)
        model = TaskModel(tiny_encoder(), 0, 0.0, precision="bf16")
        learner.attach(model, tasks=three_tasks[:2], seed=0, pad_id=0)
        learner.start(three_tasks[0])
        learner.finish(three_tasks[0])
        learner.start(three_tasks[1])
        model.eval()
        model.sync_bf16_copy()
        with model.computing():
            learner.loss(rows_of(three_tasks[1])).backward()
        named = {n: p for n, p in model.encoder.named_parameters() if ".b.down." in n}
        found.append({name: p.grad.clone() for name, p in named.items()})
        if orthogonality:
            for parameter in named.values():
                parameter.grad = None
            (orthogonality * learner.overlap()).backward()
            for name, parameter in named.items():
                torch.testing.assert_close(found[1][name] - found[0][name], parameter.grad)
                assert parameter.grad.abs().max() > 1


@pytest.mark.parametrize("place", [-1, 7])
def test_a_difference_outside_of_its_tensor_is_refused(place: int) -> None:
    learner = LtSft()
    Stream(learner, [made_task("a")])
    parameters = learner.task_parameters
    name, tensor = next(iter(parameters.working.items()))
    size = tensor.numel()
    found = torch.tensor([0, size if place > 0 else place], dtype=torch.int32)
    state = {f"{name}.indices": found, f"{name}.values": torch.ones(2)}
    with pytest.raises(ValueError, match=f"do not fit {size} entries"):
        parameters.load("a", state)
