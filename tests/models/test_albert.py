"""ALBERT, whose layers are used several times: adapters are per use, everything else per layer."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from stream.config.backbone import BackboneConfig
from stream.errors import UserError
from stream.evaluation.evaluate import evaluate
from stream.learners.adapter import Adapter
from stream.models.encoder import load_encoder
from stream.models.task_model import TaskModel
from stream.record.ledger import LedgerRecord
from stream.run.accounting import count_stored
from stream.run.layer_ablation import layer_range_scores
from stream.training.loop import fit
from tests.builders import CPU, SHORT, VOCABULARY, made_task
from tests.models.reference import check
from tests.models.reference.albert import albert, albert_maps, changed_albert
from tests.models.reference.forms import FORMS, adapted, check_form
from tests.models.reference.functions import gelu, linear
from tests.models.tiny_families import FAMILIES, family_encoder

SHAPES: dict[str, dict[str, Any]] = {
    "one layer": FAMILIES["albert"],  # used three times
    "two layers": {**FAMILIES["albert"], "num_hidden_layers": 4, "num_hidden_groups": 2},
    "no sharing": {**FAMILIES["albert"], "num_hidden_layers": 2, "num_hidden_groups": 2},
}
each = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@each
def test_states_are_those_of_the_definition(shape: Any) -> None:
    check.check_states(shape, albert)


@each
def test_adapters_are_before_the_residual_of_their_use(shape: Any) -> None:
    check.check_adapters(shape, albert)


def test_maps_are_per_layer() -> None:
    """One set of maps a layer, whatever its uses: LoRA has one pair for them all."""
    check.check_maps(SHAPES["one layer"], albert_maps)
    for shape, layers in ((SHAPES["one layer"], 1), (SHAPES["two layers"], 2)):
        encoder = check.load(shape)
        assert len(encoder.attention_maps()) == len(encoder.inner_maps()) == layers


def test_padding_and_masks() -> None:
    check.check_identity(SHAPES["two layers"])
    check.check_padding(SHAPES["two layers"], ("cls", "pooler", "mean"))
    check.check_masks(SHAPES["two layers"])


def test_the_pooler_is_a_linear_map_and_a_tanh() -> None:
    encoder, batch = check.drawn_encoder(SHAPES["one layer"], "pooler"), check.made_batch()
    weights = check.weights_of(encoder)
    first = albert(weights, encoder.body.config, batch)[:, 0]
    check.close(encoder(batch), torch.tanh(linear(weights, "pooler", first)))


@pytest.mark.parametrize("form", FORMS)
def test_forms_read_what_their_use_reads(form: str) -> None:
    check_form(SHAPES["two layers"], changed_albert, form)


def test_a_copy_counts_its_own_uses() -> None:
    """Also where it computes in the middle of a pass of the original."""
    encoder, batch = check.drawn_encoder(SHAPES["one layer"]), check.made_batch()
    adapters = adapted(encoder)
    expected = encoder.states(batch)[1]
    twin = copy.deepcopy(encoder)
    between = list[torch.Tensor]()

    def compute_twin(*_: object) -> None:
        between.append(twin.states(batch)[1])

    encoder.layers()[0].register_forward_hook(compute_twin)
    assert torch.equal(encoder.states(batch)[1], expected)
    assert len(between) == 3
    assert all(torch.equal(states, expected) for states in between)
    adapters[2].adapter.up.bias.data += 1
    assert not torch.equal(encoder.states(batch)[1], expected)
    assert torch.equal(twin.states(batch)[1], expected)


class _Ignores(torch.nn.Module):
    """A prompt of one vector that does not depend on the query."""

    def forward(self, embedded: torch.Tensor, query: torch.Tensor | None = None) -> torch.Tensor:
        del query
        return torch.ones_like(embedded[:, :1])


def test_every_pass_begins_with_the_first_use() -> None:
    """Also one for a query before it, as of L2P, and one that broke."""
    encoder, batch = check.drawn_encoder(SHAPES["one layer"]), check.made_batch()
    adapters = adapted(encoder, "pfeiffer")
    first = encoder.states(batch)[1]
    assert torch.equal(encoder.states(batch)[1], first)
    encoder.insert_prompt(_Ignores())
    prompted = encoder.states(batch)[1]
    encoder.insert_prompt(_Ignores(), queried=True)
    assert torch.equal(encoder.states(batch)[1], prompted)

    def stop(*_: object) -> None:
        raise MemoryError

    handle = encoder.layers()[0].register_forward_hook(stop)
    with pytest.raises(MemoryError):
        encoder.states(batch)
    handle.remove()
    assert torch.equal(encoder.states(batch)[1], prompted)
    for one in adapters:
        one.there.on = False
        assert not torch.allclose(encoder.states(batch)[1], prompted)
        one.there.on = True


@pytest.mark.parametrize("form", ["sequential", "pfeiffer"])
def test_layers_that_are_computed_again_know_their_use(form: str) -> None:
    """Backward they come from the last use to the first; of two passes, the later one first."""
    shape = {**SHAPES["two layers"], "hidden_dropout_prob": 0.1}
    whole, batch = check.drawn_encoder(shape), check.made_batch()
    adapted(whole, form)
    again = copy.deepcopy(whole)
    again.checkpoint_layers()
    gradients = list[dict[str, torch.Tensor]]()
    for encoder in (whole, again, copy.deepcopy(again)):
        encoder.train()
        torch.manual_seed(0)  # of dropout
        first, second = encoder.states(batch)[1], encoder.states(batch)[1]
        (first.sin() + second.cos()).sum().backward()
        found = {n: p.grad for n, p in encoder.named_parameters() if p.grad is not None}
        gradients.append(found)
    assert gradients[0].keys() == {n for n, _ in whole.named_parameters() if "pooler" not in n}
    for name, expected in gradients[0].items():
        check.close(gradients[1][name], expected)
        check.close(gradients[2][name], expected)


# One layer: a LayerNorm behind each sub-layer (2 * 32), four maps 16 -> 16 (4 * 272), a map
# 16 -> 32 (544) and one 32 -> 16 (528). Beside it: 60 tokens, 32 positions and 2 types of width 8,
# their LayerNorm (16), a map 8 -> 16 (144) and the pooler (272).
LAYER = 64 + 1088 + 544 + 528
BASE = 8 * (60 + 32 + 2) + 16 + 144 + LAYER + 272
ADAPTERS = 3 * 2 * (2 * 16 * 4 + 4 + 16)  # three uses, two adapters in each
LAYERNORMS = 16 + 2 * 32  # once: the uses share them
HEADS = (16 * 2 + 2, 16 * 5 + 5)


def test_the_ledger_counts_an_adapter_per_use_and_norms_once() -> None:
    assert (LAYER, BASE, ADAPTERS, LAYERNORMS) == (2224, 3408, 888, 80)
    tasks = [made_task("a", 2), made_task("b", 5)]
    learner, encoder = Adapter(size=4), family_encoder("albert")
    ledger = LedgerRecord(
        base_parameters=encoder.num_parameters(),
        encoder_layer_parameters=encoder.num_layer_parameters(),
    )
    assert (ledger.base_parameters, ledger.encoder_layer_parameters) == (BASE, LAYER)
    learner.attach(TaskModel(encoder, 0), tasks=tasks, seed=0, pad_id=0)
    stored, digests = BASE, []
    for number, (task, head) in enumerate(zip(tasks, HEADS, strict=True), 1):
        fit(learner, task, SHORT)
        trained = sum(p.numel() for p in learner.trained_parameters().values())
        assert trained == ADAPTERS + LAYERNORMS + head
        stored += trained
        assert count_stored(learner.stored_states(tasks[:number])) == (stored, 4 * stored)
        digests.append(evaluate(learner, tasks[0], "test", 512, CPU).digest)
    assert digests[0] == digests[1]  # a perfect memory
    assert stored == 3408 + 1002 + 1053


def test_what_a_task_owns_is_named_by_use() -> None:
    """In a checkpoint too: three uses of each adapter, LayerNorms without a use."""
    task = made_task("a", 2)
    learner = Adapter(size=4)
    learner.attach(TaskModel(family_encoder("albert"), 0), tasks=[task], seed=0, pad_id=0)
    names = [n for n in learner.trained_parameters() if n.startswith("encoder.")]
    ends = [
        f"{place}.adapter_{use}" for place in ("output_dropout", "ffn_output") for use in range(3)
    ]
    assert len(names) == 4 * len(ends) + 2 * 3
    for end in ends:
        assert len([name for name in names if f"{end}." in name]) == 4


def test_layers_that_are_left_out_are_uses() -> None:
    task, shape = made_task("a", 2), SHAPES["one layer"]
    learner = Adapter(size=3)
    encoder, batch = check.drawn_encoder(shape).float(), check.made_batch()
    learner.attach(TaskModel(encoder, 0), tasks=[task], seed=0, pad_id=0)
    learner.start(task)
    encoder.double().eval()
    weights, config = check.weights_of(encoder), encoder.body.config
    own = {n: p.detach() for n, p in encoder.named_parameters() if ".adapter_2." in n}

    def end(use: int, position: str, f: torch.Tensor) -> torch.Tensor:
        if use < 2:
            return f
        place = "output_dropout" if position == "attention" else "ffn_output"
        (at,) = {name.partition("adapter_2")[0] for name in own if f"{place}." in name}
        hidden = gelu(linear(own, f"{at}adapter_2.down", f))
        return f + linear(own, f"{at}adapter_2.up", hidden)

    with learner.without_layers(0, 1), torch.no_grad():
        found = encoder.states(batch)[1]
    wanted = albert(weights, config, batch, end)
    for one, other in zip(check.real(found, batch), check.real(wanted, batch), strict=True):
        check.close(one, other)
    with pytest.raises(UserError, match="layers 0 to 2"), learner.without_layers(0, 3):
        pass
    run: Any = SimpleNamespace(learner=learner, measure=lambda *_: SimpleNamespace(score=0.5))
    assert layer_range_scores(run, task, "test").without.shape == (3, 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"inner_group_num": 2}, "inner_group_num=2 cannot be used here; it must be 1"),
        ({"num_hidden_groups": 2}, "2 modules for 3 layers"),
        ({"num_hidden_groups": 4}, "4 modules for 3 layers"),
    ],
)
def test_layers_that_are_not_used_in_equal_runs_are_refused(given: Any, words: str) -> None:
    config = BackboneConfig("tiny", "random", shape={**FAMILIES["albert"], **given})
    with pytest.raises(UserError, match=words):
        load_encoder(config, vocabulary_size=VOCABULARY)
