"""Rows of several tasks as tensors alone, so that which task a row belongs to changes no shape.

B rows, L tokens after padding. The outputs of all heads stand one behind the other, as columns.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from stream.data.batches import Batch, TokenBatch
from stream.data.task import Task


@dataclass(frozen=True)
class Mixture(TokenBatch):
    """Rows of tasks with classes or scores, each to be seen through its own task's head alone.

    Attributes:
        labels: the position of each row's task, int64 [B]; the column of its class, or of its
            task's one output, int64 [B]; its score, float32 [B], NaN for a class.
    """


@dataclass(frozen=True)
class Rehearsal(Batch):
    """New rows of one task, and remembered ones of others that the encoder sees apart from them.

    Remembered rows come from every task, so some are long, and padding the new ones to them would
    double the work.

    Attributes:
        remembered: rows of tasks with classes or scores; None where there are none.
        spans: rows of span tasks; None where there are none.
    """

    remembered: Mixture | None
    spans: Batch | None

    @classmethod
    def of(cls, batch: Batch, learned: Sequence[Task]) -> "Rehearsal":
        """Return a batch whose first part is new; ``learned`` are the tasks of the others."""
        places = range(1, len(batch.parts))
        spans = [place for place in places if batch.parts[place].task.is_span]
        mixed = [place for place in places if place not in spans]
        return cls(
            **vars(batch.only(slice(0, 1))),
            remembered=_mixture(_chosen(batch, mixed), learned) if mixed else None,
            spans=_chosen(batch, spans) if spans else None,
        )

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    @property
    def size(self) -> int | torch.Tensor:
        """By what a mean over the examples divides."""
        new, *others = self.blocks
        return new.size + sum(map(len, others))

    @property
    def blocks(self) -> tuple[TokenBatch, ...]:
        """What the encoder sees apart: new rows, remembered ones, spans."""
        own = {f.name: getattr(self, f.name) for f in fields(Batch)}
        found = (Batch(**own), self.remembered, self.spans)
        return tuple(block for block in found if block is not None)

    def of_blocks(self, blocks: Iterable[TokenBatch]) -> "Rehearsal":
        """Return the batch with other values of its `blocks`."""
        new, *others = blocks
        names = [name for name in ("remembered", "spans") if getattr(self, name) is not None]
        return replace(self, **vars(new), **dict(zip(names, others, strict=True)))

    def to(self, device: torch.device) -> "Rehearsal":
        """Return the examples on ``device``."""
        return self.of_blocks(block.to(device) for block in self.blocks)


def owners(tasks: Sequence[Task]) -> np.ndarray:
    """Return the position of the task that each column belongs to, int64 [columns]."""
    return np.repeat(np.arange(len(tasks)), [task.num_outputs for task in tasks])


def _chosen(batch: Batch, places: Sequence[int]) -> Batch:
    """Return some parts as a batch, padded no further than they need."""
    parts = [batch.parts[place] for place in places]
    width = max(part.width for part in parts)
    rows = torch.cat([torch.arange(part.start, part.stop) for part in parts])
    moved, stop = [], 0
    for part in parts:
        start, stop = stop, stop + part.stop - part.start
        moved.append(replace(part, start=start, stop=stop))
    return Batch(
        batch.input_ids[rows, :width],
        batch.attention_mask[rows, :width],
        batch.token_type_ids[rows, :width],
        tuple(batch.labels[place] for place in places),
        tuple(moved),
    )


def _mixture(batch: Batch, tasks: Sequence[Task]) -> Mixture:
    """Return the rows of a batch; ``tasks`` are those that its parts may be of."""
    position = {task.name: place for place, task in enumerate(tasks)}
    first = np.cumsum([0, *(task.num_outputs for task in tasks)])
    own, columns, scores = [], [], []
    for part, labels in zip(batch.parts, batch.labels, strict=True):
        place, count = position[part.task.name], len(labels)
        nothing = torch.full((count,), math.nan)
        own.append(torch.full((count,), place))
        column = torch.zeros(count, dtype=torch.int64) if part.task.is_regression else labels
        columns.append(column + int(first[place]))
        scores.append(labels if part.task.is_regression else nothing)
    labels = torch.cat(own), torch.cat(columns), torch.cat(scores)
    return Mixture(batch.input_ids, batch.attention_mask, batch.token_type_ids, labels)
