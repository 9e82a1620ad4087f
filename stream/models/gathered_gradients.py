"""Gradients of the weights of many small maps at once, when a step has gone back through all.

A method that inserts an adapter into every sub-layer trains dozens of maps of the same shape. The
gradients of each are two short products and two sums, and nothing waits for them but the optimizer.
So what they are made of is kept, and those of all maps are made together: one product and one sum
for all weights and biases of a shape. Kernels of other sizes sum in another order, so the last bits
of bf16 may differ; float32 encoders are left alone.

N rows (tokens of a batch), D_in and D_out the widths of a map, n maps.
"""

from collections.abc import Iterable
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from stream.models.onednn import ConvolvedLinear

FEW = 4  # maps of a shape: of fewer, gathering takes as many kernels as it spares
MOST_BYTES = 2**26  # of what is put together; where products are large, their start costs little
PLAIN = (nn.Linear.forward, ConvolvedLinear.forward)


class _Noted(NamedTuple):
    """What the gradients of one use of a map are made of."""

    map: nn.Linear
    input: torch.Tensor  # [N, D_in]
    gradient: torch.Tensor  # of the output, [N, D_out]


class GatheredGradients:
    """The maps of an encoder whose gradients are made together."""

    def __init__(self, modules: Iterable[nn.Module]):
        """Let those of the modules that are maps of a shape that many have put off gradients.

        Args:
            modules: of a copy of an encoder that computes for the encoder.
        """
        self._noted: list[_Noted] = []
        plain = [each for each in modules if isinstance(each, nn.Linear) and _is_plain(each)]
        for _, group in groupby(sorted(plain, key=_shape), _shape):
            alike = list(group)
            for each in alike if len(alike) >= FEW else ():
                vars(each)["forward"] = partial(self._mapped, each, len(alike))

    def _mapped(self, map: nn.Linear, alike: int, input: torch.Tensor) -> torch.Tensor:
        """Return what a map makes of its input, [..., D_out]; a gradient of it is noted."""
        widest = max(map.in_features, map.out_features)
        bytes_ = alike * input.numel() // map.in_features * widest * input.element_size()
        learns = map.weight.requires_grad and torch.is_grad_enabled()
        if not learns or bytes_ > MOST_BYTES:
            return functional.linear(input, map.weight, map.bias)
        made = _Noting.apply(self._noted, map, input, map.weight, map.bias)
        assert isinstance(made, torch.Tensor)
        return made

    def forget(self) -> None:
        """Drop what was noted by a step that did not end."""
        self._noted.clear()

    def make(self) -> None:
        """Give every map the gradients of what was noted, on top of any that it has."""
        noted, self._noted[:] = list(self._noted), []

        def shape(each: _Noted) -> tuple[int, ...]:
            return len(each.input), *_shape(each.map)

        for _, group in groupby(sorted(noted, key=shape), shape):
            _add_gradients(list(group))


class _Noting(torch.autograd.Function):
    """A linear map that goes back to its input alone, and notes the rest."""

    @staticmethod
    def forward(
        ctx: Any,
        noted: list[_Noted],
        map: nn.Linear,
        input: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return the outputs, [..., D_out]."""
        ctx.noted, ctx.map = noted, map
        ctx.save_for_backward(input, weight)
        return functional.linear(input, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradient of the input."""
        (input, weight), (gradient,) = ctx.saved_tensors, gradients
        rows = input.reshape(-1, input.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
        ctx.noted.append(_Noted(ctx.map, *rows))
        further = gradient @ weight if ctx.needs_input_grad[2] else None
        return None, None, further, None, None


def _add_gradients(noted: list[_Noted]) -> None:
    """Add the gradients of uses of maps with as many rows each, all of one shape."""
    inputs = torch.stack([each.input for each in noted])  # [n, N, D_in]
    gradients = torch.stack([each.gradient for each in noted])  # [n, N, D_out]
    weights = torch.bmm(gradients.transpose(1, 2), inputs)  # [n, D_out, D_in]
    for each, own in zip(noted, weights, strict=True):
        _add(each.map.weight, own)
    if noted[0].map.bias is not None:
        for each, own in zip(noted, gradients.sum(1), strict=True):
            _add(each.map.bias, own)


def _add(parameter: torch.Tensor, gradient: torch.Tensor) -> None:
    """Add to the gradient of a parameter."""
    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def _shape(map: nn.Linear) -> tuple[int, int, bool]:
    """Return the widths of a map, and whether it has no bias."""
    return map.in_features, map.out_features, map.bias is None


def _is_plain(map: nn.Linear) -> bool:
    """Whether a map computes as torch's, in weights of its own."""
    return type(map).forward in PLAIN and "forward" not in vars(map)
