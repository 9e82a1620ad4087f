"""Decoders: what they compute, where adapters are, what tokens read, and where a prompt stands."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from stream.errors import UserError
from stream.models.bf16 import Bf16Encoder
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture, insert_adapters
from stream.models.modules.prompt import SoftPrompt
from tests.conftest import VOCABULARY
from tests.models.reference.decoders import LlamaLike, gpt2, tanh_gelu, unchanged
from tests.models.tiny_families import FAMILIES, POOLING, WINDOW, family_encoder

GEMMA = LlamaLike(activation=tanh_gelu, offset=1.0)
GEMMA2 = replace(
    GEMMA, norms_behind=True, scale=8**-0.5, cap=50.0, windows=(WINDOW, None)
)
REFERENCES: dict[str, Callable[..., torch.Tensor]] = {
    "gpt2": gpt2,
    "llama": LlamaLike(),
    "qwen2": LlamaLike(biases=True),
    "qwen3": LlamaLike(inner_norms=True),
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": replace(GEMMA2, cap=None, inner_norms=True, thetas=(10_000.0, 1_000_000.0)),
    "smollm3": LlamaLike(thetas=(2_000_000.0, None)),
    "mistral": LlamaLike(windows=(WINDOW, WINDOW)),
}
SCALED = ("gemma", "gemma2", "gemma3_text")
