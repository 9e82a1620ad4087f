"""Embeddings whose gradient has the same bits at every run, and is summed in float32.

From 2.11 on, torch sums the gradients of a row that is looked up very often (the type of a token,
say) by atomic additions on a GPU, in whatever order they arrive, unless it computes
deterministically. Of all that a step computes, only this depends on it, so only this is asked to be
deterministic: what torch did before. On a CPU it sums those of bf16 weights in bf16, whose 8 bits
stand still after some hundred terms; here they are summed in float32, as on a GPU.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from stream.models.deterministic import deterministic

NO_PADDING = -1


class RepeatableEmbedding(nn.Embedding):
    """`nn.Embedding` with the same parameters, the same result, and this gradient."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Look up rows: [...] to [..., D]."""
        plain = self.max_norm is None and not (self.sparse or self.scale_grad_by_freq)
        summed = self.weight.is_cuda or _is_short(self.weight)
        if plain and summed and self.weight.requires_grad:
            return look_up(self.weight, input, self.padding_idx)
        return super().forward(input)


def make_repeatable(module: nn.Module) -> None:
    """Let the gradient of every `nn.Embedding` inside repeat; only the class changes."""
    for inner in module.modules():
        if type(inner) is nn.Embedding:
            inner.__class__ = RepeatableEmbedding


def look_up(weight: torch.Tensor, rows: torch.Tensor, padding: int | None) -> torch.Tensor:
    """Return rows of a matrix, with a gradient that repeats and is summed in float32.

    Args:
        weight: the matrix, [V, D].
        rows: which, any shape.
        padding: a row without gradient, if any.
    """
    found: torch.Tensor = _LookUp.apply(weight, rows, NO_PADDING if padding is None else padding)  # pyright: ignore[reportAssignmentType]
    return found


class _LookUp(torch.autograd.Function):
    """Rows of a matrix; their gradients are summed in a fixed order."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, rows: torch.Tensor, padding: int) -> torch.Tensor:
        """Return the rows."""
        ctx.save_for_backward(rows)
        ctx.height, ctx.padding = weight.shape[0], padding
        return functional.embedding(rows, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient of the matrix."""
        (rows,), (given,) = ctx.saved_tensors, gradients
        with deterministic():
            found = torch.ops.aten.embedding_dense_backward(
                given.float() if _is_short(given) and not given.is_cuda else given,
                rows,
                ctx.height,
                ctx.padding,
                scale_grad_by_freq=False,
            )
        return found.to(given.dtype), None, None


def _is_short(tensor: torch.Tensor) -> bool:
    """Whether numbers have fewer bits than float32's."""
    return tensor.dtype.itemsize < torch.float32.itemsize
