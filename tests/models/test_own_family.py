"""An encoder that no one here knows works once a YAML file describes it; mistakes are one line."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
import yaml
from torch import nn

from stream.config.backbone import BackboneConfig
from stream.data.batching import collate
from stream.errors import UserError
from stream.models.encoder import Encoder, load_encoder
from stream.models.families import catalogue
from stream.models.families.family import Family, read_family
from stream.models.families.paths import check_paths
from stream.models.modules.bottleneck import Architecture, insert_adapters
from stream.models.pretrained import check_backbone
from tests.builders import TINY, VOCABULARY, made_task
from tests.models.tiny_families import FAMILIES

PAGE = (Path(__file__).parents[2] / "docs/how-to/encoders.md").read_text()
# The example of the page, whose layers are those of BERT.
EXAMPLE: dict[str, Any] = yaml.safe_load(PAGE.partition("```yaml\n")[2].partition("```")[0])
SHAPE = {**TINY, "model_type": "bert-generation"}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**EXAMPLE, **changes}))
    return path


def backbone(family: Path | None, **settings: Any) -> BackboneConfig:
    chosen = {"shape": SHAPE, "max_length": 32, **settings}
    return BackboneConfig("mine", "random", family=family and str(family), **chosen)


def loaded(family: Path | None, **settings: Any) -> Encoder:
    config = backbone(family, **settings)
    check_backbone(config)
    return load_encoder(config, vocabulary_size=VOCABULARY).eval()


def test_a_described_encoder_computes_and_takes_adapters(tmp_path: Path) -> None:
    encoder = loaded(written(tmp_path))
    task = made_task("a")
    batch = collate([(task, task.split("train"), np.arange(6))], 0)
    body: Any = encoder.body
    before = encoder(batch)
    theirs = body(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
    torch.testing.assert_close(before, theirs.last_hidden_state[:, 0])
    assert [(place.layer, place.position) for place in encoder.sublayers()] == [
        *((0, "attention"), (0, "feedforward")),
        *((1, "attention"), (1, "feedforward")),
    ]
    assert encoder.attention_maps()[1].query.module is body.encoder.layer[1].attention.self.query
    generator = torch.Generator().manual_seed(0)
    placed = insert_adapters(encoder, Architecture(encoder.width, 4, zero_up=True))
    for _, inserted in placed:
        inserted.adapter.initialize(generator)
    assert torch.equal(encoder(batch), before)
    for _, inserted in placed:  # each of the four is on the way to the output
        torch.nn.init.normal_(inserted.adapter.up.weight, generator=generator)
        assert not torch.allclose(encoder(batch), before)
        torch.nn.init.zeros_(inserted.adapter.up.weight)


def test_the_page_says_what_every_field_is() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in row.replace("`", "").replace(",", "").split()}
    assert set(Family.__struct_fields__) <= named


def test_a_package_can_describe_a_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def packages(*entries: Any) -> None:
        monkeypatch.setattr(catalogue, "entry_points", lambda *, group: entries)
        catalogue.other_families.cache_clear()

    path = written(tmp_path)
    try:
        with pytest.raises(UserError, match="model_type='bert-generation'"):
            loaded(None)
        packages(SimpleNamespace(name="mine", value="pkg:PATH", load=lambda: path))
        assert "bert-generation" in catalogue.known_types()
        assert loaded(None).family == read_family(path)
        packages(SimpleNamespace(name="mine", value="pkg:PATH", load=lambda: 1 / 0))
        with pytest.raises(UserError, match=r"'mine' of the entry points.*ZeroDivisionError"):
            loaded(None)
        loaded(None, shape=TINY)  # what is known needs no package
    finally:
        monkeypatch.undo()
        catalogue.other_families.cache_clear()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"querry": "x"}, "unknown field `querry`. Valid: model_types, layers, norms"),
        ({"attention": {"reeder": "x"}}, "Valid: reader, end, norm"),
        ({"query": {"map": "x", "prt": 1}}, "Valid: map, part, of, by_head"),
        ({"norms": "middle"}, "Invalid enum value 'middle' - at `$.norms`"),
        ({"pooling": ["max"]}, "Invalid enum value 'max'"),
        ({"layers": None}, "Expected `str`, got `null` - at `$.layers`"),
        (
            {"layers": "encoder.blocks"},
            "layers: encoder.blocks, but BertGenerationEncoder.encoder has no 'blocks'",
        ),
        (
            {"query": "attention.self.que"},
            "attention.self.que, but BertGenerationLayer.attention.self has no 'que'; it has query",
        ),
        ({"inner": "output.dropout"}, "inner: output.dropout, but Dropout has no weight"),
        ({"key": {"map": "attention.self.key", "part": 1}}, "which has 16 outputs"),
        ({"norms": "before"}, "final_norm must be the path"),
        ({"layers": "encoder.layer.0"}, "for 2 layers in its configuration"),
        ({"model_types": ["mine"]}, "model_type='bert-generation', but backbone.family="),
        ({"model": "NoSuchModel"}, "has no NoSuchModel"),
        ({"pooling": ["mean"]}, "pooling of BertGenerationEncoder 'cls'. Valid: mean"),
        ({"fixed": {"hidden_size": 3}}, "hidden_size=16 cannot be used here; it must be 3"),
    ],
)
def test_a_mistake_in_a_description_is_one_line(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError) as found:
        loaded(written(tmp_path, **changes))
    assert words in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("content", [None, "a: [", "[]", "layers: x", b"\xff"])
def test_what_is_no_description_is_one_line(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError, match="cannot read the encoder family in") as found:
        loaded(path)
    assert "\n" not in str(found.value)


def test_a_model_that_transformers_lacks_is_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, model_types=["from_the_future"])
    with pytest.raises(UserError, match=r"transformers 5\.\d+.* model_type='from_the_future'"):
        loaded(path, shape={**SHAPE, "model_type": "from_the_future"})


class Deaf(nn.Module):
    """A model that cannot be told positions."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_hidden_layers=1)
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))])

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return input_ids


