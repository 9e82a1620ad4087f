"""Negative flips: examples that were right and became wrong. The score can hide them.

A score that stays the same may be made of as many examples lost as gained.
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


@lru_cache(maxsize=1 << 14)  # every row of a long stream reads the earlier ones again
def decode_correct(text: str, examples: int) -> np.ndarray:
    """Return ``cells[i][j].correct`` of results.json as bool [examples], read-only.

    In example order. Base64 of numpy.packbits: the first example is the highest bit of the first
    byte. ValueError where ``text`` is not base64, or not as long as ``examples`` say.

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
    """Return the correctness in ``cells`` of results.json, None where there is none.

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
    """Return the means of NFR and NFI over earlier tasks, or over tasks and steps.

    Of an example that was right and is wrong now, NFR counts it among all n examples (Yan et al.
    2021, "Positive-congruent training"), NFI among those that are wrong now
    (``NegativeFlipImpactMetric`` of awslabs/Renate, after Xie et al. 2021): the part of today's
    errors that an earlier model did not make.

    Args:
        correct: [T, T] of bool [n] each: which examples of task j are right after task i.
        k: rows that are read.
        since: ``learned``: from right after learning a task to the last row, as BWT; for accuracy,
            BWT of a task is its examples gained less those lost. ``previous``: at every step, from
            the row before it.

    Returns:
        None for NFR where no task has correctness (those without classes have none), and for NFI
        where none has an error now.

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
    """Return (old, new) of each earlier task, bool [updates, n] each."""
    pairs = []
    for j in range(k - 1):
        if correct[j][j] is None:
            continue
        rows = [j, k - 1] if since == "learned" else range(j, k)
        found = [cell for i in rows if (cell := correct[i][j]) is not None]
        if len(found) < len(rows):
            raise NotEvaluatedError(f"flips need the correctness of task {j} in rows {list(rows)}")
        if len({cell.shape for cell in found}) > 1 or not found[0].size:
            raise ValueError(f"flips need the same examples of task {j}, at least one")
        stacked = np.concatenate(found).reshape(len(found), -1)  # np.stack takes five times as long
        pairs.append((stacked[:-1], stacked[1:]))
    return pairs
