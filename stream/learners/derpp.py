"""Dark experience replay++ (Buzzega et al. 2020, arXiv 2004.07211, equation 6).

L = L_new + alpha mean |h(x') - z'|^2 + beta L(x'', y''): two separate draws from the buffer, the
first held to the logits z' that were stored with it, the second to its labels. Deviations: rows are
stored at a task's end, with the logits that the learner gives then; by default ``budget`` of each
task, instead of a reservoir of the whole stream (``selection=reservoir``), which would hold the
largest tasks. Heads are a task's own, so logits are compared over the task's own classes (with
``scenario=shared_head`` over those that were met when they were stored). Earlier heads go on
learning from the buffer.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from stream.config.setting import NOT_NEGATIVE, setting
from stream.data.batches import IGNORED_LABEL, Batch, collate, training_rows
from stream.data.mixture import Mixture, Rehearsal
from stream.data.task import Task
from stream.learners._shared.replay_buffer import Drawn
from stream.learners._shared.replaying import Replaying
from stream.learners.base import Tags
from stream.learners.workload import Epoch
from stream.models.heads import Head, joined
from stream.models.losses import batch_loss, mixture_logits, mixture_loss, part_loss
from stream.seeding import numpy_generator


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


@dataclass
class Derpp(Replaying):
    """Train one encoder, replay examples, logits.

    Stored examples are held to their labels, and to the logits that were stored with them.

    Attributes:
        alpha: the factor of the squared change of stored logits.
        beta: the factor of the loss of stored labels.
        replayed: stored examples read in each step, twice: once for logits, once for labels.
    """

    replayed: int = 16
    alpha: float = setting(0.3, NOT_NEGATIVE)
    beta: float = setting(0.5, NOT_NEGATIVE)

    tags: ClassVar[Tags] = replace(
        Replaying.tags,
        paper="Buzzega et al. 2020, arXiv 2004.07211",
        stores="examples, logits, head",
        cuda_graph_safe=True,
    )

    def begin_task(self, task: Task) -> None:
        """Put the logits of stored rows into one table, which stays in place for the task."""
        super().begin_task(task)
        device = self.model.device
        tables = [torch.zeros(0, 1, device=device)]
        self._first_rows = dict[str, int]()
        for old in self.learned:
            if not old.is_span:
                self._first_rows[old.name] = sum(map(len, tables))
                tables.append(self.shared_tensors[old.name])
        self._table = joined(tables)
        heads = torch.arange(len(self._heads), device=device)
        self._first_columns = torch.searchsorted(self._owners, heads)

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the new task's batches, each with two draws from the buffer behind it."""
        generator = numpy_generator(self.seed, "derpp", task.name, epoch.index)
        even = self.stored.even()
        for rows in training_rows(task, epoch.batch_size, self.seed, epoch.index):
            draws = [self.stored.draw(self.replayed, even, generator) for _ in range(2)]
            chosen = [(task, task.split("train"), rows), *draws[0], *draws[1]]
            batch = Rehearsal.of(collate(chosen, self.pad_id), self.learned)
            held = [
                *_held(draws[0], self.alpha, dark=True),
                *_held(draws[1], self.beta, dark=False),
            ]
            self._spans = [rows for rows in held if rows.task.is_span]  # of the next loss
            mixed = [rows for rows in held if not rows.task.is_span]
            yield self._marked(batch, batch.remembered, mixed) if batch.remembered else batch

    def _marked(self, batch: Rehearsal, mixture: Mixture, held: Sequence[Held]) -> Rehearsal:
        """Return a batch whose stored rows say what they are held to, and what each weighs.

        The labels of the mixture go on with the row of the table (-1 of those that are held to
        their labels) and the weight; those that are held to their logits lose their own.
        """
        own, columns, scores = mixture.labels
        places = torch.cat([rows.places(self._first_rows) for rows in held])
        weights = torch.cat([torch.full((len(h.rows),), h.weight * len(mixture)) for h in held])
        columns = columns.masked_fill(places >= 0, IGNORED_LABEL)
        scores = scores.masked_fill(places >= 0, math.nan)
        labels = own, columns, scores, places, weights
        return replace(batch, remembered=replace(mixture, labels=labels))

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of new rows, of logits that moved, and of stored labels."""
        new = batch.new if isinstance(batch, Rehearsal) else batch
        loss = batch_loss(new, self.model(new))
        if isinstance(batch, Rehearsal) and batch.remembered is not None:
            loss = loss + self._mixture_loss(batch.remembered)
        if isinstance(batch, Rehearsal) and batch.spans is not None:
            loss = loss + self._span_loss(batch.spans)
        return loss

    def _mixture_loss(self, mixture: Mixture) -> torch.Tensor:
        """Return the weighted loss of stored rows with classes or scores."""
        own, _, _, places, weights = mixture.labels
        logits = mixture_logits(self._heads, self.model.states(mixture))
        before = self._table[places.clamp(min=0)]  # [B, K], of the widest task
        columns = self._first_columns[own.clamp(min=0)][:, None]
        columns = columns + torch.arange(before.shape[1], device=own.device)
        now = logits.gather(1, columns.clamp(max=logits.shape[1] - 1))
        losses = torch.where(places < 0, 0.0, _moved(now, before))
        losses = losses + mixture_loss(logits, self._owners, mixture, by_row=True)
        # Rows that fill up a slice have no weight.
        return (weights.nan_to_num() * losses).sum() / mixture.size

    def _span_loss(self, spans: Batch) -> torch.Tensor:
        """Return the weighted loss of stored rows of span tasks."""
        losses, real = [], spans.real
        parts = zip(spans.parts, self.model(spans), spans.labels, self._spans, strict=True)
        for part, logits, labels, held in parts:
            if not held.dark:
                losses.append(held.weight * part_loss(part, logits, labels))
                continue
            before = self.shared_tensors[part.task.name][part.of(held.rows)]
            width = min(logits.shape[1], before.shape[1])
            moved = _moved(logits[:, :width], before[:, :width])
            if real is not None:
                moved = torch.where(real[part.start : part.stop], moved, 0.0)
            losses.append(held.weight * moved.sum())
        return torch.stack(losses).sum() * (sum(len(h.rows) for h in self._spans) / spans.size)

    def end_task(self, task: Task) -> None:
        """Store the logits of the task's stored examples; drop those of rows that left."""
        for name, left in self.stored.kept.items():
            self.shared_tensors[name] = self.shared_tensors[name][left]
        split, model = self.stored.rows_of(task), self.model
        model.eval()
        parts = []
        for rows in np.array_split(np.arange(len(split)), max(-(-len(split) // 32), 1)):
            if not len(rows):  # a reservoir that the task left no row in
                continue
            with torch.no_grad(), model.computing():
                parts += model(collate([(task, split, rows)], self.pad_id).to(model.device))
        model.train()
        none = torch.zeros(0, model.head(task.head_name).outputs, device=model.device)
        self.shared_tensors[task.name] = joined(parts or [none])


def _held(drawn: Sequence[Drawn], factor: float, *, dark: bool) -> list[Held]:
    """Return what the rows of a draw are held to; their weights sum to ``factor``."""
    weight = factor / max(sum(len(rows) for *_, rows in drawn), 1)
    return [Held(task, rows, dark, weight) for task, _, rows in drawn]


def _moved(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Return the mean squared change [B] of logits [B, K], over the classes that there were."""
    real = before > Head.NEVER / 2
    return (torch.where(real, now - before, 0.0) ** 2).sum(1) / real.sum(1).clamp(min=1)
