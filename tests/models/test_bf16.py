"""The bf16 copy that computes for float32 weights; on a CPU, which computes in bf16 too."""

import numpy as np
import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModel

from stream.config.backbone import BackboneConfig
from stream.data.batching import collate
from stream.errors import UserError
from stream.evaluation.evaluate import evaluate
from stream.learners.adapter import Adapter
from stream.learners.bitfit import BitFit
from stream.learners.dora import Dora
from stream.learners.finetune import Finetune
from stream.learners.hat import Hat
from stream.learners.replay import Replay
from stream.learners.topk import TopK
from stream.models.bf16 import to_bf16
from stream.models.task_model import TaskModel
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import CPU, SHORT, TINY, made_task, tiny_encoder


def begun(learner, *, precision: str, tasks, storage: str = "float32"):
    model = TaskModel(tiny_encoder(), 0, dropout=0.0, precision=precision, storage=storage)
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


def learned(make, storage: str):
    """Losses and digests of two tasks, and the learner."""
    tasks = [made_task("a", 2), made_task("b", 5)]
    learner = begun(make(), precision="bf16", tasks=tasks, storage=storage)
    found = []
    for task in tasks:
        found.append(fit(learner, task, SHORT).losses)
        found += [evaluate(learner, other, "test", 512, CPU).digest for other in learner.learned]
    return learner, found


@pytest.mark.parametrize("make", [Adapter, BitFit, Dora, Hat, TopK])
def test_frozen_weights_stored_in_bf16_compute_the_same_bits(make) -> None:
    usual, expected = learned(make, "float32")
    learner, found = learned(make, "bf16")
    assert found == expected
    halves = dict(learner.model.bf16_encoder.named_parameters())
    for name, parameter in learner.model.encoder.named_parameters():
        changes = learner.trains(name) and learner.model.encoder.reads(name)
        assert (parameter.dtype == torch.float32) == changes, name
        shared = parameter.data_ptr() == halves[name].data_ptr()
        assert shared == (not changes), name
    for task in ("a", "b"):
        own = {tensor.dtype for tensor in learner.task_state(task).values()}
        assert own <= {torch.float32}
    before, now = (count_stored(each.stored_states(each.learned)) for each in (usual, learner))
    frozen = sum(p.numel() for p in halves.values() if not p.requires_grad)
    assert before[0] == now[0]
    assert 0 < before[1] - now[1] <= 2 * frozen


def test_storage_without_effect_is_refused() -> None:
    with pytest.raises(UserError, match=r"backbone.storage=bf16 has no effect with learner=finet"):
        begun(Finetune(), precision="bf16", tasks=[made_task("a")], storage="bf16")
    with pytest.raises(UserError, match=r"storage=bf16 has no effect .*; use backbone.precision=b"):
        BackboneConfig("tiny", "random", storage="bf16")


def test_positions_that_turn_stay_exact() -> None:
    """In bf16 the angles of a text's 8000th token would be off by whole turns."""
    shape = {"model_type": "llama", "num_key_value_heads": 2, "pad_token_id": 0}
    body = AutoModel.from_config(CONFIG_MAPPING["llama"](**{**TINY, **shape}))
    exact = {name: buffer.clone() for name, buffer in body.named_buffers()}
    to_bf16(body)
    assert any(buffer.is_floating_point() for buffer in exact.values())
    for name, buffer in body.named_buffers():
        assert torch.equal(buffer, exact[name])
        assert buffer.dtype == exact[name].dtype
    assert {parameter.dtype for parameter in body.parameters()} == {torch.bfloat16}
