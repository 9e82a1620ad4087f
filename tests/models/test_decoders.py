"""Decoders: what they compute, where adapters are, what tokens read, and where a prompt stands."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from stream.config.backbone import BackboneConfig
from stream.data.batch import TokenBatch
from stream.data.batching import collate
from stream.errors import UserError
from stream.learners.adapter import Adapter
from stream.models.bf16 import Bf16Encoder
from stream.models.encoder import Encoder, load_encoder
from stream.models.masks import places, readable
from stream.models.modules.prompt import SoftPrompt, drawn_tokens
from stream.models.pretrained import check_backbone, load_body
from stream.models.task_model import TaskModel
from stream.seeding import torch_generator
from tests.builders import VOCABULARY, made_task
from tests.models.reference import check
from tests.models.reference.decoders import GPT2, Decoder, LlamaLike
from tests.models.reference.forms import check_form
from tests.models.reference.functions import gelu_tanh
from tests.models.tiny_families import FAMILIES, WINDOW

WIDER = WINDOW + 1
"""Tokens that are read where no layer reads all: two layers reach the end of a text then."""
GEMMA = LlamaLike(activation=gelu_tanh, offset=1.0, factor=4.0)  # the root of D
GEMMA2 = replace(GEMMA, norms_behind=True, scale=8**-0.5, cap=50.0, windows=(WINDOW, None))
REFERENCES: dict[str, Decoder] = {
    "gpt2": GPT2(),
    "llama": LlamaLike(),
    "mistral": LlamaLike(windows=(WIDER, WIDER)),
    "qwen2": LlamaLike(),
    "qwen3": LlamaLike(inner_norms=True),
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": replace(GEMMA2, cap=None, inner_norms=True, thetas=(10_000.0, 1_000_000.0)),
    "smollm3": LlamaLike(thetas=(2_000_000.0, None)),
}
SHAPES = {
    **{name: FAMILIES[name] for name in REFERENCES if name in FAMILIES},
    "mistral": {**FAMILIES["llama"], "model_type": "mistral", "sliding_window": WIDER},
}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 2.0}


class Float64(TorchFunctionMode):
    """Lets a decoder compute in float64 where its code says float32: norms, angles, softmax."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        del types
        if func is torch.Tensor.float:
            return args[0].double()
        wide = {torch.float32: torch.float64}
        found = [wide.get(a, a) if isinstance(a, torch.dtype) else a for a in args]
        named = {
            k: wide.get(a, a) if isinstance(a, torch.dtype) else a
            for k, a in (kwargs or {}).items()
        }
        return func(*found, **named)


