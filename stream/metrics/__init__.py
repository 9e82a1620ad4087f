"""Continual-learning metrics: pure functions of the score matrix R, float64 [T, T].

R[i, j] is the score on task j after learning task i; NaN means not evaluated. k is the number of
tasks learned so far. Every function returns None if its definition has no value (never 0, -1 or
NaN), never changes its arguments, and raises ValueError if a cell that it needs was not evaluated.
Scores of tasks with different metrics are averaged without conversion, so the mean is called
"score", not "accuracy". docs/metrics.md lists all metrics.
"""

from stream.metrics.catalogue import BETA, METRICS, WINDOW, Evidence, summarize
from stream.metrics.cells import Direction, NotEvaluatedError, rows_done
from stream.metrics.cost import (
    Flops,
    Storage,
    computational_efficiency,
    model_size_efficiency,
    samples_storage_efficiency,
)
from stream.metrics.flips import (
    correct_cells,
    decode_correct,
    mean_negative_flips,
)
from stream.metrics.references import (
    forgetting_rate,
    forward_transfer_independent,
    gap_to_reference,
    intransigence,
    intransigence_joint_final,
    normalized_score,
    ratio_to_reference,
    transfer_from_independent,
)
from stream.metrics.representation import head_misalignment, representation_forgetting
from stream.metrics.retention import forgetting, forgetting_by_task, forgetting_first
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
    matrix_points,
    minimum_score,
    probe_points,
    score_curve,
    windowed_forgetting,
    windowed_plasticity,
    worst_case_score,
)

__all__ = [
    "BETA",
    "METRICS",
    "WINDOW",
    "Direction",
    "Evidence",
    "Flops",
    "NotEvaluatedError",
    "ProbePoint",
    "Storage",
    "average_incremental_score",
    "average_score",
    "backward_transfer",
    "backward_transfer_diaz",
    "backward_transfer_improvement",
    "computational_efficiency",
    "correct_cells",
    "decode_correct",
    "forgetting",
    "forgetting_by_task",
    "forgetting_first",
    "forgetting_rate",
    "forward_transfer",
    "forward_transfer_diaz",
    "forward_transfer_independent",
    "gap_to_reference",
    "head_misalignment",
    "intransigence",
    "intransigence_joint_final",
    "learning_curve_area",
    "learning_score",
    "lower_triangle_score",
    "matrix_points",
    "mean_negative_flips",
    "minimum_score",
    "model_size_efficiency",
    "normalized_score",
    "positive_backward_transfer",
    "probe_points",
    "ratio_to_reference",
    "remembering",
    "representation_forgetting",
    "retained_score",
    "rows_done",
    "samples_storage_efficiency",
    "score_curve",
    "summarize",
    "transfer_from_independent",
    "windowed_forgetting",
    "windowed_plasticity",
    "worst_case_score",
]
