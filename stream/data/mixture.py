"""Examples of several tasks whose tasks are tensors, not parts: no shape depends on them.

So a captured training step can be replayed with other tasks in the batch. B examples, L tokens
after padding. The outputs of all heads form one matrix: its columns are those of the first task,
then those of the second, and so on.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from stream.data.batch import Batch, TokenBatch
from stream.data.task import Task


@dataclass(frozen=True)
class Mixture(TokenBatch):
    """Examples of tasks with classes or scores; each is seen by the head of its task alone.

    Attributes:
        labels: three tensors [B]: the position of the head of each example (int64); the column of
            its class, or of the one output of a regression task (int64); its score (float32; NaN
            for an example with a class). Behind them, what a method reads of its examples besides.
    """


@dataclass(frozen=True)
class Rehearsal(Batch):
    """New examples of one task, and buffered examples of other tasks in blocks of their own.

    The encoder computes the blocks separately: buffered examples come from every task, so some are
    long, and padding the new ones to their length would double the work.

    Attributes:
        remembered: buffered examples of tasks with classes or scores; None if there are none.
        spans: buffered examples of span tasks; None if there are none.
    """

    remembered: Mixture | None
    spans: Batch | None

    @classmethod
    def of(cls, batch: Batch, learned: Sequence[Task]) -> "Rehearsal":
        """Return a batch as new and buffered examples.

        Args:
            batch: its first part holds the new examples, the other parts buffered ones.
            learned: the tasks that buffered examples may belong to.
        """
        buffered = range(1, len(batch.parts))
        spans = [index for index in buffered if batch.parts[index].task.is_span]
        mixed = [index for index in buffered if index not in spans]
        return cls(
            **vars(batch.only(slice(0, 1))),
            remembered=_mixture(_select_parts(batch, mixed), learned) if mixed else None,
            spans=_select_parts(batch, spans) if spans else None,
        )

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    @property
    def size(self) -> float | torch.Tensor:
        """The number of real examples: what a mean over the batch divides by."""
        return self.new.size + self.stored_size

    @property
    def new(self) -> Batch:
        """The new examples."""
        return Batch(**{f.name: getattr(self, f.name) for f in fields(Batch)})

    @property
    def stored_size(self) -> float | torch.Tensor:
        """The number of buffered examples: what a mean over them divides by."""
        _, *others = self.blocks
        # They are all real, but in a slice.
        return sum(len(o) if o.share is None else o.size for o in others)

    @property
    def blocks(self) -> tuple[TokenBatch, ...]:
        """The token batches that the encoder computes separately: new, buffered, span tasks."""
        blocks = (self.new, self.remembered, self.spans)
        return tuple(block for block in blocks if block is not None)

    def with_blocks(self, blocks: Iterable[TokenBatch]) -> "Rehearsal":
        """Return a copy with other `blocks`."""
        new, *others = blocks
        names = [name for name in ("remembered", "spans") if getattr(self, name) is not None]
        return replace(self, **vars(new), **dict(zip(names, others, strict=True)))

    def to(self, device: torch.device) -> "Rehearsal":
        """Return the batch on ``device``."""
        return self.with_blocks(block.to(device) for block in self.blocks)

    def sliced(self, rank: int, ranks: int) -> "Rehearsal":
        """Return what one of several ranks learns of each block."""
        return self.with_blocks(block.sliced(rank, ranks) for block in self.blocks)


def heads_of(tasks: Sequence[Task]) -> dict[str, int]:
    """Return the heads of tasks by name with the outputs of each, in the order of the tasks."""
    return {task.head_name: task.num_outputs for task in tasks}


def owners(widths: Sequence[int]) -> np.ndarray:
    """Return which of heads with these outputs each column belongs to, int64 [columns]."""
    return np.repeat(np.arange(len(widths)), widths)


def _select_parts(batch: Batch, indices: Sequence[int]) -> Batch:
    """Return some parts as a batch, with no more padding than they need."""
    parts = [batch.parts[index] for index in indices]
    width = max(part.width for part in parts)
    examples = torch.cat([torch.arange(part.start, part.stop) for part in parts])
    moved, stop = [], 0
    for part in parts:
        start, stop = stop, stop + part.stop - part.start
        moved.append(replace(part, start=start, stop=stop))
    return Batch(
        batch.input_ids[examples, :width],
        batch.attention_mask[examples, :width],
        batch.token_type_ids[examples, :width],
        tuple(batch.labels[index] for index in indices),
        tuple(moved),
    )


def _mixture(batch: Batch, tasks: Sequence[Task]) -> Mixture:
    """Return a batch as a mixture; ``tasks`` are those that its parts may belong to."""
    heads = heads_of(tasks)
    positions = {name: position for position, name in enumerate(heads)}
    first_columns = np.cumsum([0, *heads.values()])
    own, columns, scores = [], [], []
    for part, labels in zip(batch.parts, batch.labels, strict=True):
        position, count = positions[part.task.head_name], len(labels)
        no_score = torch.full((count,), math.nan)
        own.append(torch.full((count,), position))
        column = torch.zeros(count, dtype=torch.int64) if part.task.is_regression else labels
        columns.append(column + int(first_columns[position]))
        scores.append(labels if part.task.is_regression else no_score)
    labels = torch.cat(own), torch.cat(columns), torch.cat(scores)
    return Mixture(batch.input_ids, batch.attention_mask, batch.token_type_ids, labels)
