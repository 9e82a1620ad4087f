"""The paper's ablations: top layers, LayerNorms, other adapters, and adapters left out."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.errors import UserError
from stream.evaluation.evaluate import logits_of
from stream.learners.adapter import Adapter
from stream.learners.base import Learner
from stream.learners.layernorm import LayerNorm
from stream.learners.topk import TopK
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture, Bottleneck, draw
from stream.models.task_model import TaskModel
from stream.seeding import torch_generator
from tests.builders import CPU, TINY, Stream, made_task, tiny_encoder
from tests.models.test_adapters import FAMILY, NORMS, family_member, inside
from tests.record.test_ledger import LAYERNORMS, LAYERS, SHAPES, encoder

POOLER = {"base": 590_592, "large": 1_049_600}


def trained(learner: Learner, body: Encoder) -> dict[str, int]:
    """Parameters of the encoder that learning changes, without weights."""
    with torch.device("meta"):
        learner.attach(TaskModel(body, seed=0), tasks=[], seed=0, pad_id=0)
    return {name: p.numel() for name, p in learner.trained_parameters().items()}


def batch_of(task: Task, pad_id: int = 0) -> Batch:
    return collate([(task, task.split("train"), np.arange(6))], pad_id)


# --- top layers, LayerNorms


@pytest.mark.parametrize("shape", SHAPES)
def test_layernorm_trains_every_layernorm(shape: str) -> None:
    """38,400 and a binary head of 1,538 are the paper's "40k" (figure 4)."""
    counts = trained(LayerNorm(), encoder(shape))
    assert sum(counts.values()) == LAYERNORMS[shape]
    assert all("LayerNorm" in name for name in counts)


@pytest.mark.parametrize("shape", SHAPES)
def test_topk_trains_k_layers(shape: str) -> None:
    count = {"base": 12, "large": 24}[shape]
    for layers in (1, 3, count):
        counts = trained(TopK(layers=layers), encoder(shape))
        assert sum(counts.values()) == LAYERS[shape] * layers // count
    body = encoder(shape)
    body.pooling = "pooler"
    assert sum(trained(TopK(), body).values()) == LAYERS[shape] // count + POOLER[shape]
    with pytest.raises(UserError, match=f"layers must be at most {count}, all that there are"):
        trained(TopK(layers=count + 1), encoder(shape))
    with pytest.raises(UserError, match="at least 1, got 0"):
        TopK(layers=0)


@pytest.mark.parametrize("kind", FAMILY)
def test_no_gradient_is_computed_below_the_lowest_trained_layer(kind: str) -> None:
    body = family_member(kind)
    learner = TopK(layers=1)
    task = made_task("a")
    learner.attach(TaskModel(body, 0), tasks=[task], seed=0, pad_id=1)
    learner.start(task)
    in_graph = []
    for layer in body.layers():
        layer.register_forward_hook(
            lambda module, inputs, output: in_graph.append(
                (output[0] if isinstance(output, tuple) else output).requires_grad
            )
        )
    learner.loss(batch_of(task, 1)).backward()
    assert in_graph == [False, True]
    touched = {n for n, p in learner.model.named_parameters() if p.grad is not None}
    assert touched == set(learner.trained_parameters())
    assert {n for n in touched if "layer.1." not in n} == {"heads.a.weight", "heads.a.bias"}


# --- other adapters

IN_NUMPY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "identity": lambda x: x,
}


@pytest.mark.parametrize("activation", IN_NUMPY)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("norm", ["none", "layer"])
def test_variants_follow_their_formula(activation: str, depth: int, norm: str) -> None:
    adapter = Bottleneck(Architecture(7, 3, activation, depth, norm, init_std=0.5))
    adapter.initialize(torch_generator(0, "test"))
    generator = torch_generator(1, "test")
    with torch.no_grad():
        for parameter in adapter.parameters():
            if parameter.ndim == 1:  # biases, scale and shift away from 0 and 1
                parameter.normal_(generator=generator)
    x = torch.randn(4, 7, generator=generator)
    p = {name: t.detach().double().numpy() for name, t in adapter.named_parameters()}
    hidden = inputs = x.double().numpy()
    if norm == "layer":
        spread = np.sqrt(inputs.var(1, keepdims=True) + 1e-5)
        hidden = (inputs - inputs.mean(1, keepdims=True)) / spread
        hidden = hidden * p["norm.weight"] + p["norm.bias"]
    for name in ["down", *(f"inner.{i}" for i in range(depth - 1))]:
        hidden = IN_NUMPY[activation](hidden @ p[f"{name}.weight"].T + p[f"{name}.bias"])
    expected = inputs + hidden @ p["up.weight"].T + p["up.bias"]
    np.testing.assert_allclose(adapter(x).detach().numpy(), expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 64])
