"""ModernBERT, T5, mT5 and umT5 against hand-written forwards in float64: values and gradients.

The references read one text at a time and know no padding; the encoder reads all at once.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stream.config.backbone import BackboneConfig
from stream.data.batches import collate
from stream.errors import UserError
from stream.learners.adapter import Adapter
from stream.models.encoder import Encoder
from stream.models.heads import TaskModel
from stream.models.modules.bottleneck import Architecture, Bottleneck, insert_adapters
from stream.models.places import LinearMap
from stream.models.pretrained import load_body
from tests.conftest import VOCABULARY, made_task
from tests.models.reference import modernbert, t5
from tests.models.tiny_families import FAMILIES, POOLING, WINDOW, family_encoder

LENGTHS = (17, 3, 11)
WIDTH = 24  # so that padding is farther from every token than a window
STRONG = {"initializer_range": 0.5}  # so that attention is not even
GLOBAL_FIRST = {"layer_types": ["full_attention", "sliding_attention"]}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "modernbert": ("modernbert", STRONG),
    "modernbert-global-first": ("modernbert", {**STRONG, **GLOBAL_FIRST}),
    "t5": ("t5", {}),
    "t5-gated": ("t5_gated", {}),
    "mt5": ("mt5", {}),
    "umt5": ("mt5", {"model_type": "umt5"}),
}
CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # rotations and T5's norms are computed in float32
Place = tuple[int, str]
Weights = dict[str, torch.Tensor]


def made(case: str) -> Encoder:
    """A tiny encoder in float64; its norms scale by random numbers."""
    name, shape = CASES[case]
    encoder = family_encoder(name, **shape).double().eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in encoder.parameters():
        if parameter.ndim == 1:
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return encoder


def texts() -> list[torch.Tensor]:
    """Random token ids of three texts."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(5, VOCABULARY, (length,), generator=generator) for length in LENGTHS]


def padded(ids: list[torch.Tensor], side: str, padding: int = 0) -> Any:
    """The texts as a batch, padded on one side."""
    rows = torch.full((len(ids), WIDTH), padding)
    mask = torch.zeros_like(rows)
    for row, own, tokens in zip(rows, mask, ids, strict=True):
        place = slice(0, len(tokens)) if side == "right" else slice(WIDTH - len(tokens), None)
        row[place], own[place] = tokens, 1
    return SimpleNamespace(input_ids=rows, attention_mask=mask, token_type_ids=rows * 0)


def tokens_of(states: torch.Tensor, batch: Any) -> list[torch.Tensor]:
    """The states of each text's tokens."""
    return [row[mask.bool()] for row, mask in zip(states, batch.attention_mask, strict=True)]


def weights_of(encoder: Encoder) -> dict[str, torch.Tensor]:
    """The body's own weights by name, as leaves of their own."""
    return {
        name.removeprefix("body."): p.detach().clone().requires_grad_()
        for name, p in encoder.named_parameters()
        if name in encoder.pretrained
    }


def by_hand(case: str, weights: Weights, embedded: torch.Tensor, **more: Any) -> torch.Tensor:
    """The states of a text [L, D] whose embeddings are given, by the reference of a case."""
    if not case.startswith("modernbert"):
        return t5.states(weights, embedded, layers=2, heads=2, farthest=16, **more)
    windows, thetas = [WINDOW, None], [10_000.0, 160_000.0]
    if case.endswith("first"):
        windows, thetas = windows[::-1], thetas[::-1]
    return modernbert.states(weights, embedded, heads=2, windows=windows, thetas=thetas, **more)


def table(weights: Weights) -> torch.Tensor:
    """The embeddings of all tokens, [V, D]."""
    names = ("embeddings.tok_embeddings.weight", "shared.weight")
    return next(weights[name] for name in names if name in weights)


def adapted(encoder: Encoder) -> dict[Place, Bottleneck]:
    """Adapters at the ends of all sub-layers, with random values."""
    inserted = insert_adapters(encoder, Architecture(encoder.width, 3, init_std=0.4))
    encoder.double()
    generator = torch.Generator().manual_seed(2)
    adapters = [place.adapter for _, place in inserted]
    for adapter in adapters:
        adapter.initialize(generator)
        for bias in (adapter.down.bias, adapter.up.bias):
            torch.nn.init.normal_(bias, generator=generator)
    places = [(place.layer, place.position) for place in encoder.sublayers()]
    return dict(zip(places, adapters, strict=True))


def bottlenecks(own: dict[Place, list[torch.Tensor]]) -> modernbert.Change:
    """A bottleneck behind every sub-layer, by hand."""

    def change(layer: int, position: str, f: torch.Tensor) -> torch.Tensor:
        down, down_bias, up, up_bias = own[layer, position]
        return f + modernbert.gelu(f @ down.T + down_bias) @ up.T + up_bias

    return change


