"""Embeddings whose gradient has the same bits at every run, and is summed in float32.

Three things of torch's are avoided:

- From 2.11 on, it sums the gradients of a row that is looked up very often (the type of a token,
  say) by atomic additions on a GPU, in whatever order they arrive, unless it computes
  deterministically. Of all that a step computes, only this depends on it, so only this is asked to
  be deterministic: what torch did before.
- Where few rows are looked up, but more than a block of the GPU reads at once, its kernel reads the
  next ones while some threads may still compare the ones before (pytorch/pytorch#187687, so up to
  2.13 at least). Whole encoders repeated only without this kernel. So rows are added to the few,
  with a gradient of 0, until they are enough for its other kernels, which sort them.
- On a CPU it sums those of bf16 weights in bf16, whose 8 bits stand still after some hundred terms;
  here they are summed in float32, as the kernels that sort do on a GPU. Up to 1,024 rows its kernel
  for few is taken there, which rounds after every few rows.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from stream.models.deterministic import deterministic

NO_PADDING = -1
READ_AT_ONCE = 1024  # rows, by a block of the kernel for few
FEW = 3072  # rows


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
        if given.is_cuda:
            rows, summed = not_few(rows, given)
        else:
            summed = given.float() if _is_short(given) else given
        with deterministic():
            found = torch.ops.aten.embedding_dense_backward(
                summed,
                rows,
                ctx.height,
                ctx.padding,
                scale_grad_by_freq=False,
            )
        return found.to(given.dtype), None, None


def not_few(rows: torch.Tensor, given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Add rows with a gradient of 0 where torch's kernel for few would read them in turns.

    Args:
        rows: which were looked up, [...].
        given: their gradients, [..., D].

    Returns:
        rows [N] and gradients [N, D] with the same sums, or what was given.
    """
    number = rows.numel()
    if not READ_AT_ONCE < number <= FEW:
        return rows, given
    more = FEW + 1 - number
    return functional.pad(rows.flatten(), (0, more)), functional.pad(
        given.flatten(0, -2), (0, 0, 0, more)
    )


def _is_short(tensor: torch.Tensor) -> bool:
    """Whether numbers have fewer bits than float32's."""
    return tensor.dtype.itemsize < torch.float32.itemsize
