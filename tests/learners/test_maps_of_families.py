"""Methods that change maps of attention, where maps are fused or shared by heads; float64.

GPT-2 makes queries, keys and values in one map whose weights stand the other way round; in Llama
two heads share keys and values. What a method changes is put into the weights of another encoder
by their names, as the method's paper says.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import CONFIG_MAPPING, AutoModel, DynamicCache, T5EncoderModel

from stream.data.batch import TokenBatch
from stream.data.batching import collate
from stream.errors import UserError
from stream.learners.bapna import Bapna
from stream.learners.base import Learner
from stream.learners.bitfit import BitFit
from stream.learners.dora import Dora
from stream.learners.ia3 import Ia3
from stream.learners.lora import Lora
from stream.learners.migu import Migu
from stream.learners.olora import OLora
from stream.learners.pals import Pals
from stream.learners.prefix_tuning import PrefixTuning
from stream.learners.progressive import Progressive
from stream.learners.topk import TopK
from stream.models.encoder import Encoder
from stream.models.families.family import read_family
from stream.models.modules.active_tasks import ActiveTasks
from stream.models.modules.columns import add_columns
from stream.models.modules.magnitudes import Magnitudes
from stream.models.modules.prefix import plain_attention
from stream.models.task_model import TaskModel
from tests.builders import VOCABULARY, made_task, tiny_encoder
from tests.models.tiny_families import family_encoder

FAMILIES = {
    "gpt2": """
model_types: [gpt2]
layers: h
norms: before
attention: {reader: attn, end: attn.resid_dropout, norm: ln_1}
feedforward: {reader: mlp, end: mlp.dropout, norm: ln_2}
query: {map: attn.c_attn, part: 0}
key: {map: attn.c_attn, part: 1}
value: {map: attn.c_attn, part: 2}
output: attn.c_proj
inner: mlp.c_proj
final_norm: ln_f
causal: true
leading: 0
pooling: [last]
""",
    "llama": """
model_types: [llama]
layers: layers
norms: before
attention: {reader: self_attn, end: self_attn.o_proj, norm: input_layernorm}
feedforward: {reader: mlp, end: mlp, norm: post_attention_layernorm}
query: self_attn.q_proj
key: self_attn.k_proj
value: self_attn.v_proj
output: self_attn.o_proj
inner: mlp.down_proj
positions: {kind: rotary}
final_norm: norm
causal: true
leading: 0
pooling: [last]
""",
    "t5": """
