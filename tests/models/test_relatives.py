"""Relatives of BERT and encoders with rotary positions against forward passes written by hand."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

from stream.data.batches import collate
from stream.learners.adapter import Adapter
from stream.models.heads import TaskModel
from tests.conftest import made_task
from tests.models.reference import check
from tests.models.reference.bert import bert, roberta
from tests.models.reference.bert_relatives import (
    NORMS,
    changed_before,
    megatron_bert,
    rembert,
    roberta_prelayernorm,
    xlm_roberta_xl,
)
from tests.models.reference.forms import FORMS, check_form
from tests.models.reference.rotary import eurobert, gte, jina_embeddings_v3, nomic_bert
from tests.models.tiny_families import FAMILIES, family_encoder

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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", NORMS)
def test_forms_where_norms_come_before(family: str, form: str) -> None:
    check_form(FAMILIES[family], partial(changed_before, family), form)


@each
def test_padding_and_masks(family: str) -> None:
    shape: dict[str, Any] = FAMILIES[family]
    check.check_identity(shape)
    check.check_padding(shape)
    check.check_masks(shape)


@pytest.mark.parametrize("family", [*REFERENCES, "albert"])
def test_learning_reaches_adapters_norms_and_head_alone(family: str) -> None:
    task, learner = made_task("a"), Adapter(size=4)
    model = TaskModel(family_encoder(family), 0)
    learner.attach(model, tasks=[task], seed=0, pad_id=0)
    learner.start(task)
    learner.loss(collate([(task, task.split("train"), np.arange(6))], 0)).backward()
    reached = {n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    norm = re.compile(r"(norm|LayerNorm|\.ln)\.(weight|bias)$")
    assert reached == {
        name
        for name, _ in model.named_parameters()
        if ".adapter" in name or norm.search(name) or name.startswith("heads.")
    }