@pytest.fixture
def in_float64() -> Iterator[None]:
    with Float64():
        yield


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("name", REFERENCES)
def test_states_and_adapters_are_those_of_the_reference(name: str) -> None:
    check.check_states(SHAPES[name], REFERENCES[name])
    check.check_adapters(SHAPES[name], REFERENCES[name])
    check.check_identity(SHAPES[name])


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("form", ["parallel", "multiplicative", "pfeiffer"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2"])
def test_forms_of_adapters_read_what_they_should(name: str, form: str) -> None:
    check_form(SHAPES[name], REFERENCES[name].changed, form)


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen2", "qwen3"])
def test_maps_of_attention(name: str) -> None:
    check.check_maps(SHAPES[name], REFERENCES[name].queries_keys_values)


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("name", REFERENCES)
def test_every_weight_has_the_gradient_by_hand(name: str) -> None:
    encoder, batch = check.drawn_encoder(SHAPES[name]), check.made_batch(width=16)
    own = {n.removeprefix("body."): p for n, p in encoder.named_parameters()}
    copies = {n: p.detach().clone().requires_grad_() for n, p in own.items()}
    found = encoder.states(batch)[1]
    wanted = REFERENCES[name](copies, encoder.body.config, batch)
    for states in (found, wanted):
        (states * batch.attention_mask[..., None]).square().mul(torch.arange(16)).sum().backward()
    assert len(own) > 10
    for key, parameter in own.items():
        theirs = copies[key].grad
        assert parameter.grad is not None
        assert theirs is not None
        assert (parameter.grad - theirs).abs().max() < 1e-9 * theirs.abs().max(), key


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("name", REFERENCES)
def test_padding_and_other_texts_change_nothing_and_later_tokens_nothing_before(name: str) -> None:
    check.check_padding(SHAPES[name], ("last", "mean"))
    check.check_masks(SHAPES[name], causal=True)


def prompted_states(name: str, encoder: Encoder, length: int) -> torch.Tensor:
    """States [L, D] of one text behind the encoder's prompt, from the reference."""
    batch, reference = check.made_batch((length,)), REFERENCES[name]
    weights, config = check.weights_of(encoder), encoder.body.config
    assert encoder.prompt is not None
    vectors = encoder.prompt.get_parameter("vectors").detach()[None]
    size = vectors.shape[1]
    tokens = reference.embedded(weights, config, batch)
    if name == "gpt2":  # a prompt has no positions of its own
        positions = torch.tensor([[0] * size + [*range(length)]])
    else:
        positions = torch.arange(size + length)[None]
    first = 1 if name in {"llama", "mistral", "gemma", "gemma2", "gemma3_text"} else 0
    x = torch.cat([tokens[:, :first], vectors, tokens[:, first:]], dim=1)
    whole = torch.ones(1, size + length, dtype=torch.int64)
    batch = TokenBatch(whole, whole, whole, ())
    states = reference.changed(weights, config, batch, lambda _, __, f, *___: f, x, positions)
    return torch.cat([states[0, :first], states[0, first + size :]])


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("name", REFERENCES)
def test_a_prompt_stands_behind_the_mark_of_a_text_at_positions_of_its_own(name: str) -> None:
    encoder = check.drawn_encoder(SHAPES[name])
    prompt = SoftPrompt(encoder, 3).double()
    prompt.initialize(torch_generator(0, "prompt"))
    encoder.insert_prompt(prompt)
    for side in ("right", "left"):
        batch = check.made_batch(width=12, side=side)
        with torch.no_grad():
            texts, states = encoder.states(batch)
        for i, (length, found) in enumerate(
            zip(check.LENGTHS, check.real(states, batch), strict=True)
        ):
            wanted = prompted_states(name, encoder, length)
            check.close(found, wanted)
            check.close(texts[i], wanted[-1])


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("name", REFERENCES)
def test_a_prompt_starts_as_tokens_are_for_the_encoder(name: str) -> None:
    encoder = check.drawn_encoder(SHAPES[name])
    drawn = drawn_tokens(encoder, VOCABULARY, torch_generator(0, "drawn"))
    table = next(
        p for n, p in encoder.named_parameters() if n.endswith(("wte.weight", "tokens.weight"))
    )
    factor = 4 if name.startswith("gemma") else 1  # the root of D
    check.close(drawn.sort(0).values, (table.detach() * factor).sort(0).values)


@pytest.mark.parametrize("prompted", [False, True])
@pytest.mark.parametrize("name", REFERENCES)
def test_no_step_reads_a_value_on_the_cpu_or_computes_a_number_that_is_none(
    name: str, prompted: bool
) -> None:
    config = BackboneConfig("tiny", "random", shape=SHAPES[name], pooling="last")
    encoder = load_encoder(config, vocabulary_size=VOCABULARY, seed=0).train()
    if prompted:
        prompt = SoftPrompt(encoder, 3)
        prompt.initialize(torch_generator(0, "prompt"))
        encoder.insert_prompt(prompt)
    batch = check.made_batch(width=12, side="left")
    outputs: list[Any] = []
    encoder.body.register_forward_hook(lambda module, args, output: outputs.append(output))
    texts, states = encoder.states(batch)
    assert states.isfinite().all()  # of padding too
    assert [*outputs[0].keys()] == ["last_hidden_state"], "a cache is filled"
    (texts.sum() + states.sum()).backward()
    assert all(p.grad.isfinite().all() for p in encoder.parameters() if p.grad is not None)
    # Tensors of this device have no values: what reads one raises an error.
    encoder.to("meta").states(batch.to(torch.device("meta")))[0].sum().backward()


def test_a_token_reads_itself_and_so_many_before_it_wherever_they_stand() -> None:
    # Two columns of padding, a mark, two vectors of a prompt in columns 1 and 2, two more tokens.
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    order = places(mask, between=2, behind=1)
    whole = torch.cat([mask[:, :1], torch.ones(1, 2, dtype=torch.int64), mask[:, 1:]], dim=1)
    assert order[whole == 1].tolist() == [1, 2, 0, 3, 4]  # prompt, mark, tokens
    found = readable(whole, order, 3, causal=True)[0, 0]
    wanted = {0: [0], 1: [1, 4], 2: [1, 2, 4], 3: [3], 4: [4], 5: [1, 2, 5], 6: [2, 5, 6]}
    assert {i: row.nonzero()[:, 0].tolist() for i, row in enumerate(found)} == wanted


@pytest.mark.parametrize("name", REFERENCES)
def test_an_adapter_learns_alone(name: str) -> None:
    config = BackboneConfig("tiny", "random", shape=SHAPES[name], pooling="last")
    encoder = load_encoder(config, vocabulary_size=VOCABULARY, seed=0)
    task, learner = made_task("a", 3), Adapter(init_std=0.1)
    learner.attach(TaskModel(encoder, 0), tasks=[task], seed=0, pad_id=0)
    learner.start(task)
    batch = collate([(task, task.split("train"), np.arange(8))], 0)
    learner.loss(batch).backward()
    trained = learner.trained_parameters()
    assert sum(".adapter." in n for n in trained) == 2 * 2 * 4  # layers, sub-layers, maps
    changed = {n for n, p in learner.model.named_parameters() if p.grad is not None}
    assert changed == trained.keys()


@pytest.mark.parametrize("name", REFERENCES)
def test_a_copy_in_bf16_turns_tokens_by_the_same_angles(name: str) -> None:
    config = BackboneConfig("tiny", "random", shape=SHAPES[name], pooling="last")
    encoder = load_encoder(config, vocabulary_size=VOCABULARY, seed=0).eval()
    copied = Bf16Encoder(encoder).encoder
    assert {p.dtype for p in copied.parameters()} == {torch.bfloat16}
    found = dict(copied.named_buffers())
    assert (name == "gpt2") == (not found)
    for buffer, values in encoder.named_buffers():
        assert found[buffer].dtype == values.dtype
        assert torch.equal(found[buffer], values)
        assert found[buffer] is not values
    batch = check.made_batch()
    with torch.no_grad():
        close, exact = copied.states(batch)[1], encoder.states(batch)[1]
    torch.testing.assert_close(close.float(), exact, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_first_token_stands_for_no_text(name: str) -> None:
    config = BackboneConfig("tiny", "random", shape=SHAPES[name], pooling="cls")
    with pytest.raises(UserError, match=r"reads no other.*choose from last, mean"):
        load_encoder(config, vocabulary_size=VOCABULARY)


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("llama", {"rope_parameters": DYNAMIC}, "longest text"),
        ("qwen2", {"layer_types": ["full_attention", "chunked_attention"]}, "chunked_attention"),
        ("gemma3_text", {"use_bidirectional_attention": True}, "must be False"),
        ("gpt2", {"add_cross_attention": True}, "must be False"),
    ],
)  # fmt: skip
def test_settings_that_compute_otherwise_are_refused(
    name: str, setting: dict[str, Any], message: str
) -> None:
    config = BackboneConfig("tiny", "random", shape={**SHAPES[name], **setting}, pooling="last")
    with pytest.raises(UserError, match=message):
        load_encoder(config, vocabulary_size=VOCABULARY)


def test_attention_that_leaves_the_cap_of_scores_out_is_refused() -> None:
    shape = SHAPES["gemma2"]
    given = BackboneConfig("tiny", "random", shape=shape, pooling="last", attention="sdpa")
    with pytest.raises(UserError, match=r"backbone.attention of Gemma2Model 'sdpa'.*auto, eager"):
        check_backbone(given)
    body, family = load_body(replace(given, attention="auto"), VOCABULARY, 0)
    config: Any = body.config
    assert config._attn_implementation == "eager"
    config._attn_implementation = "sdpa"
    with pytest.raises(UserError, match=r"attention of gemma2 'sdpa'.*eager"):
        Encoder(body, "last", family)
