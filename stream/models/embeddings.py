"""Embeddings whose gradient has the same bits at every run on a GPU.

From 2.11 on, torch sums the gradients of a row that is looked up very often (the type of a token,
say) by atomic additions, in whatever order they arrive, unless it computes deterministically. Of
all that a step computes, only this depends on it, so only this is asked to be deterministic: what
torch did before. On a CPU nothing changes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional

NO_PADDING = -1


class RepeatableEmbedding(nn.Embedding):
    """`nn.Embedding` with the same parameters, the same result, and a gradient that repeats."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Look up rows: [...] to [..., D]."""
        plain = self.max_norm is None and not (self.sparse or self.scale_grad_by_freq)
        if plain and self.weight.is_cuda and self.weight.requires_grad:
            return look_up(self.weight, input, self.padding_idx)
        return super().forward(input)


def make_repeatable(module: nn.Module) -> None:
    """Let the gradient of every `nn.Embedding` inside repeat; only the class changes."""
    for inner in module.modules():
        if type(inner) is nn.Embedding:
            inner.__class__ = RepeatableEmbedding


def look_up(weight: torch.Tensor, rows: torch.Tensor, padding: int | None) -> torch.Tensor:
    """Return rows of a matrix, with a gradient that repeats.

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
        (rows,) = ctx.saved_tensors
        with _deterministic():
            found = torch.ops.aten.embedding_dense_backward(
                gradients[0], rows, ctx.height, ctx.padding, scale_grad_by_freq=False
            )
        return found, None, None


@contextmanager
def _deterministic() -> Iterator[None]:
    """Have torch compute deterministically inside the block."""
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
