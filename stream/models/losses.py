"""What the logits of a batch cost: of each part by its task's kind, of all examples together.

B examples, L tokens, D width, K outputs of a task's head.
"""

from collections.abc import Sequence

import torch
from torch.nn import functional

from stream.data.batch import Batch, Part
from stream.data.mixture import Mixture
from stream.models.heads import Head, States


def part_loss(part: Part, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the summed loss of one part: cross-entropy, or squared error for regression."""
    if part.task.is_span:
        return span_loss(logits, labels)
    if part.task.is_regression:
        return squared_error(logits[:, 0], labels).sum()
    return functional.cross_entropy(logits, labels, reduction="sum")


def squared_error(found: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Return the squared error of each row, [B]; 0 where the score is NaN."""
    return torch.where(scores.isnan(), 0.0, found - scores) ** 2


def mixture_logits(heads: Sequence[Head], states: States) -> torch.Tensor:
    """Return the outputs of several heads side by side, [B, columns].

    Args:
        heads: of the tasks that may occur, in order; each once.
        states: of the rows.
    """
    weight, bias = (torch.cat(p) for p in zip(*((h.weight, h.bias) for h in heads), strict=True))
    return functional.linear(states.texts, weight, bias)


def mixture_loss(
    logits: torch.Tensor, owners: torch.Tensor, mixture: Mixture, *, by_row: bool = False
) -> torch.Tensor:
    """Return the summed loss of rows of several tasks, each through the head of its task.

    One softmax over the outputs of all heads, of which a row sees those of its own alone.

    Args:
        logits: those of `mixture_logits`.
        owners: int64 [columns]; the position of the head of each output.
        mixture: the rows.
        by_row: return the loss of each row instead, [B].
    """
    own, columns, scores = mixture.labels[:3]
    mine = logits.masked_fill(owners != own[:, None], Head.NEVER)
    # A regression task has one output, whose probability is 1: its cross-entropy is exactly 0.
    entropy = functional.cross_entropy(mine, columns, reduction="none" if by_row else "sum")
    found = logits.gather(1, columns.clamp(min=0)[:, None])[:, 0]
    squares = squared_error(found, scores)
    return entropy + (squares if by_row else squares.sum())


def span_loss(logits: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
    """Return the summed mean of both ends' cross-entropies over [CLS] and the context's tokens.

    Args:
        logits: [B, 2 L]; of each token as first one of the answer, and as last one.
        spans: int64 [B, 4]; first and last token of the answer, first token of the context and the
            one behind its last.
    """
    by_token = logits.unflatten(1, (-1, 2))
    place = torch.arange(by_token.shape[1], device=logits.device)
    inside = (place >= spans[:, 2:3]) & (place < spans[:, 3:4]) | (place == 0)  # [B, L]
    by_end = by_token.masked_fill(~inside[..., None], Head.NEVER).transpose(1, 2)  # [B, 2, L]
    ends = by_end.flatten(0, 1), spans[:, :2].flatten()
    return functional.cross_entropy(*ends, reduction="sum") / 2


def summed_loss(batch: Batch, logits: list[torch.Tensor]) -> torch.Tensor:
    """Return the loss of all examples of the batch together, whatever their tasks."""
    losses = [
        part_loss(part, part_logits, labels)
        for part, part_logits, labels in zip(batch.parts, logits, batch.labels, strict=True)
    ]
    return losses[0] if len(losses) == 1 else torch.stack(losses).sum()


def batch_loss(batch: Batch, logits: list[torch.Tensor]) -> torch.Tensor:
    """Return the mean loss over all examples of the batch, whatever their tasks."""
    return summed_loss(batch, logits) / batch.size
