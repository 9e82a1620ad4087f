"""Decoders: what they compute, where adapters are, what tokens read, and where a prompt stands."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from stream.config.backbone import BackboneConfig
from stream.data.batches import TokenBatch
from stream.errors import UserError
from stream.models.bf16 import Bf16Encoder
from stream.models.encoder import Encoder, load_encoder
from stream.models.modules.bottleneck import Architecture, insert_adapters
from stream.models.modules.prompt import SoftPrompt, drawn_tokens
from stream.seeding import torch_generator
from tests.conftest import VOCABULARY
from tests.models.reference import check
from tests.models.reference.decoders import LlamaLike, gpt2
from tests.models.reference.functions import gelu_tanh
from tests.models.tiny_families import FAMILIES, WINDOW

GEMMA = LlamaLike(activation=gelu_tanh, offset=1.0, scaled=True)
GEMMA2 = replace(GEMMA, norms_behind=True, scale=8**-0.5, cap=50.0, windows=(WINDOW, None))
REFERENCES: dict[str, Any] = {
    "gpt2": gpt2,
    "llama": LlamaLike(),
    "mistral": LlamaLike(windows=(WINDOW, WINDOW)),
    "qwen2": LlamaLike(),
    "qwen3": LlamaLike(inner_norms=True),
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": replace(GEMMA2, cap=None, inner_norms=True, thetas=(10_000.0, 1_000_000.0)),
    "smollm3": LlamaLike(thetas=(2_000_000.0, None)),
}
SHAPES = {
    **{name: FAMILIES[name] for name in REFERENCES if name in FAMILIES},
    "mistral": {**FAMILIES["llama"], "model_type": "mistral", "sliding_window": WINDOW},
}
TEXT = 7  # tokens of a text that has a prompt


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
        named = {k: wide.get(a, a) if isinstance(a, torch.dtype) else a for k, a in (kwargs or {}).items()}
        return func(*found, **named)


@pytest.fixture(autouse=True)
def in_float64(request: pytest.FixtureRequest) -> Iterator[None]:
    if "float32" in request.keywords:
        yield
    else:
        with Float64():
            yield


@pytest.mark.parametrize("name", REFERENCES)
def test_states_and_adapters_are_those_of_the_reference(name: str) -> None:
    check.check_states(SHAPES[name], REFERENCES[name])
    check.check_adapters(SHAPES[name], REFERENCES[name])
    check.check_identity(SHAPES[name])
