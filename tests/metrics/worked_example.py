"""Matrices that the tests of metrics share."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

R = np.array(
    [
        [0.90, 0.30, 0.25, 0.20],
        [0.80, 0.85, 0.35, 0.30],
        [0.85, 0.75, 0.80, 0.40],
        [0.70, 0.80, 0.60, 0.90],
    ]
)
B = [0.10, 0.20, 0.15, 0.12]
SCORES = arrays(np.float64, st.integers(2, 6).map(lambda n: (n, n)), elements=st.floats(-1, 1))


def changed(row: int, values: dict[int, float]) -> np.ndarray:
    matrix = R.copy()
    for column, value in values.items():
        matrix[row, column] = value
    return matrix


BEST_ROW_NOT_DIAGONAL = changed(2, {0: 0.95})
ALL_IMPROVE = changed(3, {0: 0.95, 1: 0.90, 2: 0.85})
