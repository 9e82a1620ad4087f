"""HAT: its equations against numpy in float64, and what its gates protect, bit for bit."""

import numpy as np
import pytest
import torch

from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.learners.hat import Hat
from stream.learners.workload import Epoch
from stream.models.losses import batch_loss
from stream.models.modules.hard_attention import AttendedSubLayer
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import SHORT, Stream

SIZE, WIDTH, ADAPTERS = 12, 16, 4


def adapters(run: Stream) -> dict[str, AttendedSubLayer]:
    return run.learner._adapters


def numbers(module: AttendedSubLayer, task: str) -> list[np.ndarray]:
    """e of the units and of the outputs, float64."""
    gates = module.of(task)
    return [e.detach().double().numpy() for e in (gates.units, gates.outputs)]


def rows_of(task: Task) -> Batch:
    return collate([(task, task.split("train"), np.arange(8))], 0)


def half_learned(three_tasks: list[Task], **settings) -> Stream:
    """Two tasks learned; the third one begun, without dropout."""
    run = Stream(Hat(size=SIZE, **settings), three_tasks)
    for task in three_tasks[:2]:
        fit(run.learner, task, SHORT)
    run.learner.start(three_tasks[2])
    for module in run.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return run


def used(module: AttendedSubLayer) -> list[np.ndarray]:
    """Which units and outputs of an adapter the first two tasks use."""
    of_tasks = zip(numbers(module, "a"), numbers(module, "b"), strict=True)
    return [(one > 0) | (other > 0) for one, other in of_tasks]


def test_s_rises_within_each_epoch(three_tasks: list[Task]) -> None:
    """16 rows in batches of 5 are 4 batches; section 2.4 counts them from 1."""
    learner = Hat(size=SIZE, s_max=100.0)
    Stream(learner, three_tasks[:1])
    learner.start(three_tasks[0])
    schedule = TrainingConfig(epochs=2, min_steps=0, batch_size=5)
    for index in range(2):
        batches = learner.training_batches(three_tasks[0], Epoch(index, 2, schedule))
        found = [learner._scale.s.item() for _ in batches]
        expected = [1 / 100 + (100 - 1 / 100) * (b - 1) / (4 - 1) for b in (1, 2, 3, 4)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_an_adapter_with_gates_computes_what_it_says(
    training: bool, three_tasks: list[Task]
) -> None:
    run = half_learned(three_tasks)
    module = next(iter(adapters(run).values()))
    run.model.train(training)
    run.learner._scale.set(3.0)
    with torch.no_grad():
        for parameter in module.adapter.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(0))
    hidden = torch.randn(2, 3, WIDTH, generator=torch.Generator().manual_seed(1))
    units, outputs = (
        1 / (1 + np.exp(-3.0 * e)) if training else (e > 0) for e in numbers(module, "c")
    )
    named = {n: p.detach().double().numpy() for n, p in module.adapter.named_parameters()}
    x = hidden.double().numpy()
    inner = torch.from_numpy(x @ named["down.weight"].T + named["down.bias"])
    inner = torch.nn.functional.gelu(inner).numpy() * units
    expected = x + (inner @ named["up.weight"].T + named["up.bias"]) * outputs
    found = run.model.encoder.sublayers()[0].end(hidden)  # no dropout: its hook alone
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-4, atol=1e-5)


def test_gradients_are_protected_as_equation_2_says(three_tasks: list[Task]) -> None:
    run = half_learned(three_tasks)
    for parameter in run.learner.shared_parameters().values():
        parameter.grad = torch.ones_like(parameter)
    run.learner.after_backward(rows_of(three_tasks[2]))
    for module in adapters(run).values():
        units, outputs = used(module)
        down, up = module.adapter.down, module.adapter.up
        for i in range(SIZE):
            free = 1.0 - units[i]
            assert down.bias.grad[i] == free
            assert (down.weight.grad[i] == free).all()
        for i in range(WIDTH):
            assert up.bias.grad[i] == 1.0 - outputs[i]
            for j in range(SIZE):
                assert up.weight.grad[i, j] == 1.0 - min(outputs[i], units[j])
        assert 0 < units.sum() < SIZE
        assert 0 < outputs.sum() < WIDTH


