"""``backbone.attention``: how transformers computes attention, and what it says where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from stream.config.backbone import BackboneConfig
from stream.data.batching import collate
from stream.errors import UserError
from stream.models.encoder import load_encoder
from stream.models.pretrained import check_backbone
from tests.builders import TINY, VOCABULARY, made_task

TINY_BERT = BackboneConfig("tiny", "random", shape=TINY, max_length=16)


def states(attention: str) -> tuple[str, torch.Tensor]:
    """What transformers says it uses, and the states of some rows."""
    backbone = replace(TINY_BERT, attention=attention)
    check_backbone(backbone)
    encoder = load_encoder(backbone, vocabulary_size=VOCABULARY).eval()
    task = made_task("a")
    batch = collate([(task, task.split("train"), np.arange(8))], 0)
    with torch.no_grad():
        return encoder.body.config._attn_implementation, encoder.states(batch)[0]  # type: ignore[union-attr]


def test_both_ways_compute_the_same_but_for_rounding() -> None:
    (kind, fused), (plain, products), (chosen, usual) = map(states, ("sdpa", "eager", "auto"))
    assert (kind, plain) == ("sdpa", "eager")
    assert chosen in (kind, plain)
    torch.testing.assert_close(fused, products, rtol=1e-5, atol=1e-6)
    assert torch.equal(usual, {"sdpa": fused, "eager": products}[chosen])


def test_a_family_without_fused_attention_says_so_in_one_line() -> None:
    backbone = replace(TINY_BERT, shape={**TINY, "model_type": "mpnet"}, attention="sdpa")
    with pytest.raises(UserError, match=r"attention of MPNetModel.*'?sdpa.*auto, eager") as caught:
        check_backbone(backbone)
    assert "\n" not in str(caught.value)
    check_backbone(replace(backbone, attention="eager"))
