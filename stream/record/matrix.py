"""The score matrix: cell (i, j) is the evidence on task j after learning task i (0-based)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from stream.atomic_io import JsonText, json_text, list_text


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


class _Row:
    """A row as JSON, made once: most rows of a long stream are done and change no more."""

    def __init__(self, cells: Sequence[Cell | None]):
        self.cells = [None if cell is None else dict(vars(cell)) for cell in cells]
        self.scores = [None if cell is None else cell.score for cell in cells]

    @cached_property
    def cells_text(self) -> JsonText:
        """The cells as text."""
        return json_text(self.cells)

    @cached_property
    def scores_text(self) -> JsonText:
        """The scores as text."""
        return json_text(self.scores)


@dataclass
class ScoreMatrix:
    """T x T cells, row by row as the stream goes on; a cell that was not evaluated is None."""

    order: Sequence[str]
    cells: list[list[Cell | None]] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing evaluated."""
        self.cells = [[None] * len(self.order) for _ in self.order]
        self._scores = np.full((len(self.order), len(self.order)), np.nan)
        self._rows: dict[int, _Row] = {}
        self._last: dict[str, Cell] = {}

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
        self._scores[after, on] = cell.score
        self._last[self.order[on]] = cell
        self._rows.pop(after, None)

    def last(self, task: str) -> Cell:
        """Return the newest evidence on a task.

        Raises:
            ValueError: it was never evaluated.
        """
        if task not in self._last:
            raise ValueError(f"{task!r} was never evaluated")
        return self._last[task]

    def scores(self) -> np.ndarray:
        """Return the scores, float64 [T, T], NaN where nothing was evaluated."""
        return self._scores.copy()

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
        """Return the cells as JSON values, null where not evaluated; not to be changed."""
        return [row.cells for row in self._as_rows()]

    def scores_as_json(self) -> list[list[float | None]]:
        """Return the scores as JSON values, null where not evaluated; not to be changed."""
        return [row.scores for row in self._as_rows()]

    def texts(self) -> tuple[JsonText, JsonText]:
        """Return `as_json` and `scores_as_json` as text."""
        rows = self._as_rows()
        return list_text(r.cells_text for r in rows), list_text(r.scores_text for r in rows)

    def _as_rows(self) -> list[_Row]:
        """Return the rows as JSON."""
        for after, cells in enumerate(self.cells):
            if after not in self._rows:
                self._rows[after] = _Row(cells)
        return [self._rows[after] for after in range(len(self.cells))]