@pytest.mark.parametrize(
    ("options", "places", "extra"),
    [
        ({}, 24, lambda m: 0),
        ({"depth": 3}, 24, lambda m: 2 * (m * m + m)),
        ({"norm": "layer"}, 24, lambda m: 2 * 768),
        ({"places": "attention"}, 12, lambda m: 0),
        ({"places": "feedforward", "form": "parallel"}, 12, lambda m: 0),
        ({"form": "multiplicative", "activation": "identity"}, 24, lambda m: 0),
    ],
)
def test_variants_count(options: dict, places: int, extra: Callable, size: int) -> None:
    counts = trained(Adapter(size=size, **options), encoder("base"))
    adapters = sum(n for name, n in counts.items() if ".adapter." in name)
    assert adapters == places * (2 * 768 * size + 768 + size + extra(size))
    assert sum(counts.values()) - adapters == LAYERNORMS["base"]


def test_the_default_keeps_its_names_and_draws() -> None:
    """Weights of earlier runs are those of today: one generator, down before up, place by place."""
    task = made_task("a")
    run = Stream(Adapter(size=3), [task])
    values = run.learner.initial_values(task.name)
    names = [n for n in values if ".adapter." in n]
    generator = torch_generator(0, "adapter", "a")
    for index in range(0, len(names), 4):
        stem = names[index].removesuffix("down.weight")
        expected = [f"{stem}{n}" for n in ("down.weight", "down.bias", "up.weight", "up.bias")]
        assert names[index : index + 4] == expected
        for name in expected[::2]:
            drawn = torch.empty(values[name].shape)
            torch.nn.init.trunc_normal_(drawn, std=1e-2, a=-2e-2, b=2e-2, generator=generator)
            assert torch.equal(values[name], drawn)


