"""The replay memory: a seeded sample of the training rows of each task learned."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stream.seeding import numpy_generator
from stream.tasks.task import Split, Task


class ReplayMemory:
    """At most ``budget`` rows of each task (None keeps all), as token ids and labels."""

    def __init__(self, budget: int | None, seed: int):
        self._budget = budget
        self._seed = seed
        self._kept: list[tuple[Task, Split]] = []

    def remember(self, task: Task) -> None:
        """Keep a uniform sample of the task's training rows; it depends on the name alone."""
        rows = task.split("train")
        order = numpy_generator(self._seed, "memory", task.name).permutation(len(rows))
        kept = rows.take(np.sort(order[: self._budget]))
        self._kept.append((task, replace(kept, answers=None)))  # learning reads labels alone

    def draw(
        self, count: int, weights: Sequence[float] | np.ndarray, generator: np.random.Generator
    ) -> list[tuple[Task, Split, np.ndarray]]:
        """Draw ``count`` rows: a task for each by ``weights``, then rows of it without repeats.

        Returns:
            (task, its remembered rows, indices) of each task drawn, in the order remembered;
            empty while nothing is remembered. A task with fewer rows than drawn gives all.
        """
        if not self._kept:
            return []
        counts = generator.multinomial(count, weights)
        drawn = []
        for (task, split), wanted in zip(self._kept, counts, strict=True):
            rows = generator.permutation(len(split))[:wanted]
            if len(rows):
                drawn.append((task, split, rows))
        return drawn

    @property
    def examples(self) -> int:
        """Rows kept of all tasks."""
        return sum(len(split) for _, split in self._kept)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows kept."""
        return sum(split.nbytes for _, split in self._kept)
