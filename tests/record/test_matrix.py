"""The score matrix: cells are written once, missing ones are NaN and None."""

import math

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


def test_missing_is_nan(matrix: ScoreMatrix) -> None:
    assert np.isnan(matrix.scores()[0, 1:]).all()
    assert matrix.scores()[2].tolist() == [0.5, 0.5, 0.5]


def test_cells_are_shared_with_whoever_gave_them() -> None:
    cells = [[None, None], [None, None]]
    ScoreMatrix(["a", "b"], cells).record(1, 0, cell(0.5, "x"))
    assert cells == [[None, None], [cell(0.5, "x"), None]]


def test_the_last_cell_of_a_task_is_the_newest(matrix: ScoreMatrix) -> None:
    assert matrix.last("b").digest == "9"
    with pytest.raises(ValueError, match="'b' was never evaluated"):
        ScoreMatrix(["a", "b"]).last("b")


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_is_finite(score: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        cell(score, "x")


def test_rows_done_counts_complete_tasks() -> None:
    matrix = ScoreMatrix(["a", "b"])
    matrix.record(0, 0, cell(1.0, "x"))
    assert matrix.rows_done() == 1


def test_a_cell_is_written_once(matrix: ScoreMatrix) -> None:
    with pytest.raises(AssertionError, match="already"):
        matrix.record(0, 0, cell(0.1, "z"))
