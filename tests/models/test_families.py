"""In every known family padding changes nothing and positions suffice; others are refused."""

from typing import Any

import pytest
import torch

from stream.config.backbone import BackboneConfig
from stream.data.batch import TokenBatch
from stream.errors import UserError
from stream.models.encoder import Encoder
from stream.models.families.catalogue import known_types
from stream.models.families.config import most_tokens
from stream.models.pretrained import check_backbone, load_body
from tests.builders import TINY, VOCABULARY, tiny_encoder

# Encoders that compute as BERT does; the others have tests of their own beside this file.
AFTER_PADDING = ["camembert", "data2vec-text", "mpnet", "roberta", "xlm-roberta"]
LIKE_BERT = ["bert", "electra", "ernie", *AFTER_PADDING]


def states(encoder: Encoder, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    batch = TokenBatch(ids, mask, torch.zeros_like(ids), ())
    with torch.no_grad():
        return encoder.states(batch)[1]


def text(length: int) -> torch.Tensor:
    return 5 + torch.arange(length)[None] % (VOCABULARY - 5)


def whole(ids: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(ids)


@pytest.mark.parametrize("pad_id", [0, 1, 7])  # no family takes all of them for padding
@pytest.mark.parametrize("family", LIKE_BERT)
def test_padding_changes_nothing(family: str, pad_id: int) -> None:
    encoder = tiny_encoder(model_type=family).eval()
    ids = text(9)
    alone = states(encoder, ids, whole(ids))
    padding = torch.full((1, 6), pad_id)
    padded = states(
        encoder,
        torch.cat([ids, padding], 1),
        torch.cat([whole(ids), torch.zeros_like(padding)], 1),
    )
    torch.testing.assert_close(padded[:, :9], alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", LIKE_BERT)
def test_every_token_reads_every_token_and_its_place(family: str) -> None:
    encoder = tiny_encoder(model_type=family).eval()
    ids = text(9)
    changed, swapped = ids.clone(), ids.clone()
    changed[0, 8] += 1
    swapped[0, [3, 4]] = ids[0, [4, 3]]
    found = states(encoder, ids, whole(ids))
    for other in (changed, swapped):
        assert (states(encoder, other, whole(ids))[0, 0] - found[0, 0]).abs().max() > 1e-6
    # The last thing that happened to a token is a LayerNorm, whose scale is 1 at first.
    torch.testing.assert_close(found.mean(-1), torch.zeros(1, 9), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.var(-1, correction=0), torch.ones(1, 9), rtol=0, atol=1e-3)


@pytest.mark.parametrize("family", LIKE_BERT)
def test_there_are_as_many_positions_as_said(family: str) -> None:
    encoder = tiny_encoder(model_type=family)
    body: Any = encoder.body
    most = 32 - 2 * (family in AFTER_PADDING)
    assert most_tokens(body.config, encoder.family) == most
    ids = text(most)
    assert body(input_ids=ids).last_hidden_state.isfinite().all()
    with pytest.raises((IndexError, RuntimeError)):
        body(input_ids=text(most + 1))
    for length, refused in ((most, False), (most + 1, True)):
        shape = {**TINY, "model_type": family}
        config = BackboneConfig("mine", "random", shape=shape, max_length=length)
        if refused:
            with pytest.raises(UserError, match=f"backbone.max_length={most} or less"):
                check_backbone(config)
        else:
            check_backbone(config)


@pytest.mark.parametrize("family", AFTER_PADDING)
def test_a_token_that_the_encoder_takes_for_padding_has_its_own_place(family: str) -> None:
    """As where the tokenizer's padding is another token than the encoder's."""
    encoder = tiny_encoder(model_type=family).eval()
    ids = text(9)
    ids[0, 4] = 1
    seen = list[torch.Tensor]()
    embeddings: Any = encoder.body.embeddings
    embeddings.position_embeddings.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    states(encoder, ids, whole(ids))
    assert [found.flatten().tolist() for found in seen] == [list(range(2, 11))]


UNKNOWN = ["longformer", "xlnet", "bart", "no-such", None, 3]


@pytest.mark.parametrize("family", UNKNOWN)
def test_other_families_are_refused_in_one_line(family: Any) -> None:
    config = BackboneConfig("mine", "random", shape={**TINY, "model_type": family})
    with pytest.raises(UserError) as found:
        load_body(config, VOCABULARY, 0)
    assert f"backbone.shape: model_type={family!r}" in str(found.value)
    assert all(known in str(found.value) for known in known_types())


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({"hidden_act": "gelo"}, "Did you mean 'gelu'?"),
        ({"hidden_size": 17}, "not a multiple of num_attention_heads=2"),
        ({"num_hidden_layers": 0}, "num_hidden_layers=0 must be at least 1"),
        ({"is_decoder": True}, "is_decoder=True"),
        ({"model_type": "roberta", "pad_token_id": None}, "pad_token_id=None"),
        ({"model_type": "roberta", "pad_token_id": 31}, "leaves no positions"),
        ({"model_type": "roberta", "pad_token_id": -1}, "pad_token_id=-1"),
        ({"model_type": "mpnet", "type_vocab_size": 2}, "unknown setting of mpnet"),
        ({"hidden_dropout_prob": "much"}, "'hidden_dropout_prob'"),
    ],
)
def test_a_shape_that_cannot_be_is_refused_in_one_line(shape: dict[str, Any], words: str) -> None:
    config = BackboneConfig("mine", "random", shape={**TINY, **shape})
    with pytest.raises(UserError) as found:
        load_body(config, VOCABULARY, 0)
    assert words in str(found.value)
    assert "\n" not in str(found.value)
