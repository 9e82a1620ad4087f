"""Frozen linear maps in 4 bits: NF4 (Dettmers et al. 2023, arXiv 2305.14314, section 3).

Every 64 numbers of a weight share a float32 scale, their largest absolute value; each is one of 16
values, the quantiles of a normal distribution. So a number takes 4.5 bits. bitsandbytes quantizes
and expands; the maps compute with what is expanded, and expand it again to go backward.
"""

import importlib
from collections.abc import Collection
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from stream.errors import UserError, require

BLOCK = 64  # numbers that share a scale; that of the paper
PACKAGE = "bitsandbytes.functional"


class FourBitWeight(nn.Parameter):
    """The bytes of a quantized weight: two numbers a byte, then the scales; uint8 [P].

    Attributes:
        numbers: how many there are of the weight; a ledger counts these.
    """

    numbers: int

    @classmethod
    def of(cls, weight: torch.Tensor) -> "FourBitWeight":
        """Quantize a weight, on the CPU wherever it is, so that its bytes are the same everywhere.

        Raises:
            UserError: bitsandbytes is not there.
        """
        there = weight.detach().to("cpu", torch.float32).contiguous()
        codes, state = _library().quantize_4bit(there, blocksize=BLOCK, quant_type="nf4")
        scales = state.absmax.to(torch.float32).view(torch.uint8)
        found = cls(torch.cat([codes.flatten(), scales]).to(weight.device), requires_grad=False)
        found.numbers = weight.numel()
        return found


class FourBitLinear(nn.Linear):
    """`nn.Linear` whose parameter ``weight`` is a `FourBitWeight`; read, it is expanded."""

    @property
    def weight(self) -> torch.Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The weight in bf16, [D_out, D_in]."""
        return self.expanded(torch.bfloat16)

    def expanded(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the weight, [D_out, D_in]."""
        packed = self._parameters["weight"]
        assert packed is not None
        size = self.out_features * self.in_features
        count = size // 2
        state = _library().QuantState(
            absmax=packed[count:].view(torch.float32),
            # A row a block: bitsandbytes 0.50 expands rows that are none wrongly on a CPU.
            shape=torch.Size((size // BLOCK, BLOCK)),
            code=_values(packed.device),
            blocksize=BLOCK,
            quant_type="nf4",
            dtype=dtype,
        )
        blocks = _library().dequantize_4bit(packed[:count, None], state)
        return blocks.view(self.out_features, self.in_features)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Map [..., D_in] to [..., D_out]."""
        output = _Product.apply(input, self)
        return output if self.bias is None else output + self.bias


class _Product(torch.autograd.Function):
    """A product with a weight that is expanded in either direction, and kept in neither."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, layer: FourBitLinear) -> torch.Tensor:
        ctx.layer = layer
        return functional.linear(values, layer.expanded(values.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (gradient,) = gradients
        return gradient @ ctx.layer.expanded(gradient.dtype), None


def quantize_linears(
    encoder: nn.Module, layers: Collection[nn.Module], names: Collection[str]
) -> None:
    """Store the linear maps in layers in 4 bits whose weights have one of ``names``.

    Names stay; only the class of a map changes, so hooks stay too.

    Args:
        encoder: what ``names`` begin in.
        layers: the Transformer layers.
        names: of the parameters that learning does not change.

    Raises:
        UserError: bitsandbytes is not there, there is no such map, or one has odd sizes.
    """
    inside = {id(module) for layer in layers for module in layer.modules()}
    found = [
        (name, module)
        for name, module in encoder.named_modules()
        if id(module) in inside and isinstance(module, nn.Linear) and f"{name}.weight" in names
    ]
    require(
        len(found) > 0, "backbone.storage=nf4 has no effect: no linear map of a layer is frozen"
    )
    for name, module in found:
        if isinstance(module, FourBitLinear):
            continue
        size = module.weight.numel()
        require(
            size % BLOCK == 0,
            f"backbone.storage=nf4: {name} has {size} weights, which must be a multiple of {BLOCK}",
        )
        module._parameters["weight"] = FourBitWeight.of(module.weight)
        module.__class__ = FourBitLinear


@cache
def _values(device: torch.device) -> torch.Tensor:
    """Return the 16 values on a device."""
    return _library().get_4bit_type("nf4", device=device)


def _library() -> Any:
    """Return what quantizes.

    Raises:
        UserError: it is not installed, or cannot be loaded.
    """
    try:
        return importlib.import_module(PACKAGE)
    except (ImportError, RuntimeError, OSError) as error:
        raise UserError(
            "backbone.storage=nf4 needs bitsandbytes: pip install 'task-stream-simulator[4bit]' "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason'})"
        ) from error
