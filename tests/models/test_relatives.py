"""Relatives of BERT and encoders with rotary positions against forward passes written by hand."""

from typing import Any

import pytest

from tests.models.reference import check
from tests.models.reference.bert import bert, roberta
from tests.models.reference.bert_relatives import (
    megatron_bert,
    rembert,
    roberta_prelayernorm,
    xlm_roberta_xl,
)
from tests.models.reference.rotary import eurobert, gte, jina_embeddings_v3, nomic_bert
from tests.models.tiny_families import FAMILIES

REFERENCES: dict[str, check.Reference] = {
    "ernie": bert,
    "camembert": roberta,
    "data2vec-text": roberta,
    "rembert": rembert,
    "xlm-roberta-xl": xlm_roberta_xl,
    "roberta-prelayernorm": roberta_prelayernorm,
    "megatron-bert": megatron_bert,
    "nomic_bert": nomic_bert,
    "gte": gte,
    "jina_embeddings_v3": jina_embeddings_v3,
    "eurobert": eurobert,
}
# transformers turns queries and keys by angles of float32, and has RMSNorm in float32.
ROUGH = dict.fromkeys(("nomic_bert", "gte", "jina_embeddings_v3", "eurobert"), 2e-5)
each = pytest.mark.parametrize("family", REFERENCES)


@each
def test_states_are_those_of_the_definition(family: str) -> None:
    tolerance = ROUGH.get(family, check.TOLERANCE)
    check.check_states(FAMILIES[family], REFERENCES[family], tolerance=tolerance)


@each
def test_adapters_are_before_the_residual(family: str) -> None:
    tolerance = ROUGH.get(family, check.TOLERANCE)
    check.check_adapters(FAMILIES[family], REFERENCES[family], tolerance=tolerance)


@each
def test_padding_and_masks(family: str) -> None:
    shape: dict[str, Any] = FAMILIES[family]
    check.check_identity(shape)
    check.check_padding(shape)
    check.check_masks(shape)