@pytest.mark.parametrize(("s", "c"), [(0.5, 0.75), (20.0, 0.1)])
def test_new_units_cost_what_equation_5_says(s: float, c: float, three_tasks: list[Task]) -> None:
    run = half_learned(three_tasks, c=c)
    run.learner._scale.set(s)
    above, below = 0.0, 0.0
    for module in adapters(run).values():
        for e, taken in zip(numbers(module, "c"), used(module), strict=True):
            above += (1 / (1 + np.exp(-s * e)) * (1 - taken)).sum()
            below += (1 - taken).sum()
    batch = rows_of(three_tasks[2])
    found = run.learner.loss(batch).item() - batch_loss(batch, run.model(batch)).item()
    assert found == pytest.approx(c * above / below, rel=1e-3)
    assert below < ADAPTERS * (SIZE + WIDTH)


@pytest.mark.parametrize("s", [1 / 400, 7.0, 400.0])
def test_gradients_of_gates_are_compensated(s: float, three_tasks: list[Task]) -> None:
    """Section 2.5; exponents above 50 are cut, as in the released code."""
    run = half_learned(three_tasks)
    run.learner._scale.set(s)
    gates = run.learner.task_modules("c")
    for e in gates.values():
        e.grad = torch.full_like(e, 0.5)
    run.learner.after_backward(rows_of(three_tasks[2]))
    for parameter in gates.values():
        e = parameter.detach().double().numpy()
        steep = np.cosh(np.clip(s * e, -50, 50)) + 1
        expected = 0.5 * 400 / s * steep / (np.cosh(e) + 1)
        np.testing.assert_allclose(parameter.grad, expected, rtol=1e-4)
    with torch.no_grad():
        next(iter(gates.values()))[:2] = torch.tensor([9.0, -9.0])
    run.learner.after_step(rows_of(three_tasks[2]))
    assert next(iter(gates.values()))[:2].tolist() == [6.0, -6.0]


def test_what_a_task_uses_stays_bit_for_bit_and_the_rest_is_free(three_tasks: list[Task]) -> None:
    """Weight decay and momentum included; so all logits stay, though shared weights change."""
    run = half_learned(three_tasks, lr=1e-2)
    task = three_tasks[0]
    expected, shared = run.evaluate(task).digest, run.learner.shared_parameters()
    before = {name: p.detach().clone() for name, p in shared.items()}
    fit(run.learner, three_tasks[2], TrainingConfig(epochs=4, batch_size=8, weight_decay=0.1))
    assert run.evaluate(task).digest == expected
    for name, module in adapters(run).items():
        units, outputs = (torch.from_numpy(gate) for gate in used(module))
        up, down = f"{name}.up.weight", f"{name}.down.weight"
        moved = shared[up] != before[up]
        assert not moved[outputs][:, units].any()
        assert moved[~outputs].all()
        assert torch.equal((shared[down] != before[down]).any(1), ~units)
    with torch.no_grad():  # what its gates close has no influence at all
        for module in adapters(run).values():
            units, outputs = (torch.from_numpy(e > 0) for e in numbers(module, "a"))
            module.adapter.down.weight[~units] = 7.0
            module.adapter.up.weight[~outputs] = 7.0
            module.adapter.up.weight[:, ~units] = 7.0
    assert run.evaluate(task).digest == expected


def test_gates_are_each_task_s_own_and_adapters_are_stored_once(three_tasks: list[Task]) -> None:
    run = half_learned(three_tasks)
    stored = [count_stored(run.learner.stored_states(three_tasks[:n]))[0] for n in (1, 2)]
    assert stored[1] - stored[0] == ADAPTERS * (SIZE + WIDTH) + 5 * (WIDTH + 1)
    own = run.learner.task_state("a")
    assert sum(t.numel() for t in own.values()) == ADAPTERS * (SIZE + WIDTH) + 2 * (WIDTH + 1)


def test_a_larger_c_leaves_more_units_unused(three_tasks: list[Task]) -> None:
    found = []
    for c in (0.0, 10.0):
        run = Stream(Hat(size=SIZE, c=c), three_tasks[:1])
        fit(run.learner, three_tasks[0], TrainingConfig(epochs=8, min_steps=0, batch_size=8))
        taken = [(e > 0).mean() for m in adapters(run).values() for e in numbers(m, "a")]
        found.append(np.mean(taken))
    assert found[1] < 0.8 * found[0]
