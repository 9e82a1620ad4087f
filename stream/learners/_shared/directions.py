"""Orthonormal directions, and what is left of a vector without them; and the outputs to keep.

P entries of a vector, n directions. A vector may be many tensors, whose entries follow each other.
Where vectors grow at their end, directions of before are 0 there: they have fewer entries than P.
"""

from collections.abc import Iterable, Sequence

import torch

from stream.data.batch import Part
from stream.models.bf16 import copy_all

SMALLEST = 1e-5  # of a vector's length: what is left of it may be rounding


def widened(bases: Sequence[torch.Tensor], vectors: torch.Tensor) -> torch.Tensor:
    """Return rows [n, P] that are orthonormal to each other and to those of ``bases``.

    Together with these they span ``vectors``, by Gram and Schmidt, twice over, in float64. What is
    in the span already adds no row.

    Args:
        bases: orthonormal rows, float32 [n, at most P] each.
        vectors: the vectors, float32 [n, P].
    """
    rows = vectors.to(torch.float64, copy=True)
    sizes = rows.norm(dim=1)
    for basis in [*bases, *bases]:
        directions, known = basis.double(), rows[:, : basis.shape[1]]
        known -= (known @ directions.T) @ directions
    found = rows.new_zeros(len(rows), rows.shape[1])
    count = 0
    for row, size in zip(rows, sizes, strict=True):
        for _ in range(2):
            row = row - (found[:count] @ row) @ found[:count]  # noqa: PLW2901 - what is left of it
        if row.norm() > SMALLEST * size:
            found[count] = row / row.norm()
            count += 1
    return found[:count].to(vectors.dtype).clone()


def flattened(vector: Sequence[torch.Tensor], *, headed: bool) -> torch.Tensor:
    """Return the entries [P] of a vector.

    Args:
        vector: tensors of P entries together.
        headed: its last two are a head's weight [K, D] and bias [K], whose entries go class by
            class: so one that is met later only adds some at the end.
    """
    if headed:
        *others, weight, bias = vector
        vector = [*others, torch.cat([weight, bias[:, None]], 1)]
    return torch.cat([tensor.flatten() for tensor in vector])


def project_out(
    bases: Iterable[torch.Tensor], vector: Sequence[torch.Tensor], *, headed: bool = False
) -> None:
    """Take all directions out of a vector, in place.

    Args:
        bases: orthonormal rows [n, at most P] each.
        vector: tensors of P entries together.
        headed: as for `flattened`.
    """
    with torch.no_grad():
        flat = flattened(vector, headed=headed)
        for basis in bases:
            known = flat[: basis.shape[1]]
            known -= (basis @ known) @ basis
        copy_all(vector, _unflattened(flat, vector, headed=headed))


def _unflattened(
    flat: torch.Tensor, like: Sequence[torch.Tensor], *, headed: bool
) -> list[torch.Tensor]:
    """Return the tensors of a vector, views of its entries [P]; see `flattened`."""
    others = like[:-2] if headed else like
    sizes = [tensor.numel() for tensor in others]
    *pieces, left = flat.split([*sizes, len(flat) - sum(sizes)])
    found = [piece.view_as(tensor) for piece, tensor in zip(pieces, others, strict=True)]
    if headed:
        classes = left.view(len(like[-1]), -1)
        found += [classes[:, :-1], classes[:, -1]]
    return found


def true_outputs(part: Part, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the output [B] that each row's label names.

    That of its class, the score, or the mean of its span's first and last token.

    Args:
        part: of a batch.
        logits: of the part, [B, K].
        labels: of the part.
    """
    if part.task.is_span:
        by_token = logits.unflatten(1, (-1, 2))  # [B, L, 2]
        ends = by_token.gather(1, labels[:, None, :2])  # [B, 1, 2]
        return ends[:, 0].mean(1)
    if part.task.is_regression:
        return logits[:, 0]
    return logits.gather(1, labels[:, None])[:, 0]
