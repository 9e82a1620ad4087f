"""Texts of thousands of tokens: widths, positions, one step and one evaluation."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from stream.config.backbone import BackboneConfig
from stream.config.run import TrainingConfig
from stream.data.batching import collate, padded_length
from stream.data.task import Split, Task
from stream.errors import UserError
from stream.evaluation.evaluate import logits_of
from stream.learners.adapter import Adapter
from stream.models.encoder import load_encoder
from stream.models.pretrained import check_backbone
from stream.models.task_model import TaskModel
from stream.training.captured import WIDTHS, graph_width
from stream.training.loop import fit
from tests.builders import CPU, TINY, VOCABULARY, made_spec

LONGEST = 8192
SHAPE = {**TINY, "num_hidden_layers": 1, "num_attention_heads": 1}
LONG = BackboneConfig(
    "long", "random", shape={**SHAPE, "max_position_embeddings": LONGEST}, pooling="mean"
)


def long_task(*lengths: int) -> Task:
    """A row of each length."""
    tokens = np.random.default_rng(0).integers(5, VOCABULARY, sum(lengths)).astype(np.int32)
    ends = np.cumsum([0, *lengths], dtype=np.int64)
    split = Split(tokens, ends, np.array(lengths, np.int32), np.arange(len(lengths)) % 2)
    return Task("long", made_spec(), {"train": split, "test": split}, {})


@pytest.mark.parametrize("most", [None, 512, 514, 2000, 8192, 32768])
def test_a_graph_has_little_padding_and_there_are_few(most: int | None) -> None:
    batches = range(8, 1 + (most or 20_000), 8)
    found = [graph_width(width, most) for width in batches]
    assert all(width <= wide for width, wide in zip(batches, found, strict=True))
    assert all(wide <= -(-(most or 10**9) // 8) * 8 for wide in found)
    for width, wide in zip(batches, found, strict=True):
        assert wide - width <= (wide / 4 if width > 512 else wide / 2), (width, wide)
    assert len(set(found)) <= 40
    assert sorted(found) == found
    assert {w for w in found if w <= 512} == set(WIDTHS[:10])  # those of short texts as ever


def test_a_batch_that_fits_a_graph_or_needs_more_than_there_are_positions_is_not_padded() -> None:
    assert [graph_width(width, None) for width in WIDTHS] == list(WIDTHS)
    assert graph_width(520, 514) == 520  # 514 tokens, in eights


def test_padding_of_long_texts_is_coarser() -> None:
    lengths = np.arange(1, LONGEST + 1)
    found = np.array([padded_length(lengths[i : i + 1]) for i in range(LONGEST)])
    assert (found[:512] == -(-lengths[:512] // 8) * 8).all()
    assert (found >= lengths).all()
    assert ((found - lengths) / found < 1 / 8)[512:].all()
    assert len(set(found)) == 64 + 120


def test_a_text_may_have_as_many_tokens_as_there_are_positions() -> None:
    check_backbone(replace(LONG, max_length=LONGEST))
    with pytest.raises(UserError, match=r"max_length=8193: 'long' has positions for 8192 tokens"):
        check_backbone(replace(LONG, max_length=LONGEST + 1))


@pytest.mark.slow
def test_one_step_and_one_evaluation_of_long_rows() -> None:
    """Of as many tokens as there are positions; attention to half as many takes a quarter."""
    most = LONGEST // 2
    shape = {**SHAPE, "max_position_embeddings": most}
    task = long_task(most)
    learner = Adapter(lr=1e-2)
    encoder = load_encoder(replace(LONG, shape=shape), vocabulary_size=VOCABULARY)
    learner.attach(TaskModel(encoder, 0), tasks=[task], seed=0, pad_id=0)
    before = {name: p.detach().clone() for name, p in encoder.named_parameters()}
    (loss,) = fit(learner, task, TrainingConfig(epochs=1, min_steps=0)).losses
    assert np.isfinite(loss)
    changed = {n for n, p in encoder.named_parameters() if not torch.equal(p, before[n])}
    assert changed == {n for n in before if learner.trains(n)}
    (alone,) = logits_of(learner, [task], "test", 512, CPU)  # longer than the budget
    batch = collate([(task, task.split("test"), np.array([0]))], 0)
    ids = batch.input_ids.clone()
    ids[0, -1] = 5 + (ids[0, -1] + 1) % (VOCABULARY - 5)
    learner.model.eval()
    with torch.no_grad():
        (other,) = learner.model(replace(batch, input_ids=ids))
    assert not np.array_equal(alone, other.numpy())  # the last token is read
    rows = long_task(600, 9, 1000)  # padded to 640, 16 and 1024, and to 1024
    apart, together = (logits_of(learner, [rows], "test", most, CPU)[0] for most in (512, 4096))
    np.testing.assert_allclose(apart, together, rtol=1e-4, atol=1e-5)
