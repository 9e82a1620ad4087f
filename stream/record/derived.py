"""What a record derives from its own cells: the matrix of scores, the memory, every metric."""

import math

import numpy as np

from stream.metrics import Evidence, Flops, Storage, correct_cells, summarize
from stream.record.run_record import RunRecord


class Derivation:
    """Keeps what one record derives up to date; rows that are done are decoded once."""

    def __init__(self, data_bytes: int):
        """Start with no row; ``data_bytes`` is the size of all training data of the stream."""
        self._data_bytes = data_bytes
        self._correct: list[list[np.ndarray | None]] = []  # of the rows done

    def update(self, record: RunRecord) -> None:
        """Compute matrix, memory and metrics again from cells, probe, operations and ledger."""
        record.matrix = record.score_matrix.scores_or_none()
        record.memory.tasks_checked, record.memory.tasks_identical = record.score_matrix.memory()
        record.metrics = self._metrics(record)

    def _metrics(self, record: RunRecord) -> dict[str, float | None]:
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
            storage=Storage(
                model=[row.stored_bytes for row in rows],
                buffer=[row.buffer_bytes for row in rows],
                data=self._data_bytes,
            ),
            linear_probes=(linear.learned, linear.final) if linear and linear.final else None,
        )
        found = summarize(record.score_matrix.scores(), evidence)
        for name, value in found.items():
            if value is not None and not math.isfinite(value):
                raise ValueError(f"metric {name} must be finite, got {value}")
        return found

    def _rows_correct(self, record: RunRecord) -> list[list[np.ndarray | None]]:
        """Return which examples are right in each row that is done."""
        examples = [record.data.rows[name][record.split] for name in record.order]
        new = record.cells[len(self._correct) : record.score_matrix.rows_done()]
        texts = [[None if cell is None else cell.correct for cell in row] for row in new]
        self._correct += correct_cells(texts, examples)
        return self._correct