def test_positions_are_given_to_a_model_that_takes_them() -> None:
    place = {"reader": "0", "end": "0", "norm": "1"}
    maps = dict.fromkeys(("query", "key", "value", "output", "inner"), "0")
    said = {"model_types": ["deaf"], "layers": "layers", "norms": "after", **maps}
    said = {**said, "attention": place, "feedforward": place}
    with pytest.raises(UserError, match="takes no position_ids"):
        check_paths(Deaf(), msgspec.convert(said, Family))
    check_paths(Deaf(), msgspec.convert({**said, "positions": {"kind": "relative"}}, Family))


@pytest.mark.parametrize(
    ("model_type", "changes", "words"),
    [
        ("gpt2", {"n_embd": 0}, "n_embd=0 must be at least 1"),
        ("gpt2", {"n_layer": 0}, "n_layer=0 must be at least 1"),
        ("gpt2", {"n_embd": 15}, "n_embd=15 is not a multiple of n_head=2"),
        ("gpt2", {"n_positions": 0}, "n_positions=0 must be at least 1"),
        ("gpt2", {"n_heads": 2}, "Did you mean 'n_head'?"),
        ("t5", {"d_kv": 0}, "d_kv=0 must be at least 1"),
        ("t5", {"d_ff": 0}, "d_ff=0 must be at least 1"),
        ("t5", {"num_layers": 0}, "num_layers=0 must be at least 1"),
        ("t5", {"dense_act_fn": "gelo"}, "dense_act_fn"),
        ("qwen3", {"head_dim": 7}, "`head_dim`=7"),
        ("qwen3", {"num_key_value_heads": 3}, "num_key_value_heads=3"),
    ],
)
def test_sizes_are_refused_by_the_names_that_their_family_has(
    tmp_path: Path, model_type: str, changes: dict[str, Any], words: str
) -> None:
    """The family's description is that of another one: its configuration is read before modules."""
    path = written(
        tmp_path,
        model_types=[model_type],
        pooling=["mean"],
        positions={"kind": "relative"},
    )
    shape = {**FAMILIES[model_type], **changes}
    with pytest.raises(UserError) as found:
        loaded(path, shape=shape, pooling="mean", max_length=8)
    assert words in str(found.value)
    assert "\n" not in str(found.value)
