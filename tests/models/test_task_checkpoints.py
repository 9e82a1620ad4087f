"""A checkpoint of a model with a head gives the encoder whole; what is not weights does not matter.

Which classes of models transformers has for a family is asked of transformers.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.auto import modeling_auto

from stream.config.backbone import BackboneConfig
from stream.errors import UserError
from stream.models.families.catalogue import find_family, known_types
from stream.models.pretrained import load_body
from tests.builders import VOCABULARY
from tests.models.tiny_families import FAMILIES, POOLING

KNOWN = [name for name, shape in FAMILIES.items() if shape["model_type"] in known_types()]
ONE_OF_EACH = [name for name in ("bert", "albert", "t5", "llama") if name in KNOWN]
WEIGHTS = "model.safetensors"
Weights = dict[str, torch.Tensor]
HEADS = ("PRETRAINING", "MASKED_LM", "CAUSAL_LM", "SEQUENCE_CLASSIFICATION")


def with_heads(config: Any) -> list[Any]:
    """Return the classes of models that an encoder of this family is part of."""
    mappings = [getattr(modeling_auto, f"MODEL_FOR_{head}_MAPPING") for head in HEADS]
    return [*dict.fromkeys(filter(None, (found.get(type(config), None) for found in mappings)))]


def configured(name: str) -> Any:
    shape = FAMILIES[name]
    return transformers.CONFIG_MAPPING[shape["model_type"]].from_dict({**shape})


def loaded(folder: Path, name: str) -> Any:
    config = BackboneConfig("mine", "folder", str(folder), pooling=POOLING[name], max_length=16)
    return load_body(config, VOCABULARY, 0)[0]


@pytest.mark.parametrize("name", KNOWN)
def test_heads_are_left_out(name: str, tmp_path: Path) -> None:
    config = configured(name)
    classes = with_heads(config)
    assert classes
    for kind in classes:
        torch.manual_seed(1)
        model = kind(config)
        model.save_pretrained(tmp_path)
        inside = model.state_dict()
        body = loaded(tmp_path, name)
        found = body.state_dict()
        assert len(found) >= len(list(body.parameters())) > 10
        for key, weight in found.items():
            whole = [inside[k] for k in (key, f"{model.base_model_prefix}.{key}") if k in inside]
            assert whole, f"{key} of {kind.__name__}"
            assert torch.equal(weight, whole[0]), f"{key} of {kind.__name__}"


def damaged(name: str, folder: Path, change: Callable[[Weights, str], Any]) -> Any:
    """Load an encoder whose weights were changed, given the name of one of them."""
    torch.manual_seed(1)
    kind = getattr(transformers, catalogued(name) or "AutoModel")
    model = getattr(kind, "from_config", kind)(configured(name))
    model.save_pretrained(folder)
    weights = load_file(folder / WEIGHTS)
    inside = [key for key, weight in weights.items() if weight.dim() == 2 and ".0." in key]
    change(weights, max(inside))
    save_file(weights, folder / WEIGHTS)
    return loaded(folder, name)


def catalogued(name: str) -> str | None:
    return find_family(FAMILIES[name]["model_type"], where="here").model


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_an_encoder_that_is_not_whole_is_refused(name: str, tmp_path: Path) -> None:
    def lacks(weights: Weights, matrix: str) -> None:
        del weights[matrix]

    def has_more(weights: Weights, matrix: str) -> None:
        weights[f"{matrix.rpartition('.')[0]}.more"] = torch.zeros(2)

    def is_cut(weights: Weights, matrix: str) -> None:
        weights[matrix] = weights[matrix][:-1].contiguous()

    def has_a_hole(weights: Weights, matrix: str) -> None:
        weights[matrix][0, 0] = float("nan")

    for change, words in (
        (lacks, "1 missing"),
        (has_more, "1 unexpected"),
        (is_cut, "1 of another shape"),
        (has_a_hole, "not finite"),
    ):
        with pytest.raises(UserError, match=words) as found:
            damaged(name, tmp_path, change)
        assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("roberta", "embeddings.position_ids"),
        ("electra", "embeddings.token_type_ids"),
        ("llama", "layers.0.self_attn.rotary_emb.inv_freq"),
        ("gpt2", "h.0.attn.bias"),
        ("gpt2", "h.0.attn.masked_bias"),
    ],
)
def test_constants_that_were_stored_in_the_past_do_not_matter(
    name: str, constant: str, tmp_path: Path
) -> None:
    if name not in KNOWN:
        pytest.skip(f"{name} is not known")

    def add(weights: Weights, _: str) -> None:
        weights[constant] = torch.ones(1, 4, dtype=torch.bool)

    damaged(name, tmp_path, add)
