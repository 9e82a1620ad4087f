"""Negative flips: examples that were right and became wrong. The score can hide them.

A score that stays the same may be made of as many examples lost as gained.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

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
    cells: Sequence[Sequence[Mapping[str, Any] | None]], examples: Sequence[int]
) -> list[list[np.ndarray | None]]:
    """Return the correctness in ``cells`` of results.json, None where there is none.

    ``examples`` [T] is the number of evaluated rows of each task.
    """
    return [
        [_decode_cell(cell, count) for cell, count in zip(row, examples, strict=True)]
        for row in cells
    ]


def negative_flip_rate(old: np.ndarray, new: np.ndarray) -> float:
    """NFR = #(old right and new wrong) / n, of the same n examples; bool [n] each.

    Yan et al. 2021 ("Positive-congruent training").

    >>> negative_flip_rate(np.array([True, True]), np.array([True, False]))
    0.5
    """
    return float((_compared(old, new)[0] & ~new).mean())


def negative_flip_impact(old: np.ndarray, new: np.ndarray) -> float | None:
    """NFI = #(old right and new wrong) / #(new wrong); None where nothing is wrong.

    ``NegativeFlipImpactMetric`` of awslabs/Renate, after Xie et al. 2021: the part of today's
    errors that an earlier model did not make.

    >>> negative_flip_impact(np.array([True, True, False]), np.array([True, False, False]))
    0.5
    """
    wrong = ~_compared(old, new)[1]
    return float((old & wrong).sum() / wrong.sum()) if wrong.any() else None


def mean_negative_flip_rate(correct: Correct, k: int, since: Since = "learned") -> float | None:
    """Mean NFR over earlier tasks, or over tasks and steps; None where no task has correctness.

    ``since="learned"``: from right after learning a task to the last of the ``k`` rows, as BWT;
    for accuracy, BWT of a task is its examples gained less those lost. ``since="previous"``: at
    every step, from the row before it. Tasks without classes have no correctness and are left out.

    >>> right, wrong = np.array([True, True]), np.array([True, False])
    >>> mean_negative_flip_rate([[right, None], [wrong, right]], k=2)
    0.5
    """
    return mean_negative_flips(correct, k, since)[0]


def mean_negative_flip_impact(correct: Correct, k: int, since: Since = "learned") -> float | None:
    """Mean NFI over the same pairs as NFR, without those that have no error now.

    >>> right, wrong = np.array([True, True]), np.array([True, False])
    >>> mean_negative_flip_impact([[right, None], [wrong, right]], k=2)
    1.0
    """
    return mean_negative_flips(correct, k, since)[1]


def mean_negative_flips(
    correct: Correct, k: int, since: Since = "learned"
) -> tuple[float | None, float | None]:
    """Return (mean NFR, mean NFI): together they take half the time of one after the other."""
    rates, impacts = [], []
    for old, new in _updates(correct, k, since):
        wrong = ~new
        errors = wrong.sum(axis=1)
        flips = (old & wrong).sum(axis=1)
        rates.append(flips / new.shape[1])
        impacts.append(flips[errors > 0] / errors[errors > 0])
    rate = float(np.concatenate(rates).mean()) if rates else None
    return rate, float(np.concatenate(impacts).mean()) if any(map(len, impacts)) else None


def _decode_cell(cell: Mapping[str, Any] | None, examples: int) -> np.ndarray | None:
    """Return the correctness of one cell, None for a cell without."""
    text = None if cell is None else cell.get("correct")
    return None if text is None else decode_correct(text, examples)


def _compared(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both, which must be of the same examples."""
    if old.shape != new.shape or not old.size:
        raise ValueError(f"flips need the same examples: {old.shape} against {new.shape}")
    return old, new


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
