"""ModernBERT, T5, mT5 and umT5 against forward passes by hand; masks that a CUDA graph can hold."""

import json
from pathlib import Path
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
from stream.data.batch import TokenBatch
from stream.data.batching import collate
from stream.errors import UserError
from stream.learners.adapter import Adapter
from stream.models.encoder import Encoder
from stream.models.families.config import most_tokens, read_config
from stream.models.masks import places, readable
from stream.models.modules.prompt import SoftPrompt
from stream.models.pretrained import load_body
from stream.models.task_model import TaskModel
from stream.seeding import torch_generator
from tests.builders import VOCABULARY, made_task
from tests.models.reference import check, modernbert, t5
from tests.models.reference.forms import FORMS, check_form
from tests.models.tiny_families import FAMILIES, WINDOW

ROUGH = 2e-5  # transformers has rotations and T5's norms in float32
GLOBAL_FIRST = {"layer_types": ["full_attention", "sliding_attention"]}
SHAPES: dict[str, dict[str, Any]] = {
    "modernbert": FAMILIES["modernbert"],
    "modernbert-global-first": {**FAMILIES["modernbert"], **GLOBAL_FIRST},
    "t5": FAMILIES["t5"],
    "t5-gated": FAMILIES["t5_gated"],
    "mt5": FAMILIES["mt5"],
    "umt5": FAMILIES["umt5"],
}
each = pytest.mark.parametrize("name", SHAPES)


def by_hand(name: str) -> Any:
    """The module that has the forward pass of a family."""
    return modernbert if name.startswith("modernbert") else t5


def reference(name: str) -> check.Reference:
    """The forward pass of a family."""
    return modernbert.modernbert if name.startswith("modernbert") else t5.t5


@each
def test_states_and_adapters_are_those_by_hand(name: str) -> None:
    check.check_states(SHAPES[name], reference(name), tolerance=ROUGH)
    check.check_adapters(SHAPES[name], reference(name), tolerance=ROUGH)
    check.check_identity(SHAPES[name])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["modernbert", "t5"])
def test_forms_read_what_they_should(name: str, form: str) -> None:
    check_form(SHAPES[name], by_hand(name).changed, form, ROUGH)


@each
def test_padding_and_masks(name: str) -> None:
    poolings = ("cls", "mean") if name.startswith("modernbert") else ("mean", "last")
    check.check_padding(SHAPES[name], poolings, tolerance=ROUGH)
    check.check_masks(SHAPES[name])


@each
def test_every_weight_has_the_gradient_by_hand(name: str) -> None:
    """Also tables of biases, and where rows are padded."""
    encoder, batch = check.drawn_encoder(SHAPES[name]), check.made_batch(width=16)
    own = {n.removeprefix("body."): p for n, p in encoder.named_parameters()}
    copies = {n: p.detach().clone().requires_grad_() for n, p in own.items()}
    found = encoder.states(batch)[1]
    wanted = reference(name)(copies, encoder.body.config, batch)
    for states in (found, wanted):
        (states * batch.attention_mask[..., None]).square().mul(torch.arange(16)).sum().backward()
    assert len(own) > 10
    for key, parameter in own.items():
        theirs = copies[key].grad
        assert parameter.grad is not None
        assert theirs is not None
        assert (parameter.grad - theirs).abs().max() < 5 * ROUGH * theirs.abs().max(), key


@each
def test_maps_of_attention(name: str) -> None:
    check.check_maps(SHAPES[name], by_hand(name).queries_keys_values)


