"""Batches of token ids: which rows go together, and how they are padded.

B examples a batch, L tokens after padding, D width of the encoder.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from torch.nn import functional

from stream.data.task import Split, Task
from stream.seeding import numpy_generator

PAD_MULTIPLE = 8
BUCKET_BATCHES = 16
UNCOUNTED = -100  # as a label: of no loss; torch's own choice. Of numbers, NaN


@dataclass(frozen=True)
class Part:
    """Rows ``start:stop`` of a batch, all of one task; its head alone sees them.

    ``width`` is the padded length that these rows alone need.
    """

    task: Task
    start: int
    stop: int
    width: int


@dataclass(frozen=True)
class TokenBatch:
    """Padded examples and what is to be learned of them.

    Attributes:
        input_ids: int64 [B, L].
        attention_mask: int64 [B, L], 1 on tokens.
        token_type_ids: int64 [B, L], 1 on the second text of a pair.
        labels: tensors with a row an example.
        count: how many examples there are before those that only fill up, a scalar; None: all.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    token_type_ids: torch.Tensor
    labels: tuple[torch.Tensor, ...]
    count: torch.Tensor | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return self.input_ids.shape[0]

    def to(self, device: torch.device) -> Self:
        """Return the examples on ``device``."""
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
    def size(self) -> int | torch.Tensor:
        """By what a mean over the examples divides."""
        return len(self) if self.count is None else self.count

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Return the mean of a value an example, [B], over those that count."""
        if self.count is None:
            return values.mean()
        counts = torch.arange(len(self), device=values.device) < self.count
        return torch.where(counts, values, 0.0).sum() / self.count

    def padded(self, rows: int, width: int) -> Self:
        """Return a copy with tensors of its own: ``rows`` examples of ``width`` tokens.

        Rows that are filled up repeat the last one, and have labels that change no loss.
        """
        more = (0, width - self.width)
        places = torch.arange(rows, device=self.input_ids.device).clamp(max=len(self) - 1)
        found = replace(
            self,
            input_ids=functional.pad(self.input_ids[places], more),
            attention_mask=functional.pad(self.attention_mask[places], more),
            token_type_ids=functional.pad(self.token_type_ids[places], more),
            labels=tuple(tensor[places] for tensor in self.labels),
            count=torch.zeros((), device=self.input_ids.device),
        )
        found.take(self)
        return found

    def take(self, other: "TokenBatch") -> None:
        """Take the values of a batch that has at most as many rows and tokens, in place.

        Columns behind it are masked; whatever tokens stand there are not read. Rows behind it keep
        their tokens, and have labels that change no loss.
        """
        rows, width = other.input_ids.shape
        self.input_ids[:rows, :width].copy_(other.input_ids)
        self.token_type_ids[:rows, :width].copy_(other.token_type_ids)
        self.attention_mask[:rows, :width].copy_(other.attention_mask)
        self.attention_mask[:rows, width:].zero_()
        for mine, theirs in zip(self.labels, other.labels, strict=True):
            mine[: len(theirs)].copy_(theirs)
            mine[len(theirs) :].fill_(math.nan if mine.is_floating_point() else UNCOUNTED)
        if self.count is not None:
            self.count.fill_(rows)


@dataclass(frozen=True)
class Batch(TokenBatch):
    """Examples of one task or of several, told apart by where they stand.

    Attributes:
        labels: one tensor a part: int64 class indices, float32 scores, or int64 spans [B_part, 4].
        parts: which rows belong to which task, in row order, without gaps.
    """

    parts: tuple[Part, ...]

    @property
    def blocks(self) -> tuple[TokenBatch, ...]:
        """What the encoder sees apart."""
        return (self,)

    def of_blocks(self, blocks: Iterable[TokenBatch]) -> "Batch":
        """Return the batch with other values of its `blocks`."""
        (block,) = blocks
        assert isinstance(block, Batch)
        return block

    def padded(self, rows: int, width: int) -> Self:
        """Return a copy with tensors of its own; of one task."""
        (part,) = self.parts
        return replace(super().padded(rows, width), parts=(replace(part, stop=rows),))

    def only(self, parts: slice) -> "Batch":
        """Return some neighbouring parts as a batch, padded no further than they need."""
        chosen = self.parts[parts]
        first, last = chosen[0].start, chosen[-1].stop
        width = max(part.width for part in chosen)
        return Batch(
            self.input_ids[first:last, :width],
            self.attention_mask[first:last, :width],
            self.token_type_ids[first:last, :width],
            self.labels[parts],
            tuple(replace(p, start=p.start - first, stop=p.stop - first) for p in chosen),
        )


def collate(chosen: Sequence[tuple[Task, Split, np.ndarray]], pad_id: int) -> Batch:
    """Pad the chosen rows of one or several tasks to one batch.

    L is the longest row's length, rounded up to a multiple of 8, so that shapes are few.

    Args:
        chosen: (task, split, row indices) in row order.
        pad_id: the tokenizer's padding.
    """
    lengths = np.concatenate([split.lengths_of(rows) for _, split, rows in chosen])
    firsts = np.concatenate([split.first_lengths[rows] for _, split, rows in chosen])
    position = np.arange(_padded(lengths))
    mask = position < lengths[:, None]
    ids = np.full(mask.shape, pad_id, np.int64)
    stop = 0
    parts, labels = [], []
    for task, split, rows in chosen:
        start, stop = stop, stop + len(rows)
        inside = mask[start:stop]
        places = split.offsets[rows][:, None] + position
        ids[start:stop][inside] = split.token_ids[places[inside]]
        parts.append(Part(task, start, stop, _padded(lengths[start:stop])))
        labels.append(torch.from_numpy(split.labels[rows]))
    types = mask & (position >= firsts[:, None])
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(mask.astype(np.int64)),
        torch.from_numpy(types.astype(np.int64)),
        tuple(labels),
        tuple(parts),
    )


def _padded(lengths: np.ndarray) -> int:
    """Return the padded length of rows of these lengths."""
    return -(-int(lengths.max()) // PAD_MULTIPLE) * PAD_MULTIPLE


def epoch_order(
    lengths: np.ndarray, batch_size: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """Return the row indices of each batch of one epoch: a length-bucketed shuffle.

    The rows are shuffled, cut into buckets of 16 batches, sorted by length within each bucket,
    cut into batches, and the batches are shuffled. Every row occurs once; padding is small.
    """
    shuffled = generator.permutation(len(lengths))
    bucket = batch_size * BUCKET_BATCHES
    batches = []
    for start in range(0, len(shuffled), bucket):
        rows = shuffled[start : start + bucket]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches.extend(rows[i : i + batch_size] for i in range(0, len(rows), batch_size))
    return [batches[i] for i in generator.permutation(len(batches))]


def training_rows(task: Task, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return the rows of each training batch: a pure function of (seed, task name, epoch)."""
    generator = numpy_generator(seed, "batches", task.name, epoch)
    return epoch_order(task.split("train").lengths, batch_size, generator)


def evaluation_batches(
    chosen: Sequence[tuple[Task, Split]], pad_id: int, batch_tokens: int
) -> Iterator[tuple[list[tuple[int, np.ndarray]], Batch]]:
    """Yield the rows of one or several tasks, longest first, in as few batches as fit.

    The shapes depend on the splits alone, so what is evaluated alone always has the same ones.

    Args:
        chosen: (task, split) of each task.
        pad_id: the tokenizer's padding.
        batch_tokens: padded tokens a batch at most; a longer row is alone in its batch.

    Yields:
        (position in ``chosen``, row indices) of each part, and the batch.
    """
    lengths = np.concatenate([split.lengths for _, split in chosen])
    owners = np.repeat(np.arange(len(chosen)), [len(split) for _, split in chosen])
    rows = np.concatenate([np.arange(len(split)) for _, split in chosen])
    by_length = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(by_length):
        width = _padded(lengths[by_length[start : start + 1]])
        taken = by_length[start : start + max(batch_tokens // width, 1)]
        found = np.unique(owners[taken]).tolist()
        parts = [(owner, rows[taken[owners[taken] == owner]]) for owner in found]
        yield parts, collate([(*chosen[owner], of_it) for owner, of_it in parts], pad_id)
        start += len(taken)