model_types: [t5]
layers: encoder.block
norms: before
attention: {reader: layer.0.SelfAttention, end: layer.0.dropout, norm: layer.0.layer_norm}
feedforward: {reader: layer.1.DenseReluDense, end: layer.1.dropout, norm: layer.1.layer_norm}
query: layer.0.SelfAttention.q
key: layer.0.SelfAttention.k
value: layer.0.SelfAttention.v
output: layer.0.SelfAttention.o
inner: layer.1.DenseReluDense.wo
positions: {kind: relative}
leading: 0
pooling: [last]
final_norm: encoder.final_layer_norm
""",
}
D, WIDTH, HEADS = 16, 4, {"gpt2": 4, "llama": 2}  # of keys and values
SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": D, "n_layer": 2, "n_head": 4, "n_positions": 32},
    "llama": {
        "hidden_size": D,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 32,
    },
    "t5": {"d_model": D, "d_kv": WIDTH, "d_ff": 24, "num_layers": 2, "num_heads": 2},
}
TEXTS = [[5, 23, 31, 9, 11], [7, 41, 8]]
BOTH = pytest.mark.parametrize("family", ["gpt2", "llama"])


def batch_of(rows: list[list[int]], width: int, side: str = "right") -> TokenBatch:
    ids, mask = torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width)
    for number, row in enumerate(rows):
        columns = slice(0, len(row)) if side == "right" else slice(width - len(row), width)
        ids[number, columns] = torch.tensor(row)
        mask[number, columns] = 1
    return TokenBatch(ids, mask.long(), torch.zeros_like(ids), (), padding=side)


def plain(family: str, folder: Path) -> Encoder:
    """An encoder of the family, all its weights drawn; float64."""
    path = folder / f"{family}.yaml"
    path.write_text(FAMILIES[family])
    shape = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = CONFIG_MAPPING[family](**SHAPES[family], **shape, use_cache=False)
    torch.manual_seed(0)
    body = T5EncoderModel(config) if family == "t5" else AutoModel.from_config(config)
    body.double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in body.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(noise, alpha=0.2)
    return Encoder(body, "last", read_family(path)).eval()


def changed(
    learner: Learner, family: str, folder: Path
) -> tuple[Encoder, dict[str, nn.Parameter], Encoder]:
    """An encoder whose inserted modules are not at their first values, these, and one without."""
    task, model = made_task("a"), TaskModel(plain(family, folder), 0)
    learner.attach(model, tasks=[task], seed=0, pad_id=0)
    learner.start(task)
    encoder = model.encoder.double().eval()
    learner.active.show(learner.sources("a"))
    added = {n: p for n, p in encoder.named_parameters() if n not in encoder.pretrained}
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in added.values():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(noise, alpha=0.3)
    return encoder, added, plain(family, folder)


def weights(encoder: Encoder, family: str, layer: int, role: str) -> torch.Tensor:
    """The weights of one map as [D_out, D_in], those that are stored."""
    body: Any = encoder.body
    if family == "llama":
        return getattr(body.layers[layer].self_attn, f"{role[0]}_proj").weight
    part = ("query", "key", "value").index(role)
    return body.h[layer].attn.c_attn.weight[:, part * D : (part + 1) * D].T


def stem(family: str, layer: int, role: str, name: str) -> str:
    """How the names of a map's change begin."""
    if family == "llama":
        return f"body.layers.{layer}.self_attn.{role[0]}_proj.{name}"
    return f"body.h.{layer}.attn.c_attn.{name}_{role}"


def close(found: torch.Tensor, expected: Any) -> None:
    torch.testing.assert_close(
        found.detach(), torch.as_tensor(expected).detach(), rtol=1e-9, atol=1e-10
    )


def compare(encoder: Encoder, other: Encoder, before: torch.Tensor) -> None:
    """Both give the same states of tokens, which are not those before; padded on either side."""
    batch = batch_of(TEXTS, 7)
    found, expected = encoder.states(batch)[1], other.states(batch)[1]
    for row, text in enumerate(TEXTS):
        close(found[row, : len(text)], expected[row, : len(text)])
        assert not torch.allclose(found[row, : len(text)], before[row, : len(text)], atol=1e-3)


@BOTH
@pytest.mark.parametrize("make", [Lora, Dora, OLora])
def test_low_rank_changes_are_those_of_the_weights(
    make: type[Learner], family: str, tmp_path: Path
) -> None:
    """W + c B A; DoRA's rows have the norm m. Keys stay as they are."""
    encoder, added, other = changed(make(rank=3, alpha=6.0), family, tmp_path)
    before, task = other.states(batch_of(TEXTS, 7))[1], ".a" if make is OLora else ""
    with torch.no_grad():
        for layer in range(2):
            for role in ("query", "value"):
                of = stem(family, layer, role, make.name)
                down, up = (added.pop(f"{of}{task}.{m}.weight").numpy() for m in ("down", "up"))
                weight = weights(other, family, layer, role)
                moved = weight.numpy() + 6.0 / 3 * up @ down
                if make is Dora:
                    lengths = np.sqrt((moved**2).sum(1, keepdims=True))
                    moved = added.pop(f"{of}.magnitude").numpy()[:, None] * moved / lengths
                weight.copy_(torch.from_numpy(moved))
    assert not added
    compare(encoder, other, before)


