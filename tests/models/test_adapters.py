"""The bottleneck against its formula in float64, its start, and its place in four encoders."""

import math

import numpy as np
import pytest
import torch

from stream.config.backbone import BackboneConfig
from stream.data.batching import collate
from stream.errors import UserError
from stream.learners.adapter import Adapter
from stream.models.encoder import Encoder, load_encoder
from stream.models.modules.bottleneck import Architecture, Bottleneck, reduced
from stream.models.places import SubLayer
from stream.models.task_model import TaskModel
from stream.seeding import torch_generator
from tests.builders import TINY, VOCABULARY, made_task, tiny_encoder

# Where the projections and the norms that read the sums are, by sub-layer.
PROJECTIONS = {"attention": "attention.output.dense", "feedforward": "output.dense"}
NORMS = {"attention": "attention.output.LayerNorm", "feedforward": "output.LayerNorm"}
MPNET = {"attention.output.dense": "attention.attn.o"} | {
    "attention.output.LayerNorm": "attention.LayerNorm"
}
FAMILY = {
    "bert": {},
    "roberta": {"type_vocab_size": 1, "pad_token_id": 1},
    "electra": {"embedding_size": 16},
    "mpnet": {"pad_token_id": 1},
}


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_slope(x: np.ndarray) -> np.ndarray:
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) + x * density


def test_forward_and_gradients_follow_the_formula() -> None:
    adapter = Bottleneck(Architecture(7, 3, init_std=0.5))
    adapter.initialize(torch_generator(0, "test"))
    with torch.no_grad():
        adapter.down.bias.normal_(generator=torch_generator(1, "test"))
    x = torch.randn(4, 7, generator=torch_generator(2, "test"), requires_grad=True)
    weight = torch.randn(4, 7, generator=torch_generator(3, "test"))
    (adapter(x) * weight).sum().backward()

    down, up = adapter.down.weight.double().detach().numpy(), adapter.up.weight.double()
    up = up.detach().numpy()
    inputs, out_grad = x.detach().double().numpy(), weight.double().numpy()
    hidden = inputs @ down.T + adapter.down.bias.detach().double().numpy()
    expected = inputs + gelu(hidden) @ up.T + adapter.up.bias.detach().double().numpy()
    hidden_grad = (out_grad @ up) * gelu_slope(hidden)

    def close(found: torch.Tensor | None, wanted: np.ndarray) -> None:
        assert found is not None
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-5, atol=1e-6)

    close(adapter(x), expected)
    close(adapter.up.weight.grad, out_grad.T @ gelu(hidden))
    close(adapter.up.bias.grad, out_grad.sum(0))
    close(adapter.down.weight.grad, hidden_grad.T @ inputs)
    close(adapter.down.bias.grad, hidden_grad.sum(0))
    close(x.grad, out_grad + hidden_grad @ down)


def test_parameters_and_start() -> None:
    adapter = Bottleneck(Architecture(384, 64))
    adapter.initialize(torch_generator(0, "test"))
    assert sum(p.numel() for p in adapter.parameters()) == 2 * 384 * 64 + 384 + 64
    for layer in (adapter.down, adapter.up):
        assert layer.weight.abs().max() <= 2e-2
        # The deviation of a standard normal truncated at two deviations is 0.8796.
        assert layer.weight.std().item() == pytest.approx(0.8796e-2, rel=0.02)
        assert not layer.bias.any()


def family_member(kind: str) -> Encoder:
    return tiny_encoder(**{"model_type": kind, **FAMILY[kind]})


def inside(encoder: Encoder, place: SubLayer, paths: dict[str, str]) -> torch.nn.Module:
    """Return a module of a sub-layer by its name in the family."""
    path = paths[place.position]
    if encoder.body.config.model_type == "mpnet":
        path = MPNET.get(path, path)
    return encoder.layers()[place.layer].get_submodule(path)


@pytest.mark.parametrize("kind", FAMILY)
def test_placement(kind: str) -> None:
    """Each LayerNorm gets adapter(projection's output) + the sub-layer's input."""
    encoder = family_member(kind)
    learner = Adapter(size=4, init_std=0.3)
    learner.attach(TaskModel(encoder, 0), tasks=[], seed=0, pad_id=1)
    task = made_task("a")
    learner.start(task)
    encoder.eval()  # no dropout: what enters the adapter is the projection's output
    places = encoder.sublayers()
    assert [(p.layer, p.position) for p in places] == [
        (layer, position)
        for layer in range(TINY["num_hidden_layers"])
        for position in ("attention", "feedforward")
    ]
    seen: dict[str, torch.Tensor] = {}

    def keep(name: str):
        def hook(module, inputs, output) -> None:
            seen[f"{name}.in"], seen[f"{name}.out"] = inputs[0], output

        return hook

    for index, place in enumerate(places):
        inside(encoder, place, PROJECTIONS).register_forward_hook(keep(f"{index}.projection"))
        inside(encoder, place, NORMS).register_forward_hook(keep(f"{index}.norm"))
    layers = encoder.layers()
    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(
            lambda module, inputs, index=index: seen.update({f"layer{index}": inputs[0]})
        )
    encoder(collate([(task, task.split("train"), np.arange(6))], 1))
    for index, place in enumerate(places):
        is_attention = place.position == "attention"
        residual = seen[f"layer{place.layer}"] if is_attention else seen[f"{index - 1}.norm.out"]
        x = seen[f"{index}.projection.out"]
        a = place.end.adapter
        assert isinstance(a, Bottleneck)
        by_hand = x + torch.nn.functional.gelu(x @ a.down.weight.T) @ a.up.weight.T
        torch.testing.assert_close(seen[f"{index}.norm.in"], by_hand + residual)
        assert not torch.allclose(by_hand, x)  # the adapter did something


