"""All metrics of one run by name: the keys of ``metrics`` in results.json."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from stream.metrics.cells import NotEvaluatedError, rows_done
from stream.metrics.cost import (
    Flops,
    Storage,
    computational_efficiency,
    model_size_efficiency,
    samples_storage_efficiency,
)
from stream.metrics.flips import Correct, mean_negative_flips
from stream.metrics.retention import forgetting, forgetting_first
from stream.metrics.scores import (
    average_incremental_score,
    average_score,
    learning_score,
    lower_triangle_score,
    retained_score,
)
from stream.metrics.transfer import (
    backward_transfer,
    backward_transfer_diaz,
    backward_transfer_improvement,
    forward_transfer,
    forward_transfer_diaz,
    positive_backward_transfer,
    remembering,
)
from stream.metrics.within_task import (
    ProbePoint,
    learning_curve_area,
    minimum_score,
    windowed_forgetting,
    windowed_plasticity,
    worst_case_score,
)

Value = TypeVar("Value")

WINDOW = 10  # evaluations; WF^10 and WP^10 of De Lange et al. 2023
BETA = 10  # mini-batches; LCA_10 of Chaudhry et al. 2019

# The metrics of the matrix alone.
METRICS: Mapping[str, Callable[[np.ndarray], float | None]] = {
    "average_score": average_score,
    "average_incremental_score": average_incremental_score,
    "a_diaz": lower_triangle_score,
    "retained_score": retained_score,
    "learning_score": learning_score,
    "bwt": backward_transfer,
    "bti": backward_transfer_improvement,
    "bwt_diaz": backward_transfer_diaz,
    "rem": remembering,
    "bwt_plus": positive_backward_transfer,
    "fwt_diaz": forward_transfer_diaz,
    "forgetting": forgetting,
    "forgetting_first": forgetting_first,
}


def summarize(
    matrix: np.ndarray,
    baseline: Sequence[float] | np.ndarray | None = None,
    probe: Sequence[ProbePoint] | None = None,
    correct: Correct | None = None,
    flops: Flops | None = None,
    storage: Storage | None = None,
) -> dict[str, float | None]:
    """Return every metric that one run can have, by name, None where it has no value.

    The scores are taken as higher-is-better. None where the definition has no value (too few
    tasks), and where the run did not evaluate what a metric needs: a run that never scores unseen
    tasks has no FWT, one without a probe no min-ACC. Called by itself, a metric raises instead.

    Args:
        matrix: R, float64 [T, T], NaN where not evaluated.
        baseline: b, the scores of the untrained learner, [T].
        probe: evaluations within tasks, in order of time.
        correct: per-example correctness, T x T of bool [examples] or None.
        flops: operations of each task.
        storage: bytes kept after each task.

    Raises:
        ValueError: arguments that do not fit each other or cannot be (sizes below 0).
    """
    k = rows_done(matrix)
    found = {name: _value(function, matrix) for name, function in METRICS.items()}
    found["fwt"] = _value(forward_transfer, matrix, baseline)
    found["min_acc"] = _value(minimum_score, probe, k)
    found["wc_acc"] = _value(worst_case_score, probe, k)
    found[f"wf_{WINDOW}"] = _value(windowed_forgetting, probe, WINDOW, k)
    found[f"wp_{WINDOW}"] = _value(windowed_plasticity, probe, WINDOW, k)
    found[f"lca_{BETA}"] = _value(learning_curve_area, probe, BETA, k)
    found["nfr"], found["nfi"] = _value(mean_negative_flips, correct, k) or (None, None)
    steps = _value(mean_negative_flips, correct, k, "previous") or (None, None)
    found["nfr_step"], found["nfi_step"] = steps
    found["ms"] = None if storage is None else model_size_efficiency(storage.model)
    found["sss"] = (
        None if storage is None else samples_storage_efficiency(storage.buffer, storage.data)
    )
    found["ce"] = _value(computational_efficiency, flops)
    return found


def _value(function: Callable[..., Value], *arguments: object) -> Value | None:
    """Return the metric; None where an argument or a cell is what this run did not evaluate."""
    if any(argument is None for argument in arguments):
        return None
    try:
        return function(*arguments)
    except NotEvaluatedError:
        return None
