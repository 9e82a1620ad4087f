"""BERT, RoBERTa, ELECTRA, MPNet and DistilBERT against forward passes written by hand."""

from typing import Any

import pytest

from tests.models.reference import check
from tests.models.reference.bert import bert, roberta

SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 24,
}
FAMILIES: dict[str, tuple[dict[str, Any], check.Reference]] = {
    "bert": ({**SHAPE, "model_type": "bert"}, bert),
    "roberta": ({**SHAPE, "model_type": "roberta", "type_vocab_size": 1}, roberta),
    "electra": ({**SHAPE, "model_type": "electra", "embedding_size": 8}, bert),
}
each = pytest.mark.parametrize(("shape", "reference"), FAMILIES.values(), ids=FAMILIES)


@each
def test_states_are_those_of_the_definition(shape: Any, reference: check.Reference) -> None:
    check.check_states(shape, reference)


@each
def test_adapters_are_before_the_residual(shape: Any, reference: check.Reference) -> None:
    check.check_adapters(shape, reference)


@each
def test_padding_and_masks(shape: Any, reference: check.Reference) -> None:
    del reference
    check.check_identity(shape)
    check.check_padding(shape)
    check.check_masks(shape)
