"""What a report is about: methods, the runs that each stands for, and means over their seeds.

T is the number of tasks, n that of the counted runs of a method. Scores are fractions.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean, stdev
from typing import Any

import numpy as np

from analysis.text import visible
from analysis.runs.collect import Run
from analysis.runs.comparable import group, num_learned, repetitions, variant_labels
from stream.formatting import DASH
from stream.report.plots import score_matrix

Results = dict[str, Any]
Value = Callable[[Results], float | None]

REFERENCES = ("joint", "pals", "independent", "majority", "tfidf", "frozen")
LONGEST_LABEL = 60  # characters


@dataclass(frozen=True)
class Estimate:
    """Mean and sample deviation (n - 1) over the n runs that have the value; NaN where unknown."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Estimate":
        """Estimate from values; None and NaN are not counted."""
        known = [value for value in values if value is not None and not math.isnan(value)]
        spread = stdev(known) if len(known) > 1 else math.nan
        return cls(mean(known) if known else math.nan, spread, len(known))

    def show(self, number: Callable[[float | None], str], expected: int) -> str:
        """Return mean ± sd, with n where it is not ``expected``."""
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
    def is_reference(self) -> bool:
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

    def estimate(self, value: Value) -> Estimate:
        """Mean and deviation of something in results.json."""
        return Estimate.of(value(run.results) for run in self.counted)


def build_methods(runs: Sequence[Run]) -> list[Method]:
    """Group comparable runs by method; references last, else in order of appearance.

    Labels are those of `compare`; where one would not fit a line, those that tell only the
    settings in which a method differs from most runs of its learner.
    """
    groups = sorted(
        group(runs).items(), key=lambda item: item[1][0].results["learner"] in REFERENCES
    )
    short = dict(zip(map(id, runs), variant_labels(runs), strict=True))
    is_long = any(len(label) > LONGEST_LABEL for label, _ in groups)
    methods = []
    for index, (label, members) in enumerate(groups):
        text = visible(short[id(members[0])] if is_long else label, 160)
        furthest = max(members, key=lambda run: num_learned(run.results))
        methods.append(Method(index, text, members, repetitions(members) or [furthest]))
    return methods


def spread(values: np.ndarray) -> np.ndarray:
    """Sample deviation (n - 1) over the first axis; NaN for one run."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)


def metric(name: str) -> Value:
    """Return how to read one of the recorded metrics; None where the run has none."""
    return lambda results: results["metrics"].get(name)


def multiple(results: Results) -> float | None:
    """All stored parameters as a multiple of the base model's."""
    return results["ledger"]["total_multiple"]
