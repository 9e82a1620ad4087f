"""A batch of token ids and labels: what it holds, and its slices, parts and padded copies.

`stream.data.batching` says which examples go together. B examples per batch, L tokens per example
after padding.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from torch.nn import functional

from stream.data.task import Task
from stream.distributed.slices import Slice

IGNORED_LABEL = -100  # a class label that adds no loss (torch's ignore_index); for scores NaN


@dataclass(frozen=True)
class Part:
    """The examples ``start:stop`` of a batch, all of one task; only its head sees them.

    Attributes:
        task: the task of these examples.
        start: position of the first example in the batch.
        stop: position after the last one.
        width: the padded length that these examples alone need.
        slice: which of the part's examples they are, where other ranks have the others.
    """

    task: Task
    start: int
    stop: int
    width: int
    slice: Slice | None = None

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return of ``values``, one for each example of the part, those of the examples here."""
        return values if self.slice is None else values[list(self.slice.rows)]


@dataclass(frozen=True)
class TokenBatch:
    """Padded examples and their labels.

    Attributes:
        input_ids: int64 [B, L].
        attention_mask: int64 [B, L], 1 on tokens.
        token_type_ids: int64 [B, L], 1 on the second text of a pair.
        labels: tensors with one row per example.
        padding: on which side of a text padding stands, ``right`` or ``left``; `collate` puts it on
            the right.
        count: how many of the examples are real, a scalar; the rest only fill up the batch and come
            last. None if all are real, or if there are several parts, whose slices say it.
        share: what a mean over the batch divides by where other ranks have examples of it, so that
            the mean over ranks is the mean over all; None where there are none.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    token_type_ids: torch.Tensor
    labels: tuple[torch.Tensor, ...]
    padding: str = field(default="right", kw_only=True)
    count: torch.Tensor | int | None = field(default=None, kw_only=True)
    share: torch.Tensor | float | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return self.input_ids.shape[0]

    def to(self, device: torch.device) -> Self:
        """Return the batch on ``device``."""
        return replace(
            self,
            input_ids=self.input_ids.to(device, non_blocking=True),
            attention_mask=self.attention_mask.to(device, non_blocking=True),
            token_type_ids=self.token_type_ids.to(device, non_blocking=True),
            labels=tuple(labels.to(device, non_blocking=True) for labels in self.labels),
        )

    @property
    def width(self) -> int:
        """The padded length L."""
        return self.input_ids.shape[1]

    @property
    def size(self) -> float | torch.Tensor:
        """The number of real examples: what a mean over the batch divides by."""
        if self.share is not None:
            return self.share
        return len(self) if self.count is None else self.count

    @property
    def real(self) -> torch.Tensor | None:
        """Which examples are real, bool [B]; None if all are."""
        if self.count is None:
            return None
        return torch.arange(len(self), device=self.input_ids.device) < self.count

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Return the mean of ``values`` [B], one per example, over the real examples."""
        real = self.real
        if real is None and self.share is None:
            return values.mean()
        counted = values if real is None else torch.where(real, values, 0.0)
        return counted.sum() / self.size

    def sliced(self, rank: int, ranks: int) -> Self:
        """Return the examples that one of several ranks learns: equally many for each.

        Those that only fill up have labels that add no loss.
        """
        mine = Slice.of(len(self), rank, ranks)
        rows = torch.tensor(mine.rows)
        return replace(
            self,
            input_ids=self.input_ids[rows],
            attention_mask=self.attention_mask[rows],
            token_type_ids=self.token_type_ids[rows],
            labels=tuple(_labels_of(labels, mine) for labels in self.labels),
            count=None if mine.is_even else mine.own,
            share=mine.share,
        )

    def padded(self, size: int, width: int) -> Self:
        """Return a copy of ``size`` examples with ``width`` tokens, in new tensors.

        Added examples repeat the last one, with labels that add no loss.
        """
        more = (0, width - self.width)
        sources = torch.arange(size, device=self.input_ids.device).clamp(max=len(self) - 1)
        copy = replace(
            self,
            input_ids=functional.pad(self.input_ids[sources], more),
            attention_mask=functional.pad(self.attention_mask[sources], more),
            token_type_ids=functional.pad(self.token_type_ids[sources], more),
            labels=tuple(tensor[sources] for tensor in self.labels),
            count=torch.zeros((), device=self.input_ids.device),
            share=None if self.share is None else torch.zeros((), device=self.input_ids.device),
        )
        copy.copy_from(self)
        return copy

    def copy_from(self, other: "TokenBatch") -> None:
        """Copy the values of a batch with at most as many examples and tokens, in place.

        Positions after the tokens of ``other`` are masked, so what they hold is not read. Examples
        after those of ``other`` keep their tokens and get labels that add no loss.
        """
        rows, width = other.input_ids.shape
        self.input_ids[:rows, :width].copy_(other.input_ids)
        self.token_type_ids[:rows, :width].copy_(other.token_type_ids)
        self.attention_mask[:rows, :width].copy_(other.attention_mask)
        self.attention_mask[:rows, width:].zero_()
        for mine, theirs in zip(self.labels, other.labels, strict=True):
            mine[: len(theirs)].copy_(theirs)
            mine[len(theirs) :].fill_(_no_label(mine))
        if isinstance(self.count, torch.Tensor):
            self.count.fill_(rows if other.count is None else other.count)
        if isinstance(self.share, torch.Tensor) and other.share is not None:
            self.share.fill_(other.share)