def values_of(adapter: Bottleneck) -> list[torch.nn.Parameter]:
    """The parameters of an adapter, in the order of the reference."""
    return [adapter.down.weight, adapter.down.bias, adapter.up.weight, adapter.up.bias]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("case", CASES)
def test_states_and_gradients_are_those_by_hand(case: str, side: str) -> None:
    """With adapters, of every weight, in a padded batch."""
    encoder, batch = made(case), padded(texts(), side)
    adapters = adapted(encoder)
    weights = weights_of(encoder)
    own = {
        place: [values.detach().clone().requires_grad_() for values in values_of(adapter)]
        for place, adapter in adapters.items()
    }
    _, states = encoder.states(batch)
    assert states.isfinite().all()
    found = tokens_of(states, batch)
    change = bottlenecks(own)
    expected = [by_hand(case, weights, table(weights)[ids], change=change) for ids in texts()]
    torch.testing.assert_close(found, expected, **CLOSE)

    factors = [torch.linspace(-1, 1, text.numel()).view_as(text) for text in expected]
    for outputs in (found, expected):
        torch.cat(
            [(o * f).sum()[None] for o, f in zip(outputs, factors, strict=True)]
        ).sum().backward()
    gradients: dict[str, Any] = {f"body.{name}": w.grad for name, w in weights.items()}
    assert set(gradients) == encoder.pretrained
    given: dict[str, Any] = {n: p.grad for n, p in encoder.named_parameters() if n in gradients}
    for place, adapter in adapters.items():
        gradients[str(place)] = [values.grad for values in own[place]]
        given[str(place)] = [values.grad for values in values_of(adapter)]
    torch.testing.assert_close(given, gradients, **CLOSE)


