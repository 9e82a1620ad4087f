"""BERT, RoBERTa, ELECTRA, MPNet and DistilBERT against forward passes written by hand."""

import math
from typing import Any

import pytest
import torch

from tests.models.reference import bert as by_hand
from tests.models.reference import check
from tests.models.reference.low_rank import Add, by_name, check_low_rank
from tests.models.reference.post_norm import BERT

SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 24,
}
DISTILBERT = {
    "model_type": "distilbert",
    "dim": 16,
    "n_layers": 2,
    "n_heads": 2,
    "hidden_dim": 24,
    "max_position_embeddings": 24,
}
BERT_ADD = by_name(BERT, "encoder.layer")
FAMILIES: dict[str, tuple[dict[str, Any], check.Reference, Any, Add]] = {
    "bert": ({**SHAPE, "model_type": "bert"}, by_hand.bert, by_hand.bert_maps, BERT_ADD),
    "roberta": (
        {**SHAPE, "model_type": "roberta", "type_vocab_size": 1},
        by_hand.roberta,
        by_hand.bert_maps,
        BERT_ADD,
    ),
    "electra": (
        {**SHAPE, "model_type": "electra", "embedding_size": 8},
        by_hand.bert,
        by_hand.bert_maps,
        BERT_ADD,
    ),
    "mpnet": (
        {**SHAPE, "model_type": "mpnet"},
        by_hand.mpnet,
        by_hand.mpnet_maps,
        by_name(by_hand.MPNET, "encoder.layer"),
    ),
    "distilbert": (
        DISTILBERT,
        by_hand.distilbert,
        by_hand.distilbert_maps,
        by_name(by_hand.DISTILBERT, "transformer.layer"),
    ),
}
each = pytest.mark.parametrize(
    ("shape", "reference", "maps", "add"), FAMILIES.values(), ids=FAMILIES
)


@each
def test_states_and_maps_are_those_of_the_definition(
    shape: Any, reference: check.Reference, maps: Any, add: Add
) -> None:
    check.check_states(shape, reference)
    check.check_maps(shape, maps)
    check.check_prompt(shape, reference, by_hand)
    check_low_rank(shape, reference, add)


@each
def test_adapters_are_before_the_residual(
    shape: Any, reference: check.Reference, maps: Any, add: Add
) -> None:
    del maps, add
    check.check_adapters(shape, reference)
    check.check_identity(shape)


@each
def test_padding_and_masks(shape: Any, reference: check.Reference, maps: Any, add: Add) -> None:
    del reference, maps, add
    check.check_padding(shape)
    check.check_masks(shape)


def test_sinusoidal_positions_of_distilbert() -> None:
    shape = {**DISTILBERT, "sinusoidal_pos_embds": True}
    body: Any = check.load(shape).body
    expected = [
        [(math.cos if i % 2 else math.sin)(place / 10000 ** (2 * (i // 2) / 16)) for i in range(16)]
        for place in range(24)
    ]
    found = body.embeddings.position_embeddings.weight
    torch.testing.assert_close(found.detach(), torch.tensor(expected), rtol=0, atol=1e-6)
