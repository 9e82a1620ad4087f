"""L2P: which prompts a text takes, what the loss adds, what is counted."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stream.data.batching import collate
from stream.data.task import Task
from stream.errors import UserError
from stream.learners.l2p import L2p
from stream.learners.prompt_tuning import PromptTuning
from stream.models.task_model import TaskModel
from stream.run.accounting import count_stored
from stream.training.flops import FlopMeter
from tests.builders import Stream, made_task, tiny_encoder
from tests.contract.from_disk import check_goes_on, evidence
from tests.learners.test_prompt_tuning import FAMILIES, batch_of

TEXTS = [[5, 23, 31, 9, 11], [7, 41, 8], [50, 14, 14, 30]]


def rows(task: Task, count: int = 8):
    return collate([(task, task.split("train"), np.arange(count))], 0)


def distances(query: torch.Tensor, keys: torch.Tensor) -> np.ndarray:
    """1 - cos, [B, M], float64."""
    q, k = (t.detach().double().numpy() for t in (query, keys))
    norms = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(k, axis=1)
    return 1 - q @ k.T / norms


@pytest.mark.parametrize("family", ["bert", "mpnet", "electra"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_text_takes_the_prompts_of_the_nearest_keys(family: str, pooling: str) -> None:
    """As a pass on embeddings with those behind the first token, the nearest first; float64."""
    shape = {"model_type": family, **FAMILIES[family]}
    plain = tiny_encoder(**shape).double().eval()
    plain.pooling = pooling
    encoder = tiny_encoder(**shape)
    encoder.pooling = pooling
    model, task = TaskModel(encoder, 0), made_task("a")
    learner = L2p(pool=7, length=2, taken=3)
    learner.attach(model, tasks=[task], seed=0, pad_id=1)
    encoder.double().eval()
    pool: Any = encoder.prompt
    batch = batch_of(TEXTS, 8)
    found, _ = encoder.states(batch)
    near = distances(plain(batch), pool.keys).argsort(axis=1)[:, :3]
    assert len({tuple(row) for row in near.tolist()}) > 1
    body: Any = plain.body
    start = 2 if family == "mpnet" else 0
    for row, text in enumerate(TEXTS):
        prompt = pool.prompts.detach()[near[row]].flatten(0, 1)
        embedded = body.get_input_embeddings().weight[torch.tensor(text)]
        whole = torch.cat([embedded[:1], prompt, embedded[1:]])[None]
        positions = torch.tensor([[0, *[0] * 6, *range(1, len(text))]]) + start
        with torch.no_grad():
            hidden = body(
                inputs_embeds=whole,
                attention_mask=torch.ones(1, whole.shape[1], dtype=torch.int64),
                position_ids=positions,
            ).last_hidden_state[0]
        own = torch.cat([hidden[:1], hidden[7:]])
        expected = own[0] if pooling == "cls" else own.mean(0)
        torch.testing.assert_close(found[row].detach(), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("pull", [0.5, 0.2])
def test_the_loss_adds_the_distance_from_the_keys_taken(pull: float) -> None:
    """pull times the sum over keys taken of 1 - cos, the mean over texts; of the keys alone."""
    task = made_task("a")
    run, batch = Stream(L2p(pull=pull, pool=7, taken=3), [task]), rows(task)
    run.learner.start(task)
    run.model.eval()
    pool: Any = run.model.encoder.prompt
    with torch.no_grad():
        whole = run.learner.loss(batch)
        run.learner.pull = 0.0
        added = (whole - run.learner.loss(batch)).item()
    near = np.sort(distances(tiny_encoder().eval()(batch), pool.keys), axis=1)[:, :3]
    assert added == pytest.approx(pull * near.sum(1).mean(), rel=1e-4)
    run.learner.loss(batch).backward()
    assert not pool.keys.grad.any()  # no other way leads to them
    run.learner.pull = pull
    run.learner.loss(batch).backward()
    assert pool.keys.grad.any()


def test_the_query_is_the_frozen_encoder_s_without_dropout() -> None:
    """While learning too; dropout is on again behind it."""
    task = made_task("a")
    run, batch, seen = Stream(L2p(), [task]), rows(task), []
    run.learner.start(task)
    run.model.encoder.prompt.register_forward_pre_hook(lambda m, args: seen.append(args[1]))
    run.model.train()
    texts = [run.model.encoder(batch) for _ in range(2)]
    expected = tiny_encoder().eval()(batch)
    for query in seen:
        torch.testing.assert_close(query, expected)
        assert not query.requires_grad
    assert not torch.equal(texts[0], texts[1])
    assert all(module.training for module in run.model.encoder.modules())


def test_the_second_pass_is_counted() -> None:
    """What a prompt of as many vectors costs, one pass without any, and the distances."""
    task = made_task("a")
    batch, counted = rows(task), []
    for learner in (L2p(pool=7, length=2, taken=3), PromptTuning(length=6), None):
        run = Stream(learner or PromptTuning(), [task])
        if learner is None:
            run.model.encoder.prompt = None
        meter = FlopMeter(run.model)
        with meter.everything():
            run.model.encoder(batch)
        counted.append(meter.total)
    pooled, prompted, plain = counted
    assert pooled == prompted + plain + 2 * 8 * 16 * 7  # texts, width, keys


def test_a_pool_is_trained_and_stored_once(three_tasks: list[Task]) -> None:
    learner = L2p(pool=7, length=2, taken=3)
    run = Stream(learner, three_tasks)
    whole = sum(run.model.encoder.get_parameter(n).numel() for n in run.model.encoder.pretrained)
    run.finish()
    pool = 7 * (2 * 16 + 16)
    assert learner.num_trained(three_tasks[-1]) == pool + 17
    stored, _ = count_stored(learner.stored_states(three_tasks))
    assert stored == whole + pool + 17 * (2 + 5 + 1)


def test_diversified_choices_are_those_of_the_equation(three_tasks: list[Task]) -> None:
    """While learning by distance times the share of earlier tasks' choices; served by distance."""
    learner = L2p(pool=7, length=1, taken=2, diversify=True)
    run = Stream(learner, three_tasks)
    pool: Any = run.model.encoder.prompt
    share, counts = np.ones(7), np.zeros(7)
    passes: list[int] = []

    def check(module: Any, args: Any, output: torch.Tensor) -> None:
        far = distances(args[1], module.keys)
        ranked = far * share if module.training else far
        taken = learner._match.taken.numpy()
        found = np.take_along_axis(ranked, taken, axis=1)
        np.testing.assert_allclose(found, np.sort(ranked, axis=1)[:, :2], atol=1e-6)
        plain = np.take_along_axis(far, taken, axis=1).sum(1)
        np.testing.assert_allclose(learner._match.distance.detach(), plain, atol=1e-5)
        if module.training:
            counts[:] += np.bincount(taken.ravel(), minlength=7)
        passes.append(module.training)

    pool.register_forward_hook(check)
    for index in range(3):
        run.learn(index)
        share = counts / counts.sum()
        np.testing.assert_array_equal(learner.shared_tensors["selected"], counts)
    assert 0 < sum(passes) < len(passes)
    assert counts.sum() == 3 * 2 * 16 * 2  # tasks, epochs, rows, prompts
    stored, _ = count_stored(learner.stored_states(three_tasks))
    run.learner.shared_tensors.clear()
    assert stored == count_stored(learner.stored_states(three_tasks))[0] + 7


def test_diversified_choices_go_on_bit_for_bit(three_tasks: list[Task], tmp_path: Path) -> None:
    make = partial(L2p, diversify=True, lr=0.1)
    run = Stream(make(), three_tasks)
    run.finish()
    check_goes_on(make, three_tasks, evidence(run, three_tasks), tmp_path)


def test_a_text_cannot_take_more_than_there_are() -> None:
    with pytest.raises(UserError, match=r"learner.taken must be at most learner.pool=4, got 5"):
        Stream(L2p(pool=4), [made_task("a")])