@pytest.mark.parametrize("case", CASES)
def test_a_text_is_pooled_from_its_own_tokens(case: str) -> None:
    """Whatever stands beside it, and on either side."""
    encoder = made(case)
    weights = weights_of(encoder)
    expected = [by_hand(case, weights, table(weights)[ids]) for ids in texts()]
    pooled = {
        "cls": torch.stack([text[0] for text in expected]),
        "mean": torch.stack([text.mean(0) for text in expected]),
        "last": torch.stack([text[-1] for text in expected]),
    }
    for pooling in encoder.family.pooling:
        other = Encoder(encoder.body, pooling)
        for side in ("right", *(["left"] if pooling != "cls" else [])):
            vectors = other(padded(texts(), side))
            torch.testing.assert_close(vectors, pooled[pooling], **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_masks_really_mask(case: str) -> None:
    """A masked token changes nothing; with a layer that reads all, any other changes each."""
    encoder = made(case)
    batch, other = padded(texts(), "right"), padded(texts(), "right", padding=7)
    _, states = encoder.states(batch)
    assert torch.equal(
        torch.cat(tokens_of(states, batch)), torch.cat(tokens_of(encoder.states(other)[1], batch))
    )
    batch.input_ids[0, 16] = 5 + (batch.input_ids[0, 16] - 4) % (VOCABULARY - 5)
    change = (encoder.states(batch)[1] - states).abs().amax(-1)
    assert (change[0, :17] > 0).all()
    assert not change[1:].any()


@torch.no_grad()
def test_layers_of_local_attention_read_no_farther() -> None:
    """Two of them read twice the window; the last tokens are out of the first one's sight."""
    encoder = family_encoder("modernbert", **STRONG, layer_types=["sliding_attention"] * 2).eval()
    batch = padded([torch.arange(17) + 5], "right")
    _, states = encoder.states(batch)
    batch.input_ids[0, 16] = 40
    change = (encoder.states(batch)[1] - states).abs().amax(-1)[0, :17]
    assert (change > 0).tolist() == [place >= 16 - 2 * WINDOW for place in range(17)]


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_an_adapter_whose_last_map_is_zero_changes_nothing(case: str) -> None:
    encoder, batch = made(case), padded(texts(), "right")
    _, before = encoder.states(batch)
    inserted = insert_adapters(encoder, Architecture(encoder.width, 3, zero_up=True))
    encoder.double()
    for _, place in inserted:
        place.adapter.initialize(torch.Generator().manual_seed(2))
    assert torch.equal(encoder.states(batch)[1], before)


@pytest.mark.parametrize("case", CASES)
def test_only_adapters_norms_and_the_head_learn(case: str) -> None:
    name, shape = CASES[case]
    encoder = family_encoder(name, **shape)
    learner, model, task = Adapter(size=4), TaskModel(encoder, 0), made_task("a")
    learner.attach(model, tasks=[], seed=0, pad_id=0)
    learner.start(task)
    learner.loss(collate([(task, task.split("train"), np.arange(6))], 0)).backward()
    found = {n for n, p in model.named_parameters() if p.grad is not None}
    adapters = {n for n in found if ".adapter." in n}
    norms = {n for n, p in encoder.named_parameters() if p.ndim == 1 and n in encoder.pretrained}
    assert len(adapters) == 4 * 2 * 2
    assert found == adapters | {f"encoder.{n}" for n in norms} | {"heads.a.weight", "heads.a.bias"}


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_maps_are_those_of_query_key_value_and_inner_activations(case: str) -> None:
    """What a hook of a map does to its outputs, changed weights do by hand."""
    encoder, batch = made(case), padded(texts(), "right")
    weights = weights_of(encoder)
    own = {f"body.{name}": w for name, w in weights.items()}
    names = {id(module): name for name, module in encoder.named_modules()}

    def multiply(linear: LinearMap, factor: float, part: int) -> None:
        def hook(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            return linear.placed(output, linear.of(output) * factor)

        linear.module.register_forward_hook(hook)
        matrix = own[f"{names[id(linear.module)]}.weight"]
        rows = linear.out_features if linear.fused else 0  # of a fused map, one after another
        changed = matrix[part * rows : (part + 1) * rows] if rows else matrix
        assert torch.equal(changed, linear.weight)
        changed *= factor

    for maps in encoder.attention_maps():
        for part, (linear, factor) in enumerate(
            [(maps.query, 1.5), (maps.key, 0.7), (maps.value, -2.0)]
        ):
            multiply(linear, factor, part)
    for linear in encoder.inner_maps():
        factors = torch.linspace(-1, 2, linear.in_features).double()

        def rescale(module: Any, inputs: Any, factors: torch.Tensor = factors) -> Any:
            return (inputs[0] * factors,)

        linear.module.register_forward_pre_hook(rescale)
        own[f"{names[id(linear.module)]}.weight"].mul_(factors)
    expected = [by_hand(case, weights, table(weights)[ids]) for ids in texts()]
    torch.testing.assert_close(tokens_of(encoder.states(batch)[1], batch), expected, **CLOSE)


class OnDevice(TorchDispatchMode):
    """Notes the operations of a pass that read or make a tensor on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.on_cpu, self.count = set[str](), 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs, result))
        if any(isinstance(leaf, torch.Tensor) and leaf.is_cpu for leaf in leaves):
            self.on_cpu.add(str(func))
        self.count += 1
        return result


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_a_cuda_graph_can_hold_a_pass(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No value is read (a meta tensor has none), and nothing is on the CPU."""
    monkeypatch.setattr("transformers.masking_utils.is_tracing", lambda tensor=None: True)
    encoder, batch = made(case).to("meta"), padded(texts(), "right")
    moved = SimpleNamespace(**{name: values.to("meta") for name, values in vars(batch).items()})
    with OnDevice() as operations:
        encoder.states(moved)
    assert operations.count > 50
    assert not operations.on_cpu


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_eager_attention_reads_the_same_tokens(case: str) -> None:
    encoder, batch = made(case), padded(texts(), "left")
    expected = tokens_of(encoder.states(batch)[1], batch)
    encoder.body.config._attn_implementation = "eager"
    again = Encoder(encoder.body, encoder.pooling)
    torch.testing.assert_close(tokens_of(again.states(batch)[1], batch), expected, **CLOSE)


def test_a_window_that_no_setting_says_is_refused() -> None:
    encoder = made("modernbert")
    for windows, words in (
        ({"full_attention": None}, "knows full_attention"),
        ({"full_attention": None, "sliding_attention": "reach"}, "'reach'"),
    ):
        family = msgspec.structs.replace(encoder.family, windows=windows)
        with pytest.raises(UserError, match=words):
            Encoder(encoder.body, "cls", family)


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("modernbert", "ModernBertForMaskedLM"),
        ("modernbert", "ModernBertForSequenceClassification"),
        ("t5", "T5ForSequenceClassification"),
        ("t5-gated", "T5ForConditionalGeneration"),
        ("mt5", "MT5ForConditionalGeneration"),
        ("umt5", "UMT5ForConditionalGeneration"),
    ],
)
def test_a_checkpoint_with_heads_is_read_whole_or_refused(
    case: str, kind: str, tmp_path: Path
) -> None:
    name, shape = CASES[case]
    model: Any = getattr(transformers, kind)
    model = model(model.config_class.from_dict(FAMILIES[name] | shape))
    model.save_pretrained(tmp_path)
    inside = model.base_model if case.startswith("modernbert") else model.get_encoder()
    settings = BackboneConfig("t", "folder", str(tmp_path), pooling=POOLING[name])
    body: Any = load_body(settings, VOCABULARY, 0)[0]
    found = body if case.startswith("modernbert") else body.encoder
    torch.testing.assert_close(found.state_dict(), inside.state_dict(), rtol=0, atol=0)

    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    ends = ("mlp.Wo.weight", "1.layer_norm.weight")
    lost = next(key for key in weights if key.endswith(ends) and "decoder" not in key)
    save_file({key: w for key, w in weights.items() if key != lost}, file, {"format": "pt"})
    with pytest.raises(UserError, match="1 missing"):
        load_body(settings, VOCABULARY, 0)
