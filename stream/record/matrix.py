"""The score matrix: cell (i, j) is the evidence on task j after learning task i (0-based)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

REUSED = "reused"


@dataclass(frozen=True)
class Routed:
    """What comes of an evaluation when the task of each text is inferred, among those learned.

    Attributes:
        score: the task's own metric of the answers of the inferred tasks, a fraction in [-1, 1].
        accuracy: the fraction of the texts whose inferred task is their own.
        digest: SHA-256 of the places of the inferred tasks in the stream (int32, little-endian, in
            example order).
        counts: how many texts were given to each task learned so far, in order.
        passes: forward passes that serving one text takes, the answer's among them.
        seconds: wall time of routing and of the answers of other tasks.
        undefined: true where the answers leave the metric undefined; the score is 0.
    """

    score: float
    accuracy: float
    digest: str
    counts: list[int]
    passes: int
    seconds: float
    undefined: bool = False

    def __post_init__(self) -> None:
        """Check the score.

        Raises:
            ValueError: it is not finite.
        """
        if not math.isfinite(self.score):
            raise ValueError(f"a routed score must be finite, got {self.score}")


@dataclass(frozen=True)
class Cell:
    """One evaluation.

    Attributes:
        score: the task's own metric, a fraction in [-1, 1].
        digest: SHA-256 of the logits (float32, little-endian, in example order).
        state: ``measured``, or ``reused`` where an equal fingerprint proved an equal score.
        seconds: wall time of the evaluation.
        undefined: true where constant predictions leave the metric undefined; the score is 0.
        correct: which examples were predicted right, in example order: base64 of
            `numpy.packbits`; None for regression.
        more: scores by the task's ``more_metrics``, None where one is undefined.
        routed: the same with inferred tasks; None where the task was known, or is not learned.
        constant: true where all texts get one answer although their labels differ.
    """

    score: float
    digest: str
    state: str
    seconds: float
    undefined: bool = False
    correct: str | None = None
    more: dict[str, float | None] | None = None
    routed: Routed | None = None
    constant: bool = False

    def __post_init__(self) -> None:
        """Check the score.

        Raises:
            ValueError: it is not finite; in JSON it would silently become null.
        """
        if not math.isfinite(self.score):
            raise ValueError(f"a score must be finite, got {self.score}")

    def reused(self) -> Self:
        """Return what a later row holds whose equal fingerprint proved an equal score.

        All later rows hold one object: a cell that is reused already is returned itself.
        """
        return self if self.state == REUSED else replace(self, state=REUSED, seconds=0.0)

    def reuses(self, above: "Cell | None") -> bool:
        """Whether this is what `reused` returns for the newest evidence ``above`` it."""
        if above is None or self.state != REUSED:
            return False
        return self is above or self == above.reused()


@dataclass
class ScoreMatrix:
    """T x T cells, row by row as the stream goes on; a cell that was not evaluated is None.

    Attributes:
        order: the names of the tasks.
        cells: the rows, shared with whoever gave them; by default nothing is evaluated yet.
    """

    order: Sequence[str]
    cells: list[list[Cell | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with nothing evaluated where no cells were given."""
        if not self.cells:
            self.cells = [[None] * len(self.order) for _ in self.order]

    def record(self, after: int, on: int, cell: Cell) -> None:
        """Store the evidence on task ``on`` after task ``after``; a cell is written once.

        Args:
            after: position of the task learned last.
            on: position of the task that was evaluated.
            cell: the evidence.
        """
        assert self.cells[after][on] is None, f"cell ({after}, {on}) was already evaluated"
        self.cells[after][on] = cell

    def above(self, after: int, on: int) -> Cell | None:
        """Return the newest evidence on task ``on`` in the rows before row ``after``."""
        for row in range(after - 1, -1, -1):  # nearly always the first
            if (cell := self.cells[row][on]) is not None:
                return cell
        return None

    def last(self, task: str) -> Cell:
        """Return the newest evidence on a task.

        Raises:
            ValueError: it was never evaluated.
        """
        on = list(self.order).index(task)
        found = next((row[on] for row in reversed(self.cells) if row[on] is not None), None)
        if found is None:
            raise ValueError(f"{task!r} was never evaluated")
        return found

    def scores(self) -> np.ndarray:
        """Return the scores, float64 [T, T], NaN where nothing was evaluated."""
        rows = [[np.nan if cell is None else cell.score for cell in row] for row in self.cells]
        return np.array(rows, dtype=np.float64)

    def routed(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return scores and routing accuracies with inferred tasks, float64 [T, T] each.

        NaN where none were inferred; None where none were at all.
        """
        nothing = (math.nan, math.nan)
        pairs = [
            [
                nothing if c is None or c.routed is None else (c.routed.score, c.routed.accuracy)
                for c in row
            ]
            for row in self.cells
        ]
        both = np.array(pairs, dtype=np.float64)
        return None if np.isnan(both).all() else (both[..., 0], both[..., 1])

    def rows_done(self) -> int:
        """Return how many tasks were learned and evaluated."""
        return sum(row[i] is not None for i, row in enumerate(self.cells))

    def memory(self) -> tuple[int, int]:
        """Return (tasks checked, tasks identical): last row's digests against the diagonal's.

        The task learned last is not among them: its two cells are one.
        """
        last = self.rows_done() - 1
        pairs = [(self.cells[j][j], self.cells[last][j]) for j in range(max(last, 0))]
        evidence = [(a.digest, b.digest) for a, b in pairs if a is not None and b is not None]
        return len(evidence), sum(first == now for first, now in evidence)
