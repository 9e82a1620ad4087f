"""Prompt tuning against a forward pass on token ids: a prompt of known tokens' embeddings."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from stream.data.batch import TokenBatch
from stream.data.task import Task
from stream.learners.prompt_tuning import PromptTuning
from stream.models.encoder import Encoder
from stream.models.modules.prompt import SoftPrompt
from stream.seeding import torch_generator
from stream.training.loop import fit
from tests.builders import SHORT, Stream, made_task, tiny_encoder

FAMILIES = {
    "bert": {},
    "roberta": {"pad_token_id": 1, "type_vocab_size": 1},
    "electra": {"embedding_size": 8},
    "mpnet": {"pad_token_id": 1},
}


def prompted(family: str, tokens: list[int]) -> tuple[Encoder, Any]:
    """An encoder with a prompt of these tokens' embeddings, and its body; float64."""
    encoder = tiny_encoder(model_type=family, **FAMILIES[family]).double().eval()
    prompt = SoftPrompt(encoder, len(tokens))
    body: Any = encoder.body
    with torch.no_grad():
        prompt.vectors = torch.nn.Parameter(body.get_input_embeddings().weight[tokens].clone())
    encoder.insert_prompt(prompt)
    return encoder, body


def batch_of(rows: list[list[int]], width: int, pad: int = 1) -> TokenBatch:
    ids = torch.full((len(rows), width), pad)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return TokenBatch(ids, mask, torch.zeros_like(ids), ())


@pytest.mark.parametrize("family", FAMILIES)
def test_is_the_forward_pass_with_those_tokens_behind_the_first(family: str) -> None:
    """Each token at its own position; the prompt's tokens at the first one."""
    encoder, body = prompted(family, [41, 17])
    text = [5, 23, 31, 9]
    texts, tokens = encoder.states(batch_of([text], 8))
    start = 2 if family in ("roberta", "mpnet") else 0
    with torch.no_grad():
        expected = body(
            input_ids=torch.tensor([[5, 41, 17, 23, 31, 9]]),
            attention_mask=torch.ones(1, 6, dtype=torch.int64),
            position_ids=torch.tensor([[0, 0, 0, 1, 2, 3]]) + start,
        ).last_hidden_state
    torch.testing.assert_close(texts, expected[:, 0], rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(tokens[:, :4], expected[:, [0, 3, 4, 5]], rtol=1e-9, atol=1e-11)
    assert tokens.shape[1] == 8


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_and_neighbours_change_nothing(family: str) -> None:
    encoder, _ = prompted(family, [41, 17, 8])
    alone, _ = encoder.states(batch_of([[5, 23, 31]], 3))
    wide, _ = encoder.states(batch_of([[5, 23, 31], [5, 9, 9, 9, 9, 9, 12]], 8))
    torch.testing.assert_close(wide[:1], alone, rtol=1e-9, atol=1e-11)


def test_starts_as_distinct_rows_of_the_vocabulary() -> None:
    encoder = tiny_encoder()
    prompt = SoftPrompt(encoder, 20)
    prompt.initialize(torch_generator(0, "any"))
    body: Any = encoder.body
    table = body.get_input_embeddings().weight
    rows = [int((table == vector).all(1).nonzero().item()) for vector in prompt.vectors]
    assert len(set(rows)) == 20


def test_trains_the_prompt_and_the_head_alone(three_tasks: list[Task]) -> None:
    run = Stream(PromptTuning(length=7), three_tasks)
    before = {n: p.detach().clone() for n, p in run.model.encoder.named_parameters()}
    run.finish()
    task = three_tasks[1]
    assert run.learner.num_trained(task) == 7 * 16 + (16 + 1) * 5
    assert set(run.learner.task_state("b")) == {
        "encoder.prompt.vectors",
        "heads.b.weight",
        "heads.b.bias",
    }
    for name, tensor in run.model.encoder.named_parameters():
        assert name == "prompt.vectors" or torch.equal(tensor, before[name])
    vectors = [run.learner.task_state(t.name)["encoder.prompt.vectors"] for t in three_tasks]
    assert not torch.equal(vectors[0], vectors[1])


def test_the_prompt_is_what_learns() -> None:
    """With a head that stays as it is, and one class, the loss falls through the prompt alone."""
    task = made_task("a", 2, 48)
    train = replace(task.split("train"), labels=np.zeros(48, np.int64))
    task = replace(task, splits={"train": train})
    run = Stream(PromptTuning(lr=0.1, head_lr=1e-12, length=8), [task])
    run.model.add_head(task)
    with torch.no_grad():
        run.model.head("a").weight.normal_(generator=torch.Generator().manual_seed(0))
    report = fit(run.learner, task, replace(SHORT, epochs=10))
    first, last = np.mean(report.losses[:6]), np.mean(report.losses[-6:])
    assert last < 0.8 * first
