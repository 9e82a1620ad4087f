"""The bf16 copy that computes for float32 weights; on a CPU, which computes in bf16 too."""

import numpy as np
import pytest
import torch

from stream.data.batches import collate
from stream.evaluation.evaluate import evaluate
from stream.learners.adapter import Adapter
from stream.learners.finetune import Finetune
from stream.learners.replay import Replay
from stream.models.heads import TaskModel
from stream.training.loop import fit
from tests.conftest import CPU, SHORT, made_task, tiny_encoder


def begun(learner, *, precision: str, tasks):
    model = TaskModel(tiny_encoder(), 0, dropout=0.0, precision=precision)
    learner.attach(model, tasks=tasks, seed=0, pad_id=0)
    return learner


def gradients(precision: str) -> tuple[float, dict[str, torch.Tensor]]:
    """Loss and gradients of one batch, without dropout."""
    task = made_task("a", 3)
    learner = begun(Adapter(init_std=0.1), precision=precision, tasks=[task])
    learner.start(task)
    learner.model.eval()
    learner.model.sync_bf16_copy()
    batch = collate([(task, task.split("train"), np.arange(8))], 0)
    with learner.model.computing():
        loss = learner.loss(batch)
        loss.backward()
    found = {n: p.grad for n, p in learner.trained_parameters().items() if p.grad is not None}
    assert found.keys() == learner.trained_parameters().keys()
    return loss.item(), found


def test_loss_and_gradients_are_those_of_float32_but_for_rounding() -> None:
    expected, exact = gradients("float32")
    loss, found = gradients("bf16")
    assert loss == pytest.approx(expected, rel=1e-2)
    assert loss != expected
    for name, gradient in found.items():
        assert gradient.dtype == torch.float32
        assert (gradient - exact[name]).norm() <= 0.1 * exact[name].norm() + 1e-4, name


def test_a_look_at_scores_within_a_task_does_not_switch_dropout_off() -> None:
    task = made_task("a", 2)
    learner = begun(Adapter(), precision="bf16", tasks=[task])
    learner.start(task)
    learner.model.train()
    learner.model.sync_bf16_copy()
    batch = collate([(task, task.split("train"), np.arange(8))], 0)

    def losses() -> set[float]:
        with learner.model.computing():
            return {learner.loss(batch).item() for _ in range(4)}

    assert len(losses()) > 1
    evaluate(learner, task, "test", 512, CPU)
    assert len(losses()) > 1


@pytest.mark.parametrize("make", [Adapter, Finetune, Replay])
def test_what_is_stored_stays_float32_and_is_what_serves(make) -> None:
    tasks = [made_task("a", 2), made_task("b", 5)]
    learner = begun(make(), precision="bf16", tasks=tasks)
    names = {name for name, _ in learner.model.named_parameters()}
    cells = {}
    for task in tasks:
        fit(learner, task, SHORT)
        cells[task.name] = evaluate(learner, task, "test", 512, CPU)
        for other in learner.learned:  # reading another task leaves no trace in this one
            evaluate(learner, other, "test", 512, CPU)
        assert evaluate(learner, task, "test", 512, CPU).digest == cells[task.name].digest
    if learner.tags.parameter_isolation:
        assert evaluate(learner, tasks[0], "test", 512, CPU).digest == cells["a"].digest
    state = learner.served_state("a")
    assert {tensor.dtype for tensor in state.values()} == {torch.float32}
    grown = {name for name, _ in learner.model.named_parameters()} - names
    assert {name.partition(".")[0] for name in grown} == {"heads"}
