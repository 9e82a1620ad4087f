"""The same matrices through other people's functions, run once; their numbers stand here.

How: the packages from PyPI, in a folder of their own (`pip install --no-deps --target`), their
functions called on these matrices (continuum's on predictions made up to have these accuracies,
1,000 a cell). Renate is not on PyPI: its functions as of commit 1a68916 were typed in and run.
docs/metrics.md tells where a library follows its own rule instead.
"""

import numpy as np
import pytest

from stream.metrics import (
    average_incremental_score,
    average_score,
    backward_transfer,
    forgetting,
    forgetting_first,
    forgetting_rate,
    forward_transfer,
    forward_transfer_diaz,
    forward_transfer_independent,
    intransigence_joint_final,
    learning_score,
    lower_triangle_score,
)
from tests.metrics.worked_example import ALL_IMPROVE, BEST_ROW_NOT_DIAGONAL, B, R


def drawn(tasks: int) -> np.ndarray:
    return np.random.default_rng(tasks).integers(0, 1001, (tasks, tasks)) / 1000


MATRICES = {
    "worked": R,
    "best row": BEST_ROW_NOT_DIAGONAL,
    "all improve": ALL_IMPROVE,
    "two tasks": np.array([[0.9, 0.3], [0.5, 0.7]]),
    "drawn 4": drawn(4),
    "drawn 6": drawn(6),
}
BASELINES = {4: B, 2: [0.25] * 2, 6: [0.25] * 6}


def seen_only(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix of a run that never scores unseen tasks."""
    return np.where(np.tri(len(matrix), dtype=bool), matrix, np.nan)


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        # continuum 1.2.7, accuracy_A; avalanche-lib 0.6.0, CLEARMetric.accuracy says the same.
        (lower_triangle_score, [0.795, 0.805, 0.855, 0.7, 0.6172, 0.485523809524]),
        # cl-metrics-nll 1.0.0, CLMetrics.backward_transfer; gmumcl 1.1.0,
        # AccuracyMatrix.backward_transfer; Renate 1a68916, backward_transfer; clarena 1.1.0, last
        # row of evaluate_and_save_bwt_to_csv (it writes none for two tasks).
        (backward_transfer, [-0.15, -0.15, 0.05, -0.4, 0.00766666666667, -0.0386]),
        # avalanche-lib 0.6.0, evaluation.functional.forgetting, last row, mean of the old tasks.
        (forgetting_first, [0.15, 0.15, -0.05, 0.4, -0.00766666666667, 0.0386]),
        # Renate 1a68916, forgetting, on lower triangles (it looks for the best above them, too).
        (forgetting, [0.15, 0.166666666667, -0.05, 0.4, 0.0636666666667, 0.4078]),
        # gmumcl 1.1.0, AccuracyMatrix.average_incremental_accuracy.
        (
            average_incremental_score,
            [0.81875, 0.827083333333, 0.85625, 0.75, 0.669916666667, 0.490066666667],
        ),
        # cl-metrics-nll 1.0.0, plasticity_index; avalanche-lib 0.6.0, CLEARMetric.in_domain.
        (learning_score, [0.8625, 0.8625, 0.8625, 0.8, 0.54025, 0.403166666667]),
        # cl-gym 1.0.3, PerformanceMetric.compute_final; cl-metrics-nll 1.0.0, average_accuracy.
        (average_score, [0.75, 0.75, 0.9, 0.6, 0.546, 0.371]),
    ],
)
def test_scores_of_seen_tasks(function, numbers: list[float]) -> None:
    found = [function(seen_only(matrix)) for matrix in MATRICES.values()]
    assert found == pytest.approx(numbers, abs=1e-12)


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        # Renate 1a68916, forward_transfer, with accuracy_init as the baseline.
        (
            lambda matrix: forward_transfer(matrix, BASELINES[len(matrix)]),
            [0.193333333333, 0.193333333333, 0.193333333333, 0.05, 0.606666666667, 0.3562],
        ),
        # avalanche-lib 0.6.0, CLEARMetric.forward_transfer: the mean of the upper triangle.
        (forward_transfer_diaz, [0.3, 0.3, 0.3, 0.3, 0.627166666667, 0.614533333333]),
        # clarena 1.1.0, evaluate_and_save_fwt_to_csv, independent scores evenly from .6 to .9.
        (
            lambda matrix: forward_transfer_independent(matrix, np.linspace(0.6, 0.9, len(matrix))),
            [0.05, 0.05, 0.05, -0.2, -0.322, -0.3852],
        ),
        # clarena 1.1.0 with pandas 2.3.3, evaluate_and_save_fr_to_csv, joint scores of .95.
        (
            lambda matrix: forgetting_rate(matrix, [0.95] * len(matrix), BASELINES[len(matrix)])[0],
            [
                *(-0.247964652729, -0.247964652729, -0.0629769076305),
                *(-0.5, -0.493380773092, -0.827142857143),
            ],
        ),
        # cl-metrics-nll 1.0.0, intransigence, references of .95.
        (
            lambda matrix: intransigence_joint_final(matrix, [0.95] * len(matrix)),
            [0.0875, 0.0875, 0.0875, 0.15, 0.40975, 0.546833333333],
        ),
    ],
)
def test_scores_of_unseen_tasks_and_references(function, numbers: list[float]) -> None:
    found = [function(matrix) for matrix in MATRICES.values()]
    assert found == pytest.approx(numbers, abs=1e-11)


def test_cl_metrics_where_installed() -> None:
    """`pip install --no-deps cl-metrics-nll==1.0.0`; not a dependency."""
    cl_metrics = pytest.importorskip("cl_metrics")
    for tasks in range(2, 9):
        theirs = cl_metrics.CLMetrics(drawn(tasks))
        assert backward_transfer(drawn(tasks)) == pytest.approx(theirs.backward_transfer())
        assert learning_score(drawn(tasks)) == pytest.approx(theirs.plasticity_index())
        zeros = forward_transfer(drawn(tasks), [0.0] * tasks)  # it knows no other baseline
        assert zeros == pytest.approx(theirs.forward_transfer())


def test_gmumcl_where_installed() -> None:
    """`pip install --no-deps gmumcl==1.1.0`; not a dependency. Its forgetting is never negative."""
    theirs = pytest.importorskip("gmumcl.cl.metrics")
    for tasks in range(2, 9):
        rows = [row[: i + 1] for i, row in enumerate(drawn(tasks).tolist())]
        other = theirs.AccuracyMatrix(rows=rows)
        assert backward_transfer(drawn(tasks)) == pytest.approx(other.backward_transfer())
        mean = average_incremental_score(drawn(tasks))
        assert mean == pytest.approx(other.average_incremental_accuracy())