@pytest.mark.parametrize("kind", FAMILY)
def test_near_identity_at_the_start(kind: str) -> None:
    plain, adapted = family_member(kind), family_member(kind)
    learner = Adapter(init_std=1e-3)
    learner.attach(TaskModel(adapted, 0), tasks=[], seed=0, pad_id=1)
    task = made_task("a")
    learner.start(task)
    batch = collate([(task, task.split("train"), np.arange(6))], 1)
    plain.eval(), adapted.eval()
    change = (adapted(batch) - plain(batch)).norm() / plain(batch).norm()
    assert 0 < change < 1e-3


@pytest.mark.parametrize("kind", FAMILY)
def test_training_reaches_adapters_and_every_layernorm(kind: str) -> None:
    encoder = family_member(kind)
    learner = Adapter(size=4)
    model = TaskModel(encoder, 0)
    learner.attach(model, tasks=[], seed=0, pad_id=1)
    task = made_task("a")
    learner.start(task)
    learner.loss(collate([(task, task.split("train"), np.arange(6))], 1)).backward()
    with_gradient = {n for n, p in model.named_parameters() if p.grad is not None}
    layers = TINY["num_hidden_layers"]
    assert sum("LayerNorm" in n for n in with_gradient) == 2 * (2 * layers + 1)
    assert sum(".adapter." in n for n in with_gradient) == 4 * 2 * layers
    others = {n for n in with_gradient if "LayerNorm" not in n and ".adapter." not in n}
    assert others == {"heads.a.weight", "heads.a.bias"}


def test_a_module_that_is_not_where_the_family_says_is_refused_in_one_line() -> None:
    from transformers import BertConfig, BertModel

    body = BertModel(
        BertConfig(vocab_size=60, **{k: v for k, v in TINY.items() if k != "model_type"})
    )
    encoder = Encoder(body)
    del body.encoder.layer[0].output.LayerNorm
    found = r"BertModel has no output\.LayerNorm in BertLayer, .*family of bert"
    with pytest.raises(UserError, match=found):
        encoder.sublayers()


def test_pooling_choices() -> None:
    task = made_task("a")
    batch = collate([(task, task.split("train"), np.arange(6))], 0)
    vectors = {}
    for pooling in ("cls", "mean", "pooler"):
        config = BackboneConfig("tiny", "random", shape=TINY, pooling=pooling)
        encoder = load_encoder(config, vocabulary_size=VOCABULARY).eval()
        vectors[pooling] = encoder(batch)
        hidden = encoder.body(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            token_type_ids=batch.token_type_ids,
        ).last_hidden_state
    rows = [hidden[i, : int(batch.attention_mask[i].sum())].mean(0) for i in range(6)]
    torch.testing.assert_close(vectors["mean"], torch.stack(rows))
    torch.testing.assert_close(vectors["cls"], hidden[:, 0])
    pooled = torch.tanh(encoder.body.pooler.dense(hidden[:, 0]))
    torch.testing.assert_close(vectors["pooler"], pooled)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("model_type", ["mpnet", "bert"])
def test_a_mask_is_what_transformers_makes_of_it(model_type: str, dtype: torch.dtype) -> None:
    encoder = tiny_encoder(model_type=model_type).eval().to(dtype)
    task = made_task("a")
    batch = collate([(task, task.split("train"), np.arange(6))], 0)
    assert not batch.attention_mask.all()
    found = encoder.states(batch)[1]
    expected = encoder.body(input_ids=batch.input_ids, attention_mask=batch.attention_mask)[0]
    assert torch.equal(found[batch.attention_mask == 1], expected[batch.attention_mask == 1])
    assert encoder._masks._adds == (model_type == "mpnet")


def test_pooler_needs_a_pooler() -> None:
    from stream.config.backbone import BackboneConfig

    config = BackboneConfig(
        "e", "random", pooling="pooler", shape={**TINY, "model_type": "electra"}
    )
    with pytest.raises(UserError, match="no pooler"):
        load_encoder(config, vocabulary_size=60)


def test_a_reduction_that_leaves_no_unit_is_refused() -> None:
    assert reduced(16, 16, 0.02).size == 1
    with pytest.raises(UserError, match=r"learner\.reduction=17 leaves no unit.* 16 wide"):
        reduced(16, 17, 0.02)
