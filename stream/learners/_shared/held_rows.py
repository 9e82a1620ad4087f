"""Stored rows in a batch that are held to their labels, or to the logits stored with them.

Each has a weight of its own. What a captured step reads of them stays in place for a task: one
table with the logits of all tasks, and the row of it that each row of a batch looks up.

B rows, K outputs of the widest task.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from stream.data.batch import IGNORED_LABEL, Batch
from stream.data.mixture import Mixture, Rehearsal
from stream.data.task import Task
from stream.learners._shared.replay_buffer import Drawn
from stream.models.heads import Head, joined
from stream.models.losses import mixture_logits, mixture_loss, part_loss
from stream.models.task_model import TaskModel


class Held(NamedTuple):
    """Stored rows of one task in a batch, and what they are held to.

    Attributes:
        task: theirs.
        rows: which of the task's stored rows they are.
        dark: whether they are held to the logits that were stored with them; else to their labels.
        weight: of each row's loss.
    """

    task: Task
    rows: np.ndarray
    dark: bool
    weight: float

    def places(self, first: Mapping[str, int]) -> torch.Tensor:
        """Return the rows of the table with their logits, int64; -1 where none is read.

        Args:
            first: row of each task in the table.
        """
        found = self.rows + first[self.task.name] if self.dark else np.full(len(self.rows), -1)
        return torch.from_numpy(found)


def held(drawn: Sequence[Drawn], factor: float, *, dark: bool) -> list[Held]:
    """Return what the rows of a draw are held to; their weights sum to ``factor``."""
    weight = factor / max(sum(len(rows) for *_, rows in drawn), 1)
    return [Held(task, rows, dark, weight) for task, _, rows in drawn]


class HeldRows:
    """The stored rows of one task's batches, and what they are held to.

    Args:
        learned: the tasks that rows are stored of.
        logits: those of each task's stored rows, by its name, [n, at most K].
        heads: of the tasks, in order; each once.
        owners: int64 [columns]; the position of the head of each output.
    """

    def __init__(
        self,
        learned: Sequence[Task],
        logits: Mapping[str, torch.Tensor],
        heads: Sequence[Head],
        owners: torch.Tensor,
    ):
        self._logits, self._heads, self._owners = logits, heads, owners
        tables = [torch.zeros(0, 1, device=owners.device)]
        self._first_rows = dict[str, int]()
        for task in learned:
            if not task.is_span:
                self._first_rows[task.name] = sum(map(len, tables))
                tables.append(logits[task.name])
        self._table = joined(tables)
        positions = torch.arange(len(heads), device=owners.device)
        self._first_columns = torch.searchsorted(owners, positions)
        self._spans: list[Held] = []

    def marked(self, batch: Rehearsal, rows: Sequence[Held]) -> Rehearsal:
        """Return a batch whose stored rows say what they are held to; the next one for `losses`.

        Args:
            batch: new and stored rows.
            rows: the stored ones, in the order in which they were collated.
        """
        self._spans = [each for each in rows if each.task.is_span]
        if batch.remembered is None:
            return batch
        mixed = [each for each in rows if not each.task.is_span]
        return replace(batch, remembered=self._with_labels(batch.remembered, mixed))

    def _with_labels(self, mixture: Mixture, rows: Sequence[Held]) -> Mixture:
        """Return a mixture with two more labels: the row of the table, or -1, and the weight.

        Rows that are held to their logits lose the labels of their own.
        """
        own, columns, scores = mixture.labels
        places = torch.cat([each.places(self._first_rows) for each in rows])
        weights = [torch.full((len(each.rows),), each.weight * len(mixture)) for each in rows]
        columns = columns.masked_fill(places >= 0, IGNORED_LABEL)
        scores = scores.masked_fill(places >= 0, math.nan)
        return replace(mixture, labels=(own, columns, scores, places, torch.cat(weights)))

    def losses(self, model: TaskModel, batch: Batch) -> list[torch.Tensor]:
        """Return the weighted losses of a batch's blocks of stored rows; empty without any."""
        found = []
        if isinstance(batch, Rehearsal) and batch.remembered is not None:
            found.append(self._of_mixture(model, batch.remembered))
        if isinstance(batch, Rehearsal) and batch.spans is not None:
            found.append(self._of_spans(model, batch.spans))
        return found

    def _of_mixture(self, model: TaskModel, mixture: Mixture) -> torch.Tensor:
        """Return the weighted loss of stored rows with classes or scores."""
        own, _, _, places, weights = mixture.labels
        logits = mixture_logits(self._heads, model.states(mixture))
        before = self._table[places.clamp(min=0)]  # [B, K], of the widest task
        columns = self._first_columns[own.clamp(min=0)][:, None]
        columns = columns + torch.arange(before.shape[1], device=own.device)
        now = logits.gather(1, columns.clamp(max=logits.shape[1] - 1))
        losses = torch.where(places < 0, 0.0, _moved(now, before))
        losses = losses + mixture_loss(logits, self._owners, mixture, by_row=True)
        # Rows that fill up a slice have no weight.
        return (weights.nan_to_num() * losses).sum() / mixture.size

    def _of_spans(self, model: TaskModel, spans: Batch) -> torch.Tensor:
        """Return the weighted loss of stored rows of span tasks."""
        losses, real = [], spans.real
        parts = zip(spans.parts, model(spans), spans.labels, self._spans, strict=True)
        for part, logits, labels, each in parts:
            if not each.dark:
                losses.append(each.weight * part_loss(part, logits, labels))
                continue
            before = self._logits[part.task.name][part.of(each.rows)]
            width = min(logits.shape[1], before.shape[1])
            moved = _moved(logits[:, :width], before[:, :width])
            if real is not None:
                moved = torch.where(real[part.start : part.stop], moved, 0.0)
            losses.append(each.weight * moved.sum())
        return torch.stack(losses).sum() * (sum(len(h.rows) for h in self._spans) / spans.size)


def _moved(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Return the mean squared change [B] of logits [B, K], over the classes that there were."""
    real = before > Head.NEVER / 2
    return (torch.where(real, now - before, 0.0) ** 2).sum(1) / real.sum(1).clamp(min=1)
