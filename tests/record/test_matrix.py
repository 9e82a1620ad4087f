"""The score matrix: cells are written once, missing ones are NaN and null."""

import json

import numpy as np
import pytest

from stream.record.matrix import Cell, ScoreMatrix


def cell(score: float, digest: str) -> Cell:
    return Cell(score, digest, "measured", 0.1)


@pytest.fixture
def matrix() -> ScoreMatrix:
    filled = ScoreMatrix(["a", "b", "c"])
    for after, row in enumerate((["1"], ["1", "2"], ["1", "9", "3"])):
        for on, digest in enumerate(row):
            filled.record(after, on, cell(0.5, digest))
    return filled


def test_memory_compares_the_last_row_with_the_diagonal(matrix: ScoreMatrix) -> None:
    assert matrix.memory() == (2, 1)
    assert ScoreMatrix(["a", "b"]).memory() == (0, 0)


def test_missing_is_nan_and_null(matrix: ScoreMatrix) -> None:
    assert np.isnan(matrix.scores()[0, 1:]).all()
    assert json.loads(json.dumps(matrix.as_json(), allow_nan=False))[0][1] is None


def test_rows_done_counts_complete_tasks() -> None:
    matrix = ScoreMatrix(["a", "b"])
    matrix.record(0, 0, cell(1.0, "x"))
    assert matrix.rows_done() == 1


def test_a_cell_is_written_once(matrix: ScoreMatrix) -> None:
    with pytest.raises(AssertionError, match="already"):
        matrix.record(0, 0, cell(0.1, "z"))
