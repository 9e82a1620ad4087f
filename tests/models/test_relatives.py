"""Relatives of BERT and encoders with rotary positions against forward passes written by hand."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from stream.data.batching import collate
from stream.learners.adapter import Adapter
from stream.models.task_model import TaskModel
from tests.builders import made_task
from tests.models.reference import check
from tests.models.reference.bert import bert_maps, roberta
from tests.models.reference.bert_relatives import (
    NORMS,
    changed_before,
    ernie,
    megatron_bert,
    rembert,
    roberta_prelayernorm,
    xlm_roberta_xl,
)
from tests.models.reference.forms import FORMS, check_form
from tests.models.reference.rotary import eurobert, gte, jina_embeddings_v3, nomic_bert, rotary_maps
from tests.models.tiny_families import FAMILIES, family_encoder

REFERENCES: dict[str, check.Reference] = {
    "ernie": ernie,
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
ROTARY = ("nomic_bert", "gte", "jina_embeddings_v3", "eurobert")
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    **{family: (family, FAMILIES[family]) for family in REFERENCES},
    "gte without types": ("gte", {**FAMILIES["gte"], "type_vocab_size": 0}),
    "ernie with tasks": ("ernie", {**FAMILIES["ernie"], "use_task_id": True}),
}


def tolerance(family: str) -> float:
    """Return how near states are: some angles and RMSNorm are in float32 in transformers."""
    return 2e-5 if family in ROTARY else check.TOLERANCE


def there(family: str) -> pytest.MarkDecorator:
    """Skip a family that the installed version of transformers does not have."""
    version = transformers.__version__
    lacks = family not in transformers.CONFIG_MAPPING
    return pytest.mark.skipif(lacks, reason=f"transformers {version} has no {family}")


each = pytest.mark.parametrize(
    ("family", "shape"),
    [pytest.param(*pair, id=name, marks=there(pair[0])) for name, pair in SHAPES.items()],
)


@each
def test_states_and_maps_are_those_of_the_definition(family: str, shape: dict[str, Any]) -> None:
    check.check_states(shape, REFERENCES[family], tolerance=tolerance(family))
    check.check_maps(shape, rotary_maps if family in ROTARY else bert_maps)


@each
def test_adapters_are_before_the_residual(family: str, shape: dict[str, Any]) -> None:
    check.check_adapters(shape, REFERENCES[family], tolerance=tolerance(family))
    check.check_identity(shape)


@each
def test_padding_and_masks(family: str, shape: dict[str, Any]) -> None:
    del family
    check.check_padding(shape)
    check.check_masks(shape)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", NORMS)
def test_forms_where_norms_come_before(family: str, form: str) -> None:
    check_form(FAMILIES[family], partial(changed_before, family), form)


def each_family(*more: str) -> pytest.MarkDecorator:
    """Run a test for every family here, and ``more``."""
    params = [pytest.param(family, marks=there(family)) for family in (*REFERENCES, *more)]
    return pytest.mark.parametrize("family", params)


@each_family("albert")
def test_the_last_map_of_a_sublayer_makes_what_is_added(family: str) -> None:
    encoder, batch = check.drawn_encoder(FAMILIES[family]), check.made_batch()
    lasts = [
        last
        for maps, inner in zip(encoder.attention_maps(), encoder.inner_maps(), strict=True)
        for last in (maps.output, inner)
    ]
    seen: dict[int, torch.Tensor] = {}

    def note(module: torch.nn.Module, args: Any, output: torch.Tensor) -> None:
        seen[id(module)] = output

    for module in {*(place.end for place in encoder.sublayers()), *(m.module for m in lasts)}:
        module.register_forward_hook(note)
    with torch.no_grad():
        encoder.states(batch)
    for place, last in zip(encoder.sublayers(), lasts, strict=False):  # a layer's uses are alike
        assert torch.equal(seen[id(place.end)], seen[id(last.module)])


@each_family("albert")
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
