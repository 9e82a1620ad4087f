"""DeBERTa and its versions 2 and 3 against forward passes written by hand.

transformers takes the square root of its scale in float32; here 3 d or 2 d are square numbers, so
that it is exact.
"""

from typing import Any

import msgspec
import pytest
import torch

from stream.errors import UserError
from stream.models.families.family import FusedMap, Positions
from stream.models.families.paths import check_paths
from stream.models.modules.magnitudes import Magnitudes
from tests.models.reference import check
from tests.models.reference import deberta as by_hand
from tests.models.reference.low_rank import Add, by_name, check_low_rank
from tests.training.captured import on_the_cpu_side

SHAPE = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 24,
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": "c2p|p2c",
    "type_vocab_size": 0,
}
OTHER = {  # what else there is: few distances, embeddings of positions, types, another width
    "position_biased_input": True,
    "type_vocab_size": 2,
    "max_relative_positions": 6,
    "embedding_size": 8,
}
ONE_TERM = {"hidden_size": 16, "num_attention_heads": 2}
V1 = {**SHAPE, "model_type": "deberta"}
V2 = {**SHAPE, "model_type": "deberta-v2"}
V3 = {**V2, "position_buckets": 6, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
V2_ADD = by_name(by_hand.V2, "encoder.layer")
FAMILIES: dict[str, tuple[dict[str, Any], check.Reference, Any, Add]] = {
    "v1": (V1, by_hand.v1, by_hand.v1_maps, by_hand.v1_add),
    "v1-other": ({**V1, **OTHER}, by_hand.v1, by_hand.v1_maps, by_hand.v1_add),
    "v1-c2p": (
        {**V1, **ONE_TERM, "pos_att_type": "c2p"},
        by_hand.v1,
        by_hand.v1_maps,
        by_hand.v1_add,
    ),
    "v2-other": ({**V2, **OTHER}, by_hand.v2, by_hand.v2_maps, V2_ADD),
    "v2-p2c": ({**V2, **ONE_TERM, "pos_att_type": "p2c"}, by_hand.v2, by_hand.v2_maps, V2_ADD),
    "v2-xlarge": (
        {**V3, "conv_kernel_size": 3, "conv_act": "gelu", "norm_rel_ebd": "none"},
        by_hand.v2,
        by_hand.v2_maps,
        V2_ADD,
    ),
    "v2-absolute": (
        {**V2, **OTHER, "relative_attention": False, "hidden_size": 16, "pos_att_type": None},
        by_hand.v2,
        by_hand.v2_maps,
        V2_ADD,
    ),
    "v3": (V3, by_hand.v2, by_hand.v2_maps, V2_ADD),
}
each = pytest.mark.parametrize(
    ("shape", "reference", "maps", "add"), FAMILIES.values(), ids=FAMILIES
)


@pytest.fixture(autouse=True)
def _in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the norm of version 1 compute in float64, which it does in float32 whatever it reads."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)


@each
def test_states_and_maps_are_those_of_the_definition(
    shape: Any, reference: check.Reference, maps: Any, add: Add
) -> None:
    check.check_states(shape, reference)
    check.check_maps(shape, maps)
    check.check_prompt(shape, reference, by_hand)
    check_low_rank(shape, reference, add)


@each
def test_adapters_are_before_the_residual(
    shape: Any, reference: check.Reference, maps: Any, add: Add
) -> None:
    del maps, add
    check.check_adapters(shape, reference)
    check.check_identity(shape)


@each
def test_padding_and_masks(shape: Any, reference: check.Reference, maps: Any, add: Add) -> None:
    del reference, maps, add
    check.check_padding(shape)
    check.check_masks(shape)
    assert not on_the_cpu_side(check.load(shape))


def test_distances_are_those_that_transformers_finds_at_every_pass() -> None:
    """Also of more tokens than there are positions, as where a prompt is added."""
    encoder = check.load(V3).eval()
    body: Any = encoder.body.encoder
    states = torch.randn(1, 40, 12)
    mask = torch.ones(1, 40, dtype=torch.long)
    found = body(states, mask).last_hidden_state
    body._forward_pre_hooks.clear()
    assert torch.equal(found, body(states, mask).last_hidden_state)
    assert on_the_cpu_side(encoder), "the table is of no use"


def test_a_map_of_tokens_and_of_distances_is_noted_for_both() -> None:
    """Of each, the shares of a map's outputs sum to 1."""
    encoder, magnitudes, batch = check.load(V3), Magnitudes(), check.made_batch()
    maps = encoder.attention_maps()[0]
    for name in ("key", "value"):
        magnitudes.watch(name, getattr(maps, name).module)
    with magnitudes.noting(batch.attention_mask):
        encoder.states(batch)
    sums = [magnitudes.shares[name].sum().item() for name in ("key", "value")]
    assert sums == pytest.approx([2, 1])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"value": FusedMap(map="attention.self.in_proj", part=2, bias="no_bias")}, "no_bias"),
        ({"positions": Positions(distances="embeddings")}, "no get_rel_pos, relative_attention"),
        ({"positions": Positions(distances="decoder")}, "has no 'decoder'"),
    ],
)
def test_a_bias_and_distances_that_are_not_there_are_refused(changed: Any, words: str) -> None:
    encoder = check.load(V1)
    with pytest.raises(UserError, match=words):
        check_paths(encoder.body, msgspec.structs.replace(encoder.family, **changed))