@torch.no_grad()
@each
def test_a_factor_of_an_inner_activation_is_one_of_a_column(name: str) -> None:
    """The map that reads the inner activations reads them behind activation and gate."""
    encoder, batch = check.drawn_encoder(SHAPES[name]), check.made_batch()
    weights = check.weights_of(encoder)
    factors = torch.linspace(-1, 2, 32).double()
    for index, linear in enumerate(encoder.inner_maps()):
        linear.module.register_forward_pre_hook(lambda _, inputs: (inputs[0] * factors,))
        modern = name.startswith("modernbert")
        end = "mlp.Wo" if modern else "layer.1.DenseReluDense.wo"
        weights[f"{'layers' if modern else 'encoder.block'}.{index}.{end}.weight"] *= factors
    wanted = check.real(reference(name)(weights, encoder.body.config, batch), batch)
    for found, other in zip(check.real(encoder.states(batch)[1], batch), wanted, strict=True):
        check.close(found, other, ROUGH)


@each
def test_only_adapters_norms_and_the_head_learn(name: str) -> None:
    encoder = check.load(SHAPES[name])
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
@each
def test_a_prompt_is_part_of_the_text_for_its_tokens(name: str) -> None:
    """Behind [CLS], or in front of a text of T5; its own states are no one's."""
    encoder = check.drawn_encoder(SHAPES[name])
    prompt = SoftPrompt(encoder, 3).double()
    prompt.initialize(torch_generator(0, "prompt"))
    encoder.insert_prompt(prompt)
    weights, first = check.weights_of(encoder), encoder.family.leading
    assert first == name.startswith("modernbert")
    batch = check.made_batch(width=16)
    found = check.real(encoder.states(batch)[1], batch)
    for length, states in zip(check.LENGTHS, found, strict=True):
        tokens = weights[by_hand(name).TABLE][check.made_batch((length,)).input_ids]
        vectors = prompt.get_parameter("vectors")[None]
        x = torch.cat([tokens[:, :first], vectors, tokens[:, first:]], dim=1)
        whole = torch.ones(1, length + 3, dtype=torch.int64)
        text = TokenBatch(whole, whole, whole, ())
        wanted = by_hand(name).changed(
            weights, encoder.body.config, text, lambda index, place, f, *_: f, x
        )[0]
        check.close(states, torch.cat([wanted[:first], wanted[first + 3 :]]), ROUGH)


