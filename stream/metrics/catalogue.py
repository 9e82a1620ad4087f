"""The catalogue of all metrics of one run: the keys of ``metrics`` in results.json."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

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
from stream.metrics.representation import head_misalignment, representation_forgetting
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

WINDOW = 10  # evaluations: WF^10 and WP^10 of De Lange et al. 2023
BETA = 10  # mini-batches: LCA_10 of Chaudhry et al. 2019

# The metrics that need nothing but the matrix.
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


class Evidence(NamedTuple):
    """What a run measured beside the matrix; None where it did not.

    Attributes:
        baseline: b, the scores of the untrained learner, [T].
        probe: evaluations within tasks, in order of time.
        correct: the correctness of each example, T x T of bool [examples] or None.
        flops: the floating-point operations of each task.
        storage: the bytes that are stored after each task.
        linear_probes: the scores of heads trained anew [T], right after each task and at the end.
    """

    baseline: Sequence[float] | np.ndarray | None = None
    probe: Sequence[ProbePoint] | None = None
    correct: Correct | None = None
    flops: Flops | None = None
    storage: Storage | None = None
    linear_probes: tuple[Sequence[float | None], Sequence[float | None]] | None = None


NOTHING = Evidence()


def summarize(matrix: np.ndarray, evidence: Evidence = NOTHING) -> dict[str, float | None]:
    """Return every metric that one run can have, by name.

    A higher score is taken as better. A metric is None if its definition has no value (too few
    tasks), or if the run did not evaluate what the metric needs: without scores of unseen tasks
    there is no FWT, without a probe no min-ACC. (When it is called directly, a metric raises
    instead.)

    Args:
        matrix: R, float64 [T, T], NaN where not evaluated.
        evidence: what else was measured.

    Raises:
        ValueError: arguments do not fit each other, or are impossible (sizes below 0).
    """
    baseline, probe, correct, flops, storage, linear_probes = evidence
    k = rows_done(matrix)
    values = {name: _value(function, matrix) for name, function in METRICS.items()}
    values["fwt"] = _value(forward_transfer, matrix, baseline)
    values["min_acc"] = _value(minimum_score, probe, k)
    values["wc_acc"] = _value(worst_case_score, probe, k)
    values[f"wf_{WINDOW}"] = _value(windowed_forgetting, probe, WINDOW, k)
    values[f"wp_{WINDOW}"] = _value(windowed_plasticity, probe, WINDOW, k)
    values[f"lca_{BETA}"] = _value(learning_curve_area, probe, BETA, k)
    values["nfr"], values["nfi"] = _value(mean_negative_flips, correct, k) or (None, None)
    steps = _value(mean_negative_flips, correct, k, "previous") or (None, None)
    values["nfr_step"], values["nfi_step"] = steps
    learned, final = linear_probes or (None, None)
    values["representation_forgetting"] = _value(representation_forgetting, learned, final)
    values["head_misalignment"] = _value(head_misalignment, matrix, final)
    values["ms"] = None if storage is None else model_size_efficiency(storage.model)
    values["sss"] = (
        None if storage is None else samples_storage_efficiency(storage.buffer, storage.data)
    )
    values["ce"] = _value(computational_efficiency, flops)
    return values


def _value(function: Callable[..., Value], *arguments: object) -> Value | None:
    """Return the metric, or None if an argument or a cell that it needs was not evaluated."""
    if any(argument is None for argument in arguments):
        return None
    try:
        return function(*arguments)
    except NotEvaluatedError:
        return None
