"""What a report is about: methods, the runs that each stands for, and means over their seeds.

T is the number of tasks, n that of the runs of a method. Scores are fractions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean, stdev
from typing import Any

import numpy as np

from analysis.collect import Run
from analysis.compare import (
    IncomparableRunsError,
    check_comparable,
    group,
    num_learned,
    repetitions,
    trained_fraction,
)
from stream.metrics import (
    NotEvaluatedError,
    forward_transfer_independent,
    gap_to_reference,
    intransigence,
    intransigence_joint_final,
)
from stream.plots import score_matrix
from stream.wording import DASH

Results = dict[str, Any]
REFERENCES = ("joint", "independent", "majority", "tfidf", "frozen")


@dataclass(frozen=True)
class Estimate:
    """Mean and sample deviation (n - 1) over the n runs that have the value; NaN where unknown."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Estimate":
        """Estimate from values, of which None is not counted."""
        known = [value for value in values if value is not None]
        spread = stdev(known) if len(known) > 1 else float("nan")
        return cls(mean(known) if known else float("nan"), spread, len(known))

    def show(self, number: Callable[[float | None], str], expected: int) -> str:
        """Return mean ± sd; with n where it is not that of the method."""
        if not self.n:
            return DASH
        text = number(self.mean) + (f" ± {number(self.sd)}" if self.n > 1 else "")
        return text if self.n == expected else f"{text} (n={self.n})"


@dataclass(frozen=True)
class Method:
    """Runs of one learner with equal settings.

    Attributes:
        runs: all of them, in order of seed.
        counted: those that means are taken of: complete, one a seed; the partial run that got
            furthest where no run is complete.
    """

    index: int
    label: str
    runs: Sequence[Run]
    counted: Sequence[Run]

    @property
    def learner(self) -> str:
        """The learner's name."""
        return self.runs[0].results["learner"]

    @property
    def reference(self) -> bool:
        """Whether the learner is there to compare with."""
        return self.learner in REFERENCES

    @property
    def partial(self) -> int | None:
        """Tasks learned by the counted run where it is not complete."""
        results = self.counted[0].results
        return None if results["status"] == "complete" else num_learned(results)

    @cached_property
    def matrices(self) -> np.ndarray:
        """Scores of the counted runs, float64 [n, T, T], NaN where not evaluated."""
        return np.array([score_matrix(run.results) for run in self.counted])

    @cached_property
    def matrix(self) -> np.ndarray:
        """Mean over seeds, float64 [T, T]; NaN where a counted run has no score."""
        return self.matrices.mean(axis=0)

    def estimate(self, value: Callable[[Results], float | None]) -> Estimate:
        """Mean and deviation of something in results.json."""
        return Estimate.of(value(run.results) for run in self.counted)


def build_methods(runs: Sequence[Run]) -> list[Method]:
    """Group comparable runs by method; references last, else in order of appearance."""
    groups = sorted(
        group(runs).items(), key=lambda item: item[1][0].results["learner"] in REFERENCES
    )
    methods = []
    for index, (label, members) in enumerate(groups):
        furthest = max(members, key=lambda run: num_learned(run.results))
        methods.append(Method(index, label, members, repetitions(members) or [furthest]))
    return methods


def largest_comparable(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Split runs into the largest set that saw one stream, and a line for each of the others.

    Of sets of equal size the one that was named first is taken.
    """
    sets: list[list[Run]] = []
    for run in runs:
        for members in sets:
            if _difference(members[0], run) is None:
                members.append(run)
                break
        else:
            sets.append([run])
    largest = max(sets, key=len)
    chosen = {id(run) for run in largest}
    rest = [run for run in runs if id(run) not in chosen]
    return largest, [f"{run.path}: left out: {_difference(largest[0], run)}" for run in rest]


def _difference(one: Run, other: Run) -> str | None:
    try:
        check_comparable([one, other])
    except IncomparableRunsError as error:
        return str(error)
    return None


def metric(name: str) -> Callable[[Results], float | None]:
    """Return how to read one of the recorded metrics; None where the run has none."""
    return lambda results: results["metrics"].get(name)


def train_s(results: Results) -> float | None:
    """Seconds of training."""
    return results["timing"]["train_s"]


def train_flops(results: Results) -> float | None:
    """Floating-point operations of training, where they were counted."""
    return sum(results["flops"]["train"]) if results.get("flops") else None


def multiple(results: Results) -> float | None:
    """All stored parameters as a multiple of the base model's."""
    return results["ledger"]["total_multiple"]


trained = trained_fraction


class References:
    """What the reference runs among the methods say of a run with the same seed.

    The first method of a learner counts. Scores are those at the end, float64 [T]; ``joint`` with
    ``prefix`` gives the exact intransigence, another joint run one labelled ``joint_final``.
    """

    def __init__(self, methods: Sequence[Method]) -> None:
        complete = [method for method in methods if method.partial is None]
        self.joint = next((m for m in complete if m.learner == "joint"), None)
        self.independent = next((m for m in complete if m.learner == "independent"), None)
        self.majority = next((m for m in complete if m.learner == "majority"), None)
        self.prefix = next((m for m in complete if m.learner == "joint" and _prefix(m)), None)

    def columns(self) -> list[tuple[str, str, Callable[[Results], float | None]]]:
        """Return (name, explanation, value of a run) of each metric that has its reference."""
        found = []
        for name, method in (("joint", self.joint), ("independent", self.independent)):
            if method is not None:
                text = f"score at the end of {method.label} minus the average score, equal seeds"
                found.append((f"gap to {name} %", text, _against(method, gap_to_reference, _last)))
        if self.prefix is not None:
            text = f"Chaudhry et al. 2018, against {self.prefix.label}, equal seeds"
            value = _against(self.prefix, intransigence, _whole)
            found.append(("intransigence %", text, value))
        elif self.joint is not None:
            text = f"against one joint model of all tasks, {self.joint.label}, equal seeds"
            value = _against(self.joint, intransigence_joint_final, _last)
            found.append(("intransigence (joint_final) %", text, value))
        if self.independent is not None:
            text = f"score when learned minus that of {self.independent.label}, equal seeds"
            value = _against(self.independent, forward_transfer_independent, _last)
            found.append(("FWT_ind %", text, value))
        return found


def _prefix(method: Method) -> bool:
    return bool(method.runs[0].results["config"].get("learner", {}).get("prefix"))


def _last(matrix: np.ndarray) -> np.ndarray:
    return matrix[-1]


def _whole(matrix: np.ndarray) -> np.ndarray:
    return matrix


def _against(
    method: Method,
    function: Callable[[np.ndarray, np.ndarray], float | None],
    part: Callable[[np.ndarray], np.ndarray],
) -> Callable[[Results], float | None]:
    """Return the metric of a run against the reference run of its seed; None without one."""
    scores = {run.results["seed"]: part(score_matrix(run.results)) for run in method.counted}

    def value(results: Results) -> float | None:
        if results["seed"] not in scores or results["learner"] == method.learner:
            return None
        try:
            return function(score_matrix(results), scores[results["seed"]])
        except NotEvaluatedError:
            return None

    return value
