"""What reference runs say of the others: `joint` and `independent` runs of the same stream.

Runs are joined by seed and backbone. T is the number of tasks; a reference's scores are those at
its end, float64 [T].
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from analysis.runs.collect import Run
from analysis.runs.comparable import group
from stream.metrics import (
    NotEvaluatedError,
    forward_transfer_independent,
    gap_to_reference,
    intransigence,
    intransigence_joint_final,
)

Results = dict[str, Any]
Key = tuple[str, int]  # backbone and seed

REFERENCE_METRICS = (
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
        independent: one model a task.
        notes: which runs serve as no reference and why, a line each.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        """Find the references among ``runs``, which are runs of one stream."""
        self.notes: list[str] = []
        self.joint_final = self._find(runs, "joint", prefix=False)
        self.joint_prefix = self._find(runs, "joint", prefix=True)
        self.independent = self._find(runs, "independent")

    def _find(
        self, runs: Sequence[Run], learner: str, *, prefix: bool = False
    ) -> dict[Key, Results]:
        found: dict[Key, Results] = {}
        label_of: dict[Key, str] = {}
        for label, members in group(runs).items():
            for run in members:
                results = run.results
                is_prefix = bool((results["config"].get("learner") or {}).get("prefix"))
                if results["learner"] != learner or is_prefix != prefix:
                    continue
                key = results["backbone"], results["seed"]
                if results["status"] != "complete":
                    self.notes.append(f"no reference, since it is not complete: {run.path}")
                elif key not in found:
                    found[key], label_of[key] = results, label
                elif label_of[key] != label:
                    self.notes.append(f"no reference, since {label_of[key]} comes first: {label}")
        return found

    def values(self, results: Results) -> dict[str, float | None]:
        """Every metric of `REFERENCE_METRICS`; None where a run has no reference or is one.

        The gap to joint is that to the exact ``prefix`` run where there is one: its last model has
        learned all tasks, too.
        """
        joint = self.joint_prefix or self.joint_final
        alone, final = self.independent, self.joint_final
        return {
            "gap_to_joint": _against(results, joint, gap_to_reference),
            "gap_to_independent": _against(results, alone, gap_to_reference),
            "intransigence": _against(results, self.joint_prefix, intransigence, whole=True),
            "intransigence_joint_final": _against(results, final, intransigence_joint_final),
            "fwt_independent": _against(results, alone, forward_transfer_independent),
        }


def _against(
    results: Results,
    references: dict[Key, Results],
    metric: Callable[[np.ndarray, np.ndarray], float | None],
    *,
    whole: bool = False,
) -> float | None:
    """Return the metric against the reference of the same backbone and seed."""
    other = references.get((results["backbone"], results["seed"]))
    if other is None or other["learner"] == results["learner"]:
        return None
    scores = np.array(other["matrix"], dtype=np.float64)
    try:
        return metric(
            np.array(results["matrix"], dtype=np.float64), scores if whole else scores[-1]
        )
    except NotEvaluatedError:
        return None
