"""The replay buffer: a seeded sample of the training rows of each task learned."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from stream.data.batches import Batch, collate, training_rows
from stream.data.task import Split, Task
from stream.learners.workload import Epoch
from stream.seeding import numpy_generator

Drawn = tuple[Task, Split, np.ndarray]
"""A task, its stored rows, and the indices of those that were drawn."""


class ReplayBuffer:
    """At most ``budget`` rows of each task (None keeps all), as token ids and labels."""

    def __init__(self, budget: int | None, seed: int):
        self._budget = budget
        self._seed = seed
        self._stored: list[tuple[Task, Split]] = []

    def add(self, task: Task) -> None:
        """Store a uniform sample of the task's training rows; it depends on the name alone."""
        rows = task.split("train")
        order = numpy_generator(self._seed, "memory", task.name).permutation(len(rows))
        sample = rows.select(np.sort(order[: self._budget]))
        self._stored.append((task, replace(sample, answers=None)))  # learning reads labels alone

    def draw(
        self, count: int, weights: Sequence[float] | np.ndarray, generator: np.random.Generator
    ) -> list[Drawn]:
        """Draw ``count`` rows: a task for each by ``weights``, then rows of it without repeats.

        Args:
            count: rows to draw.
            weights: the probability of each task, in the order stored.
            generator: what the draws are made with.

        Returns:
            The rows of each task drawn, in the order stored; empty while nothing is stored. A task
            with fewer rows than drawn gives all.
        """
        if not self._stored:
            return []
        counts = generator.multinomial(count, weights)
        drawn = []
        for (task, split), wanted in zip(self._stored, counts, strict=True):
            rows = generator.permutation(len(split))[:wanted]
            if len(rows):
                drawn.append((task, split, rows))
        return drawn

    def mixed(
        self,
        task: Task,
        epoch: Epoch,
        pad_id: int,
        count: int,
        weights: Sequence[float] | np.ndarray | None = None,
    ) -> Iterator[Batch]:
        """Yield the batches of an epoch of ``task``, each with ``count`` drawn rows behind it.

        The draws are a pure function of (seed, task name, epoch).

        Args:
            task: the task that is being learned.
            epoch: which pass.
            pad_id: the tokenizer's padding.
            count: rows drawn per batch.
            weights: as for `draw`; None draws from all tasks alike.
        """
        generator = numpy_generator(self._seed, "replay", task.name, epoch.index)
        if weights is None:
            weights = self.even()
        for rows in training_rows(task, epoch.batch_size, self._seed, epoch.index):
            drawn = self.draw(count, weights, generator)
            yield collate([(task, task.split("train"), rows), *drawn], pad_id)

    def even(self) -> np.ndarray:
        """Return the weights with which all stored tasks are drawn alike."""
        return np.full(len(self._stored), 1 / max(len(self._stored), 1))

    def rows_of(self, task: Task) -> Split:
        """Return the stored rows of a task."""
        return next(split for known, split in self._stored if known.name == task.name)

    @property
    def examples(self) -> int:
        """Rows stored of all tasks."""
        return sum(len(split) for _, split in self._stored)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows stored."""
        return sum(split.nbytes for _, split in self._stored)
