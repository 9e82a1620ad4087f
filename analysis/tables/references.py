"""What reference runs say of the others: `joint` and `independent` runs of the same stream.

Runs are joined by seed and backbone. T is the number of tasks; a reference's scores are those at
its end, float64 [T].
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from analysis.runs.collect import RecordedRun
from analysis.runs.names import group
from analysis.runs.values import Value, setting
from stream.metrics import (
    NotEvaluatedError,
    forward_transfer_independent,
    gap_to_reference,
    intransigence,
    intransigence_joint_final,
    normalized_score,
)
from stream.record.run_record import RunRecord

Key = tuple[str, int]  # backbone and seed

REFERENCE_METRICS = (
    "normalized_score",
    "gap_to_joint",
    "gap_to_independent",
    "intransigence",
    "intransigence_joint_final",
    "fwt_independent",
)


class References:
    """The complete `joint` and `independent` runs among comparable runs, by backbone and seed.

    Attributes:
        joint_final: `joint` trained once on all tasks.
        joint_prefix: `joint` with ``learner.prefix``, trained anew on tasks 1..k at each k.
        independent: one model per task.
        notes: which runs serve as no reference and why, a line each.
    """

    def __init__(self, runs: Sequence[RecordedRun]) -> None:
        """Find the references among ``runs``, which are runs of one stream."""
        self.notes: list[str] = []
        self.joint_final = self._find(runs, "joint", prefix=False)
        self.joint_prefix = self._find(runs, "joint", prefix=True)
        self.independent = self._find(runs, "independent")

    def _find(
        self, runs: Sequence[RecordedRun], learner: str, *, prefix: bool = False
    ) -> dict[Key, RunRecord]:
        found: dict[Key, RunRecord] = {}
        label_of: dict[Key, str] = {}
        for label, members in group(runs).items():
            for run in members:
                record = run.record
                is_prefix = bool(setting(record, "learner.prefix"))
                if record.learner != learner or is_prefix != prefix:
                    continue
                key = record.backbone, record.seed
                if record.status != "complete":
                    self.notes.append(f"no reference, since it is not complete: {run.path}")
                elif key not in found:
                    found[key], label_of[key] = record, label
                elif label_of[key] != label:
                    self.notes.append(f"no reference, since {label_of[key]} comes first: {label}")
        return found

    def values(self, record: RunRecord) -> dict[str, float | None]:
        """Every metric of `REFERENCE_METRICS`; None where a run has no reference or is one.

        The gap to joint is that to the exact ``prefix`` run where there is one: its last model has
        learned all tasks, too.
        """
        joint = self.joint_prefix or self.joint_final
        alone, final = self.independent, self.joint_final
        floor = record.majority or [None] * len(record.order)
        return {
            "normalized_score": _against(record, alone, partial(_normalized, floor)),
            "gap_to_joint": _against(record, joint, gap_to_reference),
            "gap_to_independent": _against(record, alone, gap_to_reference),
            "intransigence": _against(record, self.joint_prefix, intransigence, whole=True),
            "intransigence_joint_final": _against(record, final, intransigence_joint_final),
            "fwt_independent": _against(record, alone, forward_transfer_independent),
        }

    def reader(self, name: str) -> Value:
        """Return how to read one of `REFERENCE_METRICS` of a run."""
        return lambda record: self.values(record)[name]


def _normalized(
    floor: Sequence[float | None], matrix: np.ndarray, ceiling: np.ndarray
) -> float | None:
    """Return `normalized_score`, with None where a task has no floor."""
    return normalized_score(matrix, np.array(floor, dtype=np.float64), ceiling)


def _against(
    record: RunRecord,
    references: dict[Key, RunRecord],
    metric: Callable[[np.ndarray, np.ndarray], float | None],
    *,
    whole: bool = False,
) -> float | None:
    """Return a metric against the reference of the same backbone and seed.

    Args:
        record: the run.
        references: by backbone and seed.
        metric: of the run's matrix and the reference's scores.
        whole: whether the reference's whole matrix counts, instead of its last row.
    """
    other = references.get((record.backbone, record.seed))
    if other is None or other.learner == record.learner:
        return None
    try:
        return metric(record.scores, other.scores if whole else other.scores[-1])
    except NotEvaluatedError:
        return None
