"""The replay buffer: a seeded choice of the training rows of the tasks learned.

``selection`` says how rows are chosen: ``uniform`` draws them; ``herding`` takes those whose
running mean in the encoder's space follows the mean (iCaRL, `herded`). Both keep ``budget`` rows of
each task, chosen at its end from all its rows (``balance=task``) or from each of its classes, as
many of each as rows reach (``balance=class``; scores and spans have no classes). iCaRL's memory is
``selection=herding balance=class``.

``reservoir`` keeps ``budget`` rows of the whole stream, each row that went by with the same
probability (as the buffers of Chaudhry et al. 2019, arXiv 1902.10486). Each row goes by once, in
the order of its split, however many epochs it is learned for: copies would crowd out other rows.
They go by when the task ends, so a step rehearses rows of earlier tasks alone, as with the others;
published ones change from step to step within a single epoch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from stream.data.batch import Batch
from stream.data.batching import collate, training_rows
from stream.data.task import Split, Task
from stream.learners._shared.selection import Reservoir, even_quotas, herded
from stream.learners.workload import Epoch
from stream.seeding import numpy_generator

Drawn = tuple[Task, Split, np.ndarray]
"""A task, its stored rows, and the indices of those that were drawn."""
BALANCES = ("task", "class")
SELECTIONS = ("uniform", "herding", "reservoir")


class ReplayBuffer:
    """Rows of earlier tasks as token ids and labels.

    Args:
        budget: rows of each task, or of all with ``reservoir``; None keeps all of each.
        seed: the run's.
        balance: ``task`` or ``class``.
        selection: ``uniform``, ``herding`` or ``reservoir``.
        features: returns what herding compares of a task that was just learned, float64 [N, D].
    """

    def __init__(
        self,
        budget: int | None,
        seed: int,
        balance: str = "task",
        selection: str = "uniform",
        features: Callable[[Task], np.ndarray] | None = None,
    ):
        self._budget = budget
        self._seed = seed
        self._balance = balance
        self._features = features if selection == "herding" else None
        self._reservoir: Reservoir | None = None
        if selection == "reservoir" and budget is not None:
            self._reservoir = Reservoir(budget)
        self._stored: list[tuple[Task, Split]] = []
        self._rows: dict[str, np.ndarray] = {}
        self._waiting: list[Task] = []
        self.kept: dict[str, np.ndarray] = {}
        """Of each task stored before, which of its stored rows the newest task left, int64."""

    def add(self, task: Task) -> None:
        """Store rows of the task that was just learned."""
        if self._reservoir is None:
            self._store(task, self._choice(task))
            return
        train = task.split("train")
        generator = numpy_generator(self._seed, "reservoir", task.name)
        self._reservoir.pass_by(task.name, len(train), generator)
        self.kept.clear()
        for place, (earlier, split) in enumerate(self._stored):
            rows = self._reservoir.rows_of(earlier.name)
            self.kept[earlier.name] = np.searchsorted(self._rows[earlier.name], rows)
            self._stored[place] = (earlier, split.select(self.kept[earlier.name]))
            self._rows[earlier.name] = rows
        self._store(task, self._reservoir.rows_of(task.name))

    def restore(self, task: Task) -> None:
        """Store rows of a task that was learned before; herded ones wait for `load`."""
        if self._features is None:
            self.add(task)
        else:
            self._waiting.append(task)

    def state(self) -> dict[str, torch.Tensor]:
        """Return the rows [budget] of each task that only the encoder of its end could name."""
        rows = self._rows if self._features is not None else {}
        return {name: torch.from_numpy(of_task) for name, of_task in rows.items()}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Store the rows of the tasks that wait, as `state` named them.

        Raises:
            KeyError: a task that it does not name.
        """
        for task in self._waiting:
            self._store(task, state[task.name].cpu().numpy())
        self._waiting.clear()

    def _choice(self, task: Task) -> np.ndarray:
        """Return the rows of a task that are stored, ascending; uniform: by its name alone."""
        train = task.split("train")
        generator = numpy_generator(self._seed, "memory", task.name)
        order = generator.permutation(len(train))
        sets = [order]
        if self._balance == "class" and not (task.is_regression or task.is_span):
            labels = train.labels[order]
            sets = [order[labels == label] for label in np.unique(labels)]
        budget = len(train) if self._budget is None else self._budget
        quotas = even_quotas(np.array([len(rows) for rows in sets]), budget, generator)
        if self._features is not None:
            features = self._features(task)
            sets = [np.sort(rows) for rows in sets]
            chosen = [
                rows[herded(features[rows], quota)]
                for rows, quota in zip(sets, quotas, strict=True)
            ]
        else:
            chosen = [rows[:quota] for rows, quota in zip(sets, quotas, strict=True)]
        return np.sort(np.concatenate(chosen))

    def _store(self, task: Task, rows: np.ndarray) -> None:
        """Store some training rows of a task."""
        sample = task.split("train").select(rows)
        self._stored.append((task, replace(sample, answers=None)))  # learning reads labels alone
        self._rows[task.name] = rows

    def draw(
        self, count: int, weights: Sequence[float] | np.ndarray, generator: np.random.Generator
    ) -> list[Drawn]:
        """Draw ``count`` rows: a task for each by ``weights``, then rows of it without repeats.

        Args:
            count: rows to draw.
            weights: the probability of each task, in the order stored; those of tasks without
                stored rows go to the others.
            generator: what the draws are made with.

        Returns:
            The rows of each task drawn, in the order stored; empty while nothing is stored. A task
            with fewer rows than drawn gives all.
        """
        if not self._stored:
            return []
        if self._reservoir is not None:
            weights = np.where([len(split) > 0 for _, split in self._stored], weights, 0.0)
            weights = weights / weights.sum()
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
            weights: as for `draw`; None takes `even`.
        """
        generator = numpy_generator(self._seed, "replay", task.name, epoch.index)
        if weights is None:
            weights = self.even()
        for rows in training_rows(task, epoch.batch_size, self._seed, epoch.index):
            drawn = self.draw(count, weights, generator)
            yield collate([(task, task.split("train"), rows), *drawn], pad_id)

    def even(self) -> np.ndarray:
        """Return the weights that draw all stored tasks alike; of a reservoir, all stored rows."""
        if self._reservoir is not None:
            sizes = np.array([len(split) for _, split in self._stored], np.float64)
            return sizes / max(sizes.sum(), 1.0)
        return np.full(len(self._stored), 1 / max(len(self._stored), 1))

    def of_each(self, count: int, generator: np.random.Generator) -> list[Drawn]:
        """Draw ``count`` rows of every task with stored rows, or all that it has."""
        return [
            (task, split, generator.permutation(len(split))[:count])
            for task, split in self._stored
            if len(split)
        ]

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
