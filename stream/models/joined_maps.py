"""Linear maps that read the same tensor, as one product: attention's query, key and value.

Three small products take three times as long as one that is three times as large, where a GPU waits
for the start of each (and so do the three on the way back, with two sums). The weights stay those
of the three modules, which see parts of one tensor. Sums over more terms are rounded once instead
of three times, so bits are not the same; float32 encoders are left alone.

B texts, L tokens, D_in and D_out the widths of a map.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from stream.models.encoder import Encoder
from stream.models.onednn import ConvolvedLinear

PLAIN = (nn.Linear.forward, ConvolvedLinear.forward)


class JoinedMaps:
    """Maps that are computed when the first of them is asked; the others find their part."""

    def __init__(self, maps: Sequence[nn.Linear]):
        """Put the parameters of the maps one behind the other, and let them compute together."""
        self._widths = [each.out_features for each in maps]
        self._weight = _joined([each.weight for each in maps])
        self._bias = _joined([each.bias for each in maps]) if maps[0].bias is not None else None
        self._own = [each.weight for each in maps] + [
            each.bias for each in maps if each.bias is not None
        ]
        self._read: torch.Tensor | None = None
        self._left: dict[int, torch.Tensor] = {}
        for place, each in enumerate(maps):
            vars(each)["forward"] = partial(self._part, place)

    def _part(self, place: int, input: torch.Tensor) -> torch.Tensor:
        """Return what one of the maps makes of its input, [B, L, D_out]."""
        if self._read is not input or place not in self._left:
            made: Any = _Product.apply(self._weight, self._bias, self._widths, input, *self._own)
            self._read, self._left = input, dict(enumerate(made))
        part = self._left.pop(place)
        if not self._left:
            self._read = None
        return part


class _Product(torch.autograd.Function):
    """The product with all weights at once; gradients for those of each map."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        widths: Sequence[int],
        input: torch.Tensor,
        *own: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Return the maps' outputs, parts of one tensor."""
        ctx.save_for_backward(weight, input)
        ctx.widths = widths
        return functional.linear(input, weight, bias).split(widths, dim=-1)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of the input and of each map's parameters."""
        weight, input = ctx.saved_tensors
        count = len(ctx.widths)
        needs = ctx.needs_input_grad[3:]
        whole = side_by_side(gradients)
        rows = whole.reshape(-1, whole.shape[-1])
        found: list[torch.Tensor | None] = [(whole @ weight) if needs[0] else None]
        of_weights: Sequence[torch.Tensor | None] = [None] * count
        of_biases: Sequence[torch.Tensor | None] = [None] * (len(needs) - 1 - count)
        if any(needs[1 : 1 + count]):
            of_weights = (rows.T @ input.reshape(-1, input.shape[-1])).split(ctx.widths)
        if any(needs[1 + count :]):
            of_biases = rows.sum(0).split(ctx.widths)
        own = zip(needs[1:], (*of_weights, *of_biases), strict=True)
        return None, None, None, *found, *(each if need else None for need, each in own)


def side_by_side(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return tensors [..., D_i] as one, [..., sum of D_i].

    Nothing is copied where they already stand that way: torch's attention writes the gradients of
    queries, keys and values next to each other if these came from one tensor.
    """
    first, at = parts[0], parts[0].storage_offset()
    width, together = sum(part.shape[-1] for part in parts), True
    for part in parts:
        same = part.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
        together &= same and part.storage_offset() == at and part.stride() == first.stride()
        at += part.shape[-1]
    steps = [width]
    for size in reversed(first.shape[1:-1]):
        steps.insert(0, steps[0] * size)
    if together and first.stride() == (*steps, 1):
        return first.as_strided((*first.shape[:-1], width), first.stride())
    return torch.cat(list(parts), dim=-1)


def join_attention_maps(encoder: Encoder) -> None:
    """Let query, key and value of every layer be one product, where they are separate maps.

    Maps that hooks give something else to read stay alone, and so do those that are not stored
    alike.

    Args:
        encoder: a copy that computes for another one; methods have inserted their modules. What
            the two share stays shared.
    """
    for layer in encoder.attention_maps():
        parts = (layer.query, layer.key, layer.value)
        maps = [part.module for part in parts if isinstance(part.module, nn.Linear)]
        if len({id(each) for each in maps}) == len(parts) and _joinable(maps):
            JoinedMaps(maps)


def _joinable(maps: Sequence[nn.Linear]) -> bool:
    """Whether maps read the same and store it alike."""
    kinds = {(each.in_features, each.bias is None, each.weight.dtype) for each in maps}
    return len(kinds) == 1 and all(
        type(each).forward in PLAIN and not each._forward_pre_hooks for each in maps
    )


def _joined(parameters: Sequence[torch.Tensor]) -> torch.Tensor:
    """Put parameters one behind the other; they become views of what is returned."""
    whole = torch.cat([each.detach() for each in parameters])
    for each, part in zip(parameters, whole.split([len(p) for p in parameters]), strict=True):
        each.data = part
    return whole
