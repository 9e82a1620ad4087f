"""The score matrix: cell (i, j) is the evidence on task j after learning task i (0-based)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


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
    """

    score: float
    digest: str
    state: str
    seconds: float
    undefined: bool = False
    correct: str | None = None


@dataclass
class ScoreMatrix:
    """T x T cells, row by row as the stream goes on; a cell that was not evaluated is None."""

    order: Sequence[str]
    cells: list[list[Cell | None]] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing evaluated."""
        self.cells = [[None] * len(self.order) for _ in self.order]

    @classmethod
    def from_json(
        cls, order: Sequence[str], cells: Sequence[Sequence[Mapping[str, Any] | None]]
    ) -> "ScoreMatrix":
        """Return the matrix of `as_json`; ``order`` may go on behind its rows."""
        matrix = cls(order)
        for after, row in enumerate(cells):
            for on, cell in enumerate(row):
                if cell is not None:
                    matrix.record(after, on, Cell(**cell))
        return matrix

    def record(self, after: int, on: int, cell: Cell) -> None:
        """Store the evidence on task ``on`` after task ``after``; a cell is written once."""
        assert self.cells[after][on] is None, f"cell ({after}, {on}) was already evaluated"
        self.cells[after][on] = cell

    def last(self, task: str) -> Cell:
        """Return the newest evidence on a task.

        Raises:
            ValueError: it was never evaluated.
        """
        column = self.order.index(task)
        found = [row[column] for row in self.cells if row[column] is not None]
        cell = found[-1] if found else None
        if cell is None:
            raise ValueError(f"{task!r} was never evaluated")
        return cell

    def scores(self) -> np.ndarray:
        """Return the scores, float64 [T, T], NaN where nothing was evaluated."""
        return np.array(
            [[np.nan if cell is None else cell.score for cell in row] for row in self.cells]
        )

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

    def as_json(self) -> list[list[dict[str, Any] | None]]:
        """Return the cells as JSON values, null where not evaluated."""
        return [[None if cell is None else dict(vars(cell)) for cell in row] for row in self.cells]