@BOTH
def test_ia3_is_the_encoder_with_factors_in_its_weights(family: str, tmp_path: Path) -> None:
    encoder, added, other = changed(Ia3(), family, tmp_path)
    before, body = other.states(batch_of(TEXTS, 7))[1], other.body
    with torch.no_grad():
        for layer in range(2):
            for part, role in ((1, "key"), (2, "value")):
                factors = added.pop(f"{stem(family, layer, role, 'ia3')}.factors")
                assert len(factors) == HEADS[family] * WIDTH
                weights(other, family, layer, role).mul_(factors[:, None])
                if family == "gpt2":
                    body.h[layer].attn.c_attn.bias[part * D : (part + 1) * D] *= factors
            if family == "gpt2":
                factors = added.pop(f"body.h.{layer}.mlp.c_proj.ia3.factors")
                body.h[layer].mlp.c_proj.weight *= factors[:, None]
            else:
                factors = added.pop(f"body.layers.{layer}.mlp.down_proj.ia3.factors")
                body.layers[layer].mlp.down_proj.weight *= factors
    assert not added
    compare(encoder, other, before)


@BOTH
def test_a_prefix_is_what_transformers_calls_cached_keys_and_values(
    family: str, tmp_path: Path
) -> None:
    """But for tokens' positions, which it does not move; its keys are not turned."""
    encoder, added, other = changed(PrefixTuning(length=3), family, tmp_path)
    parts = list(added.values())  # keys and values of the first layer, then of the second
    assert [tuple(p.shape) for p in parts] == [(3, HEADS[family] * WIDTH)] * 4
    wide = encoder.states(batch_of(TEXTS, 7))[1]
    left = encoder.states(batch_of(TEXTS, 7, "left"))[1]
    for row, text in enumerate(TEXTS):
        heads = [p.unflatten(1, (-1, WIDTH)).transpose(0, 1)[None] for p in parts]
        with torch.no_grad():
            expected = other.body(
                input_ids=torch.tensor([text]),
                attention_mask=torch.ones(1, 3 + len(text), dtype=torch.long),
                position_ids=torch.arange(len(text))[None],
                cache=DynamicCache([(heads[0], heads[1]), (heads[2], heads[3])]),
            ).last_hidden_state[0]
            without = other.body(input_ids=torch.tensor([text])).last_hidden_state[0]
        close(wide[row, : len(text)], expected)
        close(left[row, 7 - len(text) :], expected)
        close(encoder.states(batch_of([text], len(text)))[1][0], expected)
        assert not torch.allclose(expected, without, atol=1e-2)


