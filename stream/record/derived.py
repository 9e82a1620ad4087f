"""What a record derives from its own cells: the matrix of scores, the memory, every metric."""

import math
from typing import TYPE_CHECKING

import numpy as np

from stream.metrics import Evidence, Flops, Storage, correct_cells, summarize

if TYPE_CHECKING:
    from stream.record.run_record import RunRecord


WHOLE_UP_TO = 64
"""Rows up to which every metric is computed after each row; the time that takes grows with T^2."""


class Derivation:
    """Keeps what one record derives up to date, at a cost that does not grow with its rows."""

    def __init__(self) -> None:
        """Start with no row."""
        self._correct: list[list[np.ndarray | None]] = []  # of the rows that were decoded
        self._rows = 0
        self._learned = self._last = self._best = np.empty(0)

    def update(self, record: "RunRecord", *, whole: bool = True) -> None:
        """Bring matrix, memory and metrics up to date with the rows.

        Args:
            record: the same in every call.
            whole: compute every metric. Otherwise a long stream gets `CORE_METRICS` alone, but for
                its last row; where every cell is measured for every row, that costs more anyway.
        """
        done = record.score_matrix.rows_done()
        for index in range(self._rows, done):
            self._note(record, index)
        self._rows = done
        record.memory.tasks_checked, record.memory.tasks_identical = record.score_matrix.memory()
        whole |= done <= WHOLE_UP_TO or done == len(record.order) or record.scenario != "known"
        record.metrics = self._metrics(record) if whole else self._core()

    def _note(self, record: "RunRecord", index: int) -> None:
        """Take in one row."""
        row = [None if cell is None else cell.score for cell in record.cells[index]]
        record.matrix[index] = row
        scores = np.array(row, dtype=np.float64)  # None becomes NaN
        before = self._last[:index]
        self._best = np.maximum(np.append(self._best, -np.inf)[:index], before)
        self._learned = np.append(self._learned, scores[index])
        self._last = scores[: index + 1]

    def _core(self) -> dict[str, float | None]:
        """Return the metrics of `CORE_METRICS`; there are two rows at least."""
        last, learned = self._last, self._learned
        values = {
            "average_score": last.mean(),
            "learning_score": learned.mean(),
            "bwt": (last - learned)[:-1].mean(),
            "forgetting": (self._best - last[:-1]).mean(),
        }
        return {name: None if np.isnan(value) else float(value) for name, value in values.items()}

    def _metrics(self, record: "RunRecord") -> dict[str, float | None]:
        """Return every metric that this run can have.

        Raises:
            ValueError: one is not finite; in JSON it would silently become null.
        """
        rows, flops, linear = record.ledger.tasks, record.flops, record.linear_probe
        evidence = Evidence(
            baseline=record.baseline,
            probe=None if record.probe is None else record.probe.points,
            correct=self._rows_correct(record),
            flops=None if flops is None else Flops(flops.train, flops.one_pass, flops.epochs),
            storage=None
            if record.train_bytes is None
            else Storage(
                model=[row.stored_bytes for row in rows],
                buffer=[row.buffer_bytes for row in rows],
                data=record.train_bytes,
            ),
            linear_probes=(linear.learned, linear.final) if linear and linear.final else None,
            one_head=record.scenario == "shared_head",
            routed=record.score_matrix.routed() if record.routing is not None else None,
        )
        found = summarize(record.score_matrix.scores(), evidence)
        for name, value in found.items():
            if value is not None and not math.isfinite(value):
                raise ValueError(f"metric {name} must be finite, got {value}")
        return found

    def _rows_correct(self, record: "RunRecord") -> list[list[np.ndarray | None]]:
        """Return which examples are right in each row that is done."""
        examples = [record.data.rows[name][record.split] for name in record.order]
        new = record.cells[len(self._correct) : record.score_matrix.rows_done()]
        texts = [[None if cell is None else cell.correct for cell in row] for row in new]
        self._correct += correct_cells(texts, examples)
        return self._correct
