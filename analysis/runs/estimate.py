"""Means over seeds and their intervals: what every ± and every error bar of analysis shows.

The interval is Student's t over the seeds: mean ± t(0.975, n - 1) s / sqrt(n), with s the sample
deviation (Student 1908, "The probable error of a mean"). Over the seeds, not over tasks and seeds:
seeds are independent repetitions, while the tasks of a stream were chosen, not drawn, and their
scores in one run depend on each other. So an interval is about other seeds on these tasks. It is
exact for normal scores; of few and strongly skewed ones it covers less (docs/metrics.md).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from stream.formatting import DASH, count

CONFIDENCE = 0.95
INTERVAL = f"{CONFIDENCE:.0%} t interval"


def mean_and_half_width(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis, the seeds, and half of its interval; NaN for one seed."""
    from scipy.special import stdtrit  # a quarter of a second to import

    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    quantile = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2))
    return mean, quantile * values.std(axis=0, ddof=1) / math.sqrt(n)


@dataclass(frozen=True)
class Estimate:
    """What the n runs that have a value say of it; NaN where unknown.

    Attributes:
        mean: over the runs; unknown without any.
        sd: sample deviation (n - 1); unknown for fewer than two.
        half_width: of the interval of the mean; unknown for fewer than two.
        n: how many runs have the value.
    """

    mean: float
    sd: float
    half_width: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Estimate":
        """Estimate from values; None and NaN are not counted."""
        known = np.array([v for v in values if v is not None and not math.isnan(v)], np.float64)
        if not len(known):
            return cls(math.nan, math.nan, math.nan, 0)
        mean, half_width = mean_and_half_width(known)
        sd = float(known.std(ddof=1)) if len(known) > 1 else math.nan
        return cls(float(mean), sd, float(half_width), len(known))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its bounds; None for fewer than two runs."""
        if self.n < 2:
            return None
        return self.mean - self.half_width, self.mean + self.half_width

    def show(self, number: Callable[[float | None], str], expected: int) -> str:
        """Return mean ± half of the interval, with n where it is not ``expected``."""
        if not self.n:
            return DASH
        half = f" ± {number(self.half_width)}" if self.n > 1 else ""
        text = f"{number(self.mean)}{half}"
        return text if self.n == expected else f"{text} (n={self.n})"


def over_seeds(counts: Iterable[int], what: str = f"mean and {INTERVAL}") -> str:
    """Say what is taken over how many seeds, from the number behind each mean.

    >>> over_seeds([3]), over_seeds([1])
    ('mean and 95% t interval over 3 seeds', 'one seed, no interval')
    >>> over_seeds([3, 1, 3])
    'mean and 95% t interval over 1 to 3 seeds, none of one seed'
    """
    numbers = set(counts)
    low, high = min(numbers), max(numbers)
    if high == 1:
        return "one seed, no interval"
    none = ", none of one seed" if low == 1 and INTERVAL in what else ""
    return f"{what} over {count(high, 'seed') if low == high else f'{low} to {high} seeds'}{none}"