@BOTH
def test_prefixes_of_an_mlp_have_the_width_of_keys(family: str, tmp_path: Path) -> None:
    learner = PrefixTuning(length=3, mlp=True, mlp_size=5)
    _, added, _ = changed(learner, family, tmp_path)
    learner._write()
    mlp = learner._made_by
    p = {name: value.detach().double().numpy() for name, value in mlp.named_parameters()}
    inner = np.tanh(p["base"] @ p["down.weight"].T + p["down.bias"])
    made = inner @ p["up.weight"].T + p["up.bias"]
    parts = np.split(made, 4, axis=1)
    for found, expected in zip(added.values(), parts, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_bias_by_position_is_none_on_a_prefix(tmp_path: Path) -> None:
    """T5: softmax(Q [P_K; K]^T + [0; bias]) [P_V; V], scores not scaled; no padding is read."""
    encoder, added, _ = changed(PrefixTuning(length=3), "t5", tmp_path)
    body, seen = encoder.body, {}
    module = body.encoder.block[0].layer[0].SelfAttention
    module.register_forward_hook(lambda m, args, out: seen.update(x=args[0], out=out[0]))
    encoder.states(batch_of(TEXTS, 7))
    maps = [getattr(module, name).weight.detach().numpy() for name in "qkvo"]
    keys, values = (p.detach().numpy() for p in list(added.values())[:2])
    biases = module.compute_bias(7, 7).detach().numpy()[0]  # [H, L, L]
    assert np.abs(biases).max() > 0.1
    for row, text in enumerate(TEXTS):
        length = len(text)
        h = seen["x"][row, :length].detach().numpy()
        q, k, v = (h @ weight.T for weight in maps[:3])
        k, v = np.concatenate([keys, k]), np.concatenate([values, v])
        mixed = []
        for head in range(2):
            of = slice(WIDTH * head, WIDTH * head + WIDTH)
            scores = q[:, of] @ k[:, of].T
            scores[:, 3:] += biases[head, :length, :length]
            exponents = np.exp(scores)
            mixed.append(exponents / exponents.sum(1, keepdims=True) @ v[:, of])
        close(seen["out"][row, :length], np.concatenate(mixed, axis=1) @ maps[3].T)


def test_attention_step_by_step_caps_scores() -> None:
    """Gemma 2: cap tanh(Q K^T s / cap); two heads of queries read one of keys; a bool mask."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(1, heads, 3, 4, generator=generator, dtype=torch.float64) for heads in (4, 2, 2)
    )
    mask = torch.ones(1, 1, 3, 3, dtype=torch.bool).tril()
    found, _ = plain_attention(nn.Identity(), q, k, v, mask, scaling=0.7, softcap=0.9)
    for head in range(4):
        scores = 0.9 * np.tanh(0.7 * q[0, head].numpy() @ k[0, head // 2].numpy().T / 0.9)
        exponents = np.exp(scores) * np.tri(3)
        expected = exponents / exponents.sum(1, keepdims=True) @ v[0, head // 2].numpy()
        close(found[0, :, head], expected)


def test_attention_that_takes_no_prefix_is_refused_in_one_line(tmp_path: Path) -> None:
    encoder = tiny_encoder(model_type="deberta-v2")
    with pytest.raises(UserError, match="prefix_tuning: DebertaV2Model computes attention by"):
        PrefixTuning().setup(encoder, ["a"])
    flexible = tiny_encoder()
    flexible.body.set_attn_implementation("flex_attention")
    with pytest.raises(UserError, match="sdpa or eager, got 'flex_attention'"):
        PrefixTuning().setup(flexible, ["a"])


def test_an_encoder_without_biases_is_refused_in_one_line(tmp_path: Path) -> None:
    encoder, _, _ = changed(BitFit(), "gpt2", tmp_path)
    assert sum(map(BitFit().trains, encoder.read_parameters())) == 2 * (2 + 2 + 2) + 1
    with pytest.raises(UserError, match="learner=bitfit: LlamaModel has no biases"):
        changed(BitFit(), "llama", tmp_path)


@BOTH
def test_the_norm_behind_the_top_layer_is_trained_with_it(family: str, tmp_path: Path) -> None:
    learner = TopK(layers=1)
    encoder, _, _ = changed(learner, family, tmp_path)
    trained = {n for n, p in encoder.named_parameters() if p.requires_grad}
    stems = ("body.h.1.", "body.ln_f.") if family == "gpt2" else ("body.layers.1.", "body.norm.")
    assert trained == {n for n, _ in encoder.named_parameters() if n.startswith(stems)}
    assert any(name.startswith(stems[1]) for name in trained)


def test_rows_of_a_map_that_stores_columns_are_masked(tmp_path: Path) -> None:
    """MIGU of GPT-2: the outputs of the smallest share learn nothing; each is a column here."""
    learner = Migu(masked=0.5)
    encoder, _, _ = changed(learner, "gpt2", tmp_path)
    learner.learned.append(made_task("z"))
    task, seen = made_task("a"), {}
    batch = collate([(task, task.split("train"), np.arange(6))], 0)
    module = encoder.body.h[1].mlp.c_fc
    module.register_forward_hook(lambda m, args, out: seen.update(out=out.detach().abs()))
    learner.loss(batch).backward()
    learner.after_backward(batch)
    real = batch.attention_mask.bool()
    shares = (seen["out"] / seen["out"].sum(-1, keepdim=True))[real].mean(0)
    kept = shares >= shares.quantile(0.5)
    assert kept.float().mean() == 0.5
    assert (module.weight.grad.abs().sum(0) > 0).tolist() == kept.tolist()
    assert (module.bias.grad != 0).tolist() == kept.tolist()


@BOTH
def test_a_column_is_the_layers_themselves_at_first(family: str, tmp_path: Path) -> None:
    """With laterals that add nothing, a column of copies gives what the encoder does."""
    encoder, added, other = changed(Progressive(size=3), family, tmp_path)
    with torch.no_grad():
        for name, parameter in added.items():
            if ".lateral." in name:
                parameter.zero_()
            else:
                first = name.replace(".columns.a.layer", "")
                parameter.copy_(encoder.get_parameter(first))
    batch = batch_of(TEXTS, 7)
    close(encoder(batch), other(batch))


def test_columns_beside_a_layer_that_is_used_twice_are_refused(tmp_path: Path) -> None:
    encoder = plain("gpt2", tmp_path)
    encoder.body.config.num_hidden_layers = 4
    with pytest.raises(UserError, match="GPT2Model uses one layer several times"):
        add_columns(encoder, ["a"], 3, ActiveTasks())


def test_projected_attention_of_a_decoder_reads_no_later_token(tmp_path: Path) -> None:
    encoder, added, _ = changed(Pals(size=12), "gpt2", tmp_path)
    assert added
    one, other = (encoder.states(batch_of([[5, 23, last, 9]], 5))[1] for last in (31, 32))
    close(one[0, :2], other[0, :2])
    assert not torch.allclose(one[0, 2:4], other[0, 2:4], atol=1e-3)


@pytest.mark.parametrize(("make", "stem"), [(Bapna, "adapter"), (PrefixTuning, "prefix")])
def test_a_layer_that_is_used_again_has_modules_of_its_own_each_time(
    make: type[Learner], stem: str
) -> None:
    """ALBERT's one layer of three uses: what belongs to a use matters in it, and in no other."""
    learner, task, batch = make(), made_task("a"), batch_of(TEXTS, 7)
    model = TaskModel(family_encoder("albert"), 0)
    learner.attach(model, tasks=[task], seed=0, pad_id=0)
    learner.start(task)
    encoder, seen = model.encoder.eval(), []
    own = [name for name, _ in encoder.named_parameters() if name not in encoder.pretrained]
    layer = encoder.layers()[0]
    layer.register_forward_hook(lambda m, i, out: seen.append(out[0] if len(out) == 1 else out))
    encoder(batch)
    before = list(seen)
    for use in range(3):
        names = [name for name in own if f".{stem}_{use}." in name]
        assert len(names) == len(own) / 3 > 0
        seen.clear()
        kept = {name: encoder.get_parameter(name).detach().clone() for name in names}
        with torch.no_grad():
            for name in names:
                encoder.get_parameter(name).add_(0.5)
            encoder(batch)
            for name in names:
                encoder.get_parameter(name).copy_(kept[name])
        same = [torch.equal(now, then) for now, then in zip(seen, before, strict=True)]
        assert same == [index < use for index in range(3)]


def test_the_magnitudes_of_a_map_that_reads_no_tokens_are_means_over_what_it_reads() -> None:
    """DeBERTa maps embeddings of distances, [1, 2 k, D], whatever tokens there are."""
    magnitudes, linear = Magnitudes(), nn.Linear(3, 4)
    magnitudes.watch("distances", linear)
    with magnitudes.noting(torch.tensor([[1, 1, 0], [1, 0, 0]])):
        sizes = linear(torch.randn(1, 10, 3)).detach().abs()
    expected = (sizes / sizes.sum(-1, keepdim=True)).mean((0, 1))
    torch.testing.assert_close(magnitudes.shares["distances"], expected)