@dataclass(frozen=True)
class Batch(TokenBatch):
    """Examples of one or several tasks, those of one task side by side.

    Attributes:
        labels: one tensor per part: int64 class indices, float32 scores, or int64 spans
            [B_part, 4].
        parts: which examples belong to which task, in order and without gaps.
        of_ranks: the labels of all ranks' examples, a tensor a part; None where this rank has all.
    """

    parts: tuple[Part, ...]
    of_ranks: tuple[torch.Tensor, ...] | None = field(default=None, kw_only=True)

    @property
    def new(self) -> "Batch":
        """The examples of the first task, the one that is being learned."""
        return self.only(slice(0, 1)) if len(self.parts) > 1 else self

    @property
    def blocks(self) -> tuple[TokenBatch, ...]:
        """The token batches that the encoder computes separately."""
        return (self,)

    def with_blocks(self, blocks: Iterable[TokenBatch]) -> "Batch":
        """Return a copy with other `blocks`."""
        (block,) = blocks
        assert isinstance(block, Batch)
        return block

    def to(self, device: torch.device) -> Self:
        """Return the batch on ``device``."""
        moved = super().to(device)
        if self.of_ranks is None:
            return moved
        return replace(
            moved, of_ranks=tuple(t.to(device, non_blocking=True) for t in self.of_ranks)
        )

    @property
    def all_labels(self) -> tuple[torch.Tensor, ...]:
        """The labels of each part, those of other ranks' examples too."""
        return self.labels if self.of_ranks is None else self.of_ranks

    @property
    def real(self) -> torch.Tensor | None:
        """Which examples are real, bool [B]; None if all are."""
        if len(self.parts) == 1 or all(p.slice is None or p.slice.is_even for p in self.parts):
            return super().real
        own = [p.stop - p.start if p.slice is None else p.slice.own for p in self.parts]
        counts = zip(self.parts, own, strict=True)
        flags = [torch.arange(part.stop - part.start) < count for part, count in counts]
        return torch.cat(flags).to(self.input_ids.device)

    def sliced(self, rank: int, ranks: int) -> Self:
        """Return what one of several ranks learns of each part, with padding as before."""
        slices = [Slice.of(part.stop - part.start, rank, ranks) for part in self.parts]
        places = [
            part.start + row for part, s in zip(self.parts, slices, strict=True) for row in s.rows
        ]
        rows, parts, stop = torch.tensor(places), [], 0
        for part, mine in zip(self.parts, slices, strict=True):
            start, stop = stop, stop + len(mine.rows)
            parts.append(replace(part, start=start, stop=stop, slice=mine))
        pairs = zip(self.labels, slices, strict=True)
        return replace(
            self,
            input_ids=self.input_ids[rows],
            attention_mask=self.attention_mask[rows],
            token_type_ids=self.token_type_ids[rows],
            labels=tuple(_labels_of(labels, mine) for labels, mine in pairs),
            parts=tuple(parts),
            count=_own(parts),
            share=_share(parts),
            of_ranks=self.labels,
        )

    def padded(self, size: int, width: int) -> Self:
        """Return a padded copy in new tensors; only for a batch of one task."""
        (part,) = self.parts
        copy = replace(super().padded(size, width), parts=(replace(part, stop=size),))
        if part.slice is None or self.of_ranks is None:
            return copy
        (labels,) = self.of_ranks
        room = labels.new_empty(size * part.slice.ranks, *labels.shape[1:])
        copy = replace(copy, of_ranks=(room,))
        copy.copy_from(self)
        return copy

    def copy_from(self, other: "TokenBatch") -> None:
        """Copy the values of a batch with at most as many examples and tokens, in place."""
        super().copy_from(other)
        if self.of_ranks is None or not isinstance(other, Batch) or other.of_ranks is None:
            return
        for mine, theirs in zip(self.of_ranks, other.of_ranks, strict=True):
            if mine is not theirs:
                mine[: len(theirs)].copy_(theirs)
                mine[len(theirs) :].fill_(_no_label(mine))

    def only(self, parts: slice) -> "Batch":
        """Return neighbouring parts as a batch, with no more padding than they need."""
        chosen = self.parts[parts]
        first, last = chosen[0].start, chosen[-1].stop
        width = max(part.width for part in chosen)
        return Batch(
            self.input_ids[first:last, :width],
            self.attention_mask[first:last, :width],
            self.token_type_ids[first:last, :width],
            self.labels[parts],
            tuple(replace(p, start=p.start - first, stop=p.stop - first) for p in chosen),
            count=_own(chosen),
            share=_share(chosen),
            of_ranks=None if self.of_ranks is None else self.of_ranks[parts],
        )


def _own(parts: Sequence[Part]) -> int | None:
    """Return how many examples of a single part are real; None if all are, or there are more."""
    mine = parts[0].slice
    return None if len(parts) > 1 or mine is None or mine.is_even else mine.own


def _share(parts: Sequence[Part]) -> float | None:
    """Return what a mean over parts divides by; None where no other rank has any of them."""
    shares = [part.slice.share for part in parts if part.slice is not None]
    return sum(shares) if shares else None


def _no_label(labels: torch.Tensor) -> float:
    """Return a label of the type of ``labels`` that adds no loss."""
    return math.nan if labels.is_floating_point() else IGNORED_LABEL


def _labels_of(labels: torch.Tensor, mine: Slice) -> torch.Tensor:
    """Return the labels of a slice; those of examples that only fill up add no loss."""
    chosen = labels[torch.tensor(mine.rows)]
    chosen[mine.own :] = _no_label(labels)
    return chosen