@torch.no_grad()
def test_layers_of_local_attention_read_no_farther() -> None:
    """Two of them read twice the window: the first tokens are out of the last one's sight."""
    shape = {**FAMILIES["modernbert"], "layer_types": ["sliding_attention"] * 2}
    encoder, batch = check.drawn_encoder(shape), check.made_batch((17,))
    _, states = encoder.states(batch)
    batch.input_ids[0, 16] = 5 + (batch.input_ids[0, 16] - 4) % (VOCABULARY - 5)
    change = (encoder.states(batch)[1] - states).abs().amax(-1)[0]
    assert (change > 0).tolist() == [place >= 16 - 2 * WINDOW for place in range(17)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", range(2, 9))
def test_every_column_reads_a_token_or_itself(length: int, causal: bool) -> None:
    mask = torch.ones(3, length, dtype=torch.int64)
    mask[1, length // 2 :] = mask[2, : length // 2] = 0
    found = readable(mask, places(mask), 2, causal=causal).expand(-1, 1, length, length)[:, 0]
    for row in range(3):
        for i in range(length):
            assert found[row, i].any()
            for j in range(length):
                near = 0 <= i - j < 2 if causal else abs(i - j) <= 2
                if mask[row, i]:
                    assert found[row, i, j] == (mask[row, j] == 1 and near)


class OnDevice(TorchDispatchMode):
    """Notes the operations of a pass that read or make a tensor on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.on_cpu, self.count = set[str](), 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs, result))
        if any(isinstance(leaf, torch.Tensor) and leaf.is_cpu for leaf in leaves):
            self.on_cpu.add(str(func))
        self.count += 1
        return result


@each
def test_a_cuda_graph_can_hold_a_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No value is read (a meta tensor has none), and nothing is on the CPU."""
    monkeypatch.setattr("transformers.masking_utils.is_tracing", lambda tensor=None: True)
    encoder = check.load(SHAPES[name]).train().to("meta")
    batch = check.made_batch().to(torch.device("meta"))
    with OnDevice() as operations:
        encoder(batch).sum().backward()
    assert operations.count > 100
    assert not operations.on_cpu


@torch.no_grad()
@each
def test_eager_attention_reads_the_same_tokens(name: str) -> None:
    encoder, batch = check.drawn_encoder(SHAPES[name]), check.made_batch(width=16, side="left")
    expected = check.real(encoder.states(batch)[1], batch)
    config: Any = encoder.body.config
    config._attn_implementation = "eager"
    found = check.real(Encoder(encoder.body, encoder.pooling).states(batch)[1], batch)
    torch.testing.assert_close(found, expected, rtol=ROUGH, atol=ROUGH)


def test_a_window_that_no_setting_says_is_refused() -> None:
    encoder = check.load(SHAPES["modernbert"])
    for windows, words in (
        ({"full_attention": None}, "knows full_attention"),
        ({"full_attention": None, "sliding_attention": "reach"}, "'reach'"),
    ):
        family = msgspec.structs.replace(encoder.family, windows=windows)
        with pytest.raises(UserError, match=words):
            Encoder(encoder.body, "cls", family)


@pytest.mark.parametrize(
    ("name", "kind"),
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
    name: str, kind: str, tmp_path: Path
) -> None:
    model: Any = getattr(transformers, kind)
    model = model(model.config_class.from_dict(SHAPES[name]))
    model.save_pretrained(tmp_path)
    modern = name.startswith("modernbert")
    settings = BackboneConfig("t", "folder", str(tmp_path), pooling="cls" if modern else "mean")
    body: Any = load_body(settings, VOCABULARY, 0)[0]
    found, inside = (body, model.base_model) if modern else (body.encoder, model.get_encoder())
    torch.testing.assert_close(found.state_dict(), inside.state_dict(), rtol=0, atol=0)

    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    ends = ("mlp.Wo.weight", "1.layer_norm.weight")
    lost = next(key for key in weights if key.endswith(ends) and "decoder" not in key)
    save_file({key: w for key, w in weights.items() if key != lost}, file, {"format": "pt"})
    with pytest.raises(UserError, match="1 missing"):
        load_body(settings, VOCABULARY, 0)


def test_settings_of_older_files_are_read(tmp_path: Path) -> None:
    """As in the configurations that the authors published; one that says otherwise is heard."""
    older = {
        "global_attn_every_n_layers": 2,
        "global_rope_theta": 8000.0,
        "local_rope_theta": 500.0,
        "position_embedding_type": "absolute",
        "reference_compile": True,
        "num_hidden_layers": 4,
    }
    newer = {"layer_types", "rope_parameters"}
    shape = {k: v for k, v in SHAPES["modernbert"].items() if k not in newer}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(shape | older))
    found, family = read_config(BackboneConfig("t", "folder", str(tmp_path)), str(tmp_path))
    bases = {"full_attention": 8000.0, "sliding_attention": 500.0}
    said = {
        "num_hidden_layers": 4,
        "layer_types": [*bases, *bases],
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()
        },
    }
    config: Any = transformers.ModernBertConfig.from_dict({**shape, **said})
    assert most_tokens(found, family) == 32
    body = transformers.ModernBertModel(config)
    again = transformers.ModernBertModel(found)
    again.load_state_dict(body.state_dict())
    batch = check.made_batch()
    with torch.no_grad():
        states = Encoder(body.eval()).states(batch)[1]
        torch.testing.assert_close(Encoder(again.eval()).states(batch)[1], states, rtol=0, atol=0)


def test_t5_has_a_place_behind_its_dropout_and_no_end_of_positions() -> None:
    encoder = check.load(SHAPES["t5"])
    assert all(isinstance(place.end, torch.nn.Dropout) for place in encoder.sublayers())
    assert encoder.most_tokens is None
