"""The paper's accounting, exactly, on BERT-base and BERT-large shapes without any weights."""

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from stream.learners.adapter import Adapter
from stream.learners.finetune import Finetune
from stream.learners.frozen import Frozen
from stream.models.encoder import Encoder
from stream.models.task_model import TaskModel
from stream.record.ledger import LedgerRecord
from stream.run.accounting import count_stored
from tests.builders import Stream, made_task

LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
SHAPES: dict[str, dict[str, Any]] = {"base": {}, "large": {**LARGE, "intermediate_size": 4096}}
# PAPER.md section 3, computed there from the formulas
TOTAL = {"base": 109_482_240, "large": 335_141_888}
LAYERS = {"base": 85_054_464, "large": 302_309_376}
LAYERNORMS = {"base": 38_400, "large": 100_352}
ADAPTERS = {
    ("base", 8): 313_536,
    ("base", 64): 2_379_264,
    ("base", 256): 9_461_760,
    ("large", 8): 835_968,
    ("large", 64): 6_343_680,
    ("large", 256): 25_227_264,
}


def encoder(shape: str) -> Encoder:
    with torch.device("meta"):
        return Encoder(BertModel(BertConfig(**SHAPES[shape])))


@pytest.mark.parametrize("shape", SHAPES)
def test_totals(shape: str) -> None:
    model = encoder(shape)
    assert model.num_parameters() == TOTAL[shape]
    assert model.num_layer_parameters() == LAYERS[shape]
    parameters = dict(model.named_parameters())
    assert sum(parameters[n].numel() for n in model.layernorm_names()) == LAYERNORMS[shape]


@pytest.mark.parametrize(("shape", "size"), ADAPTERS)
def test_adapters_train_adapters_layernorms_and_head(shape: str, size: int) -> None:
    with torch.device("meta"):
        model = TaskModel(encoder(shape), seed=0)
        learner = Adapter(size=size)
        learner.attach(model, tasks=[], seed=0, pad_id=0)
    trained = {n: p.numel() for n, p in learner.trained_parameters().items()}
    adapters = sum(count for name, count in trained.items() if ".adapter." in name)
    assert adapters == ADAPTERS[shape, size]
    assert sum(trained.values()) == ADAPTERS[shape, size] + LAYERNORMS[shape]


def test_published_fraction() -> None:
    """2.1% of BERT-large's layers (Houlsby et al. 2019, table 1)."""
    assert ADAPTERS["large", 64] / LAYERS["large"] == pytest.approx(0.02098, abs=1e-5)


def test_measured_total_is_one_plus_the_tasks() -> None:
    """A learner that keeps the pretrained encoder stores it whole, plus what each task owns."""
    tasks = [made_task("a", 2), made_task("b", 5)]
    learner = Adapter(size=4)
    run = Stream(learner, tasks)
    base = sum(run.model.encoder.get_parameter(n).numel() for n in run.model.encoder.pretrained)
    own = []
    for index in range(2):
        run.learn(index)
        own.append(sum(p.numel() for p in learner.trained_parameters().values()))
    stored, size = count_stored(learner.stored_states(tasks))
    assert stored == base + sum(own)
    assert size == 4 * stored


@pytest.mark.parametrize("learner", [Finetune(), Frozen()])
def test_one_shared_encoder_costs_one_encoder(learner) -> None:
    tasks = [made_task("a", 2), made_task("b", 5)]
    run = Stream(learner, tasks)
    run.run()
    heads = (16 + 1) * (2 + 5)
    assert (
        count_stored(learner.stored_states(tasks))[0] == run.model.encoder.num_parameters() + heads
    )


def test_a_shared_tensor_counts_once() -> None:
    tensor = torch.zeros(3, 4)
    assert count_stored([{"a": tensor}, {"b": tensor}]) == (12, 48)
    assert count_stored([{"a": tensor}, {"b": tensor.clone()}]) == (24, 96)


def test_fractions_use_both_denominators() -> None:
    ledger = LedgerRecord(base_parameters=1000, encoder_layer_parameters=500)
    assert ledger.total_multiple is None
    ledger.add("a", 100, (1100, 4400), (3, 77))
    (row,) = ledger.tasks
    assert (row.trained_fraction, row.trained_fraction_of_layers) == (0.1, 0.2)
    assert (row.stored_parameters, row.stored_bytes) == (1100, 4400)
    assert (row.buffer_examples, row.buffer_bytes) == (3, 77)
    assert ledger.total_multiple == 1.1