def by_hand(body: Encoder, batch: Batch, adapt: Callable) -> torch.Tensor:
    """BERT's forward from its paper: the [CLS] vector; ``adapt(place, F(x), x)`` at each place."""
    p = {n.removeprefix("body."): t.detach().double() for n, t in body.named_parameters()}
    width, heads = TINY["hidden_size"], TINY["num_attention_heads"]

    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    def normal(name: str, x: torch.Tensor) -> torch.Tensor:
        scale, shift = p[f"{name}.LayerNorm.weight"], p[f"{name}.LayerNorm.bias"]
        return functional.layer_norm(x, (width,), scale, shift, 1e-12)

    rows, length = batch.input_ids.shape
    x = p["embeddings.word_embeddings.weight"][batch.input_ids]
    x = x + p["embeddings.token_type_embeddings.weight"][batch.token_type_ids]
    x = normal("embeddings", x + p["embeddings.position_embeddings.weight"][:length])
    hidden_from = (batch.attention_mask == 0)[:, None, None, :]
    for layer in range(TINY["num_hidden_layers"]):
        stem = f"encoder.layer.{layer}"
        q, k, v = (
            linear(f"{stem}.attention.self.{n}", x).reshape(rows, length, heads, -1).transpose(1, 2)
            for n in ("query", "key", "value")
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(width / heads)
        mixed = scores.masked_fill(hidden_from, -math.inf).softmax(-1) @ v
        made = linear(f"{stem}.attention.output.dense", mixed.transpose(1, 2).flatten(2))
        x = normal(f"{stem}.attention.output", adapt((layer, "attention"), made, x) + x)
        made = linear(
            f"{stem}.output.dense", functional.gelu(linear(f"{stem}.intermediate.dense", x))
        )
        x = normal(f"{stem}.output", adapt((layer, "feedforward"), made, x) + x)
    return x[:, 0]


FORMULAS = {
    "sequential": lambda made, x, change: made + change(made),
    "parallel": lambda made, x, change: made + change(x),
    "multiplicative": lambda made, x, change: made * (1 + change(x)),
}


def spread_adapters(run: Stream) -> dict[tuple[int, str], Bottleneck]:
    """Make every adapter matter, and return them by place."""
    adapters = {}
    for place in run.model.encoder.sublayers():
        adapter = getattr(place.end, "adapter", None)
        if isinstance(adapter, Bottleneck):
            adapters[place.layer, place.position] = adapter
            generator = torch_generator(0, place.position, place.layer)
            for layer in adapter.modules():
                if isinstance(layer, torch.nn.Linear):
                    draw(layer, 1.0, generator)
    return adapters


@pytest.mark.parametrize("form", FORMULAS)
@pytest.mark.parametrize("places", ["both", "attention", "feedforward"])
def test_forms_and_places_against_a_forward_by_hand(form: str, places: str) -> None:
    task = made_task("a")
    run = Stream(Adapter(size=4, form=form, places=places), [task])
    run.learner.start(task)
    adapters = spread_adapters(run)
    assert len(adapters) == (4 if places == "both" else 2)
    run.model.eval()

    def adapt(place: tuple[int, str], made: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if place not in adapters:
            return made
        p = {n: t.detach().double() for n, t in adapters[place].named_parameters()}

        def change(h: torch.Tensor) -> torch.Tensor:
            h = functional.gelu(h @ p["down.weight"].T + p["down.bias"])
            return h @ p["up.weight"].T + p["up.bias"]

        return FORMULAS[form](made, x, change)

    batch = batch_of(task)
    found = run.model.encoder(batch).double()
    torch.testing.assert_close(found, by_hand(run.model.encoder, batch, adapt), rtol=0, atol=2e-5)
    without = by_hand(run.model.encoder, batch, lambda place, made, x: made)
    assert (found - without).abs().max() > 5e-3


@pytest.mark.parametrize("kind", FAMILY)
@pytest.mark.parametrize("form", ["parallel", "multiplicative"])
def test_adapters_beside_a_sublayer_read_its_input(kind: str, form: str) -> None:
    """In every architecture: what the adapter reads is what the residual connection carries."""
    body = family_member(kind)
    task = made_task("a")
    learner = Adapter(size=4, init_std=0.3, form=form)
    learner.attach(TaskModel(body, 0), tasks=[task], seed=0, pad_id=1)
    learner.start(task)
    body.eval()
    seen: list[tuple[torch.Tensor, ...]] = []
    for place in body.sublayers():
        place.end.adapter.down.register_forward_pre_hook(lambda _, inputs: seen.append(inputs))
        place.end.register_forward_hook(lambda _, inputs, output: seen.append((output,)))
        inside(body, place, NORMS).register_forward_pre_hook(lambda _, given: seen.append(given))
    body(batch_of(task, 1))
    assert len(seen) == 3 * 4
    for (read,), (output,), (normed,) in zip(seen[::3], seen[1::3], seen[2::3], strict=True):
        torch.testing.assert_close(normed - output, read, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"form": "parallel", "norm": "layer", "depth": 2, "activation": "tanh"},
        {"form": "multiplicative", "places": "attention"},
    ],
)
def test_variants_keep_the_promise(options: dict, three_tasks: list[Task]) -> None:
    run = Stream(Adapter(size=4, **options), three_tasks)
    run.run()
    assert run.matrix.memory() == (2, 2)
    backwards = Stream(Adapter(size=4, **options), three_tasks[::-1])
    backwards.run()
    assert run.last_digests() == backwards.last_digests()
    default = Stream(Adapter(size=4), three_tasks[:1])
    default.run()
    assert default.last_digests()["a"] != run.last_digests()["a"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("activation", "gelo", "learner.activation 'gelo'. Did you mean 'gelu'"),
        ("norm", "batch", "learner.norm 'batch'. Valid: none, layer"),
        ("places", "all", "learner.places 'all'.* Valid: both, attention, feedforward"),
        ("form", "serial", "learner.form 'serial'.* Valid: sequential, parallel, multiplicative"),
        ("depth", 0, "learner.depth must be at least 1, got 0"),
    ],
)
def test_variants_that_do_not_exist(option: str, value: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Adapter(**{option: value})


# --- adapters left out


@pytest.mark.parametrize("form", FORMULAS)
def test_without_every_layer_only_the_layernorms_are_trained(form: str) -> None:
    task = made_task("a")
    run = Stream(Adapter(size=4, init_std=0.3, form=form), [task])
    run.learn(0)
    plain = TaskModel(tiny_encoder(), 0)
    plain.add_head(task)
    state = run.learner.served_state("a")
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            if "LayerNorm" in name or name.startswith("heads."):
                parameter.copy_(state[name])
    expected = plain.eval()(batch_of(task))[0]
    run.model.eval()
    with run.learner.without_layers(0, 1):
        assert torch.equal(run.model(batch_of(task))[0], expected)
    assert not torch.allclose(run.model(batch_of(task))[0], expected)


def test_spans_leave_out_their_layers_and_no_others() -> None:
    task = made_task("a")
    run = Stream(Adapter(size=4, init_std=0.3), [task])
    run.learn(0)

    def logits() -> bytes:
        return logits_of(run.learner, [task], "test", 512, CPU)[0].tobytes()

    whole, found = logits(), {}
    for span in [(0, -1), (2, 1), (0, 0), (1, 1), (0, 1)]:
        with run.learner.without_layers(*span):
            found[span] = logits()
            assert run.evaluate(task).digest == run.evaluate(task).digest
        assert logits() == whole
    assert found[0, -1] == found[2, 1] == whole  # empty spans
    assert len({whole, found[0, 0], found[1, 1], found[0, 1]}) == 4
    for layer in (0, 1):
        for name, parameter in run.model.encoder.named_parameters():
            if f"layer.{layer}." in name and ".adapter.up." in name:
                parameter.data.zero_()  # an adapter that adds nothing
        assert logits() == found[(0, layer)]


@pytest.mark.parametrize("span", [(-1, 0), (0, 2), (1, -1), (2, 2)])
def test_spans_that_do_not_exist(span: tuple[int, int]) -> None:
    run = Stream(Adapter(size=4), [])
    with (
        pytest.raises(UserError, match="the encoder has layers 0 to 1"),
        run.learner.without_layers(*span),
    ):
        pass


def test_adapters_are_back_after_an_error() -> None:
    task = made_task("a")
    run = Stream(Adapter(size=4, init_std=0.3), [task])
    run.learn(0)
    before = run.evaluate(task).digest
    with pytest.raises(KeyError), run.learner.without_layers(0, 1):
        raise KeyError
    assert run.evaluate(task).digest == before
