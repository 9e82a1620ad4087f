"""What the parts of a run cost: straight lines through measured times.

N measurements, F factors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

OUTLIER = 3.0  # a time so many times what the others say was something else (a first step, a pause)


@dataclass(frozen=True)
class Line:
    """Seconds as a sum of factors, each times a weight that is not negative.

    Attributes:
        weights: seconds per unit of each factor, float64 [F].
    """

    weights: np.ndarray

    @classmethod
    def through(cls, factors: Sequence[Sequence[float]], seconds: Sequence[float]) -> "Line":
        """Return the line with the least relative errors; all 0 without a measurement.

        Args:
            factors: of each measurement, [N, F].
            seconds: of each measurement, [N].
        """
        if not seconds:
            return cls(np.zeros(0))
        rows, times = np.array(factors, np.float64), np.maximum(np.array(seconds), 1e-9)
        line = cls(_fitted(rows, times))
        predicted = rows @ line.weights
        ratios = times / np.maximum(predicted, 1e-12)
        near = ratios < OUTLIER * np.median(ratios)
        return cls(_fitted(rows[near], times[near]))

    def at(self, *factors: float) -> float:
        """Return the seconds for these factors."""
        return float(np.dot(self.weights, factors)) if len(self.weights) else 0.0


def _fitted(factors: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return the weights, none negative, with the least sum of squared relative errors."""
    from scipy.optimize import nnls

    return nnls(factors / seconds[:, None], np.ones(len(seconds)))[0]


@dataclass(frozen=True)
class Costs:
    """What one learner costs on one machine.

    Attributes:
        step: a step, by (1, padded tokens, padded tokens x tasks learned before).
        first: how much a step of the first task takes of what ``step`` says.
        ending: what learning a task takes besides its steps, by (1, training rows).
        scoring: scoring a task, by (1, tokens).
        warm_s: the very first score, which takes longer.
        fingerprint: of what serves all tasks so far, by (1, tasks).
        peak_bytes: the most memory in use so far, of a GPU where there is one.
        kept_bytes: how much more memory each further task takes.
        owned_bytes: what a checkpoint holds of one task.
        shared_bytes: what it holds of all tasks together, after those that were tried.
        moments_bytes: what it holds besides within a task.
        tried: how many tasks were learned a little.
        steps: how many steps were measured.
        evaluations: how many evaluations of a task were measured.
    """

    step: Line
    first: float
    ending: Line
    scoring: Line
    warm_s: float
    fingerprint: Line
    peak_bytes: int
    kept_bytes: float
    owned_bytes: float
    shared_bytes: float
    moments_bytes: int
    tried: int
    steps: int
    evaluations: int
