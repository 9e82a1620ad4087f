"""Negative flips: examples that were right and became wrong.

A score can hide them: it stays the same if as many examples become right as become wrong.
"""

import base64
import binascii
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from stream.metrics.cells import NotEvaluatedError

Correct = Sequence[Sequence[np.ndarray | None]]
Since = Literal["learned", "previous"]


@lru_cache(maxsize=1 << 14)  # every row of a long stream decodes the earlier rows again
def decode_correct(text: str, examples: int) -> np.ndarray:
    """Return ``cells[i][j].correct`` of results.json as bool [examples], read-only.

    The text is the base64 of numpy.packbits: the first example is the highest bit of the first
    byte. Raises ValueError if ``text`` is not base64, or does not have ``examples`` bits.

    >>> decode_correct("oA==", 4).tolist()
    [True, False, True, False]
    """
    try:
        packed = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    except binascii.Error as error:
        raise ValueError(f"correctness is not base64: {error}") from error
    if len(packed) != (examples + 7) // 8:
        raise ValueError(f"{len(packed)} bytes of correctness do not hold {examples} examples")
    correct = np.unpackbits(packed, count=examples).astype(bool)
    correct.flags.writeable = False
    return correct


def correct_cells(
    texts: Sequence[Sequence[str | None]], examples: Sequence[int]
) -> list[list[np.ndarray | None]]:
    """Return the correctness in ``cells`` of results.json, None for a cell without it.

    Args:
        texts: ``correct`` of the cells of some rows, [rows, T].
        examples: the number of evaluated rows of each task, [T].
    """
    return [
        [
            None if text is None else decode_correct(text, count)
            for text, count in zip(row, examples, strict=True)
        ]
        for row in texts
    ]


def mean_negative_flips(
    correct: Correct, k: int, since: Since = "learned"
) -> tuple[float | None, float | None]:
    """Return the means of NFR and NFI over earlier tasks, or over tasks and rows.

    A flip is an example that was right and is wrong now. NFR is the number of flips divided by all
    n examples (Yan et al. 2021, "Positive-congruent training"). NFI is their number divided by the
    examples that are wrong now (``NegativeFlipImpactMetric`` of awslabs/Renate, after Xie et al.
    2021): the fraction of today's errors that an earlier model did not make.

    Args:
        correct: [T, T] of bool [n]: which examples of task j are right after task i.
        k: the number of rows to read.
        since: ``learned`` compares the last row with the row in which each task was learned, as
            BWT does (for accuracy, BWT counts examples that became right minus flips).
            ``previous`` compares every row with the row before it.

    Returns:
        NFR, or None if no task has correctness (only tasks with classes have it); and NFI, or None
        if no task has an error now.

    >>> right, wrong = np.array([True, True]), np.array([True, False])
    >>> mean_negative_flips([[right, None], [wrong, right]], k=2)
    (0.5, 1.0)
    """
    rates, impacts = [], []
    for old, new in _updates(correct, k, since):
        wrong = ~new
        errors = wrong.sum(axis=1)
        flips = (old & wrong).sum(axis=1)
        rates.append(flips / new.shape[1])
        impacts.append(flips[errors > 0] / errors[errors > 0])
    rate = float(np.concatenate(rates).mean()) if rates else None
    return rate, float(np.concatenate(impacts).mean()) if any(map(len, impacts)) else None


def _updates(correct: Correct, k: int, since: Since) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the (old, new) correctness of each earlier task, bool [updates, n] each."""
    pairs = []
    for j in range(k - 1):
        if correct[j][j] is None:
            continue
        rows = [j, k - 1] if since == "learned" else range(j, k)
        present = [cell for i in rows if (cell := correct[i][j]) is not None]
        if len(present) < len(rows):
            raise NotEvaluatedError(f"flips need the correctness of task {j} in rows {list(rows)}")
        if len({cell.shape for cell in present}) > 1 or not present[0].size:
            raise ValueError(f"flips need the same examples of task {j}, at least one")
        stacked = np.concatenate(present).reshape(len(present), -1)  # np.stack is five times slower
        pairs.append((stacked[:-1], stacked[1:]))
    return pairs
