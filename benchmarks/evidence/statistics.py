"""Intervals and p values of paired differences, with tasks and seeds as crossed random effects.

T tasks, S seeds. d[t, s] is what one method has more than another on a task with a seed. The model
is d[t, s] = mean + task[t] + seed[s] + rest[t, s], all random and independent, one value a cell
(Searle, Casella & McCulloch 1992, Variance Components, section 4.7). The mean of d then has the
variance V(task) / T + V(seed) / S + V(rest) / (T S), which the mean squares estimate as
(MS_task + MS_seed - MS_rest) / (T S).

That estimate can fall below what the rest alone gives, even below 0. A variance cannot be negative,
so the components of tasks and of seeds are cut off at 0, as is usual: each of MS_task and MS_seed
counts as MS_rest at least, and the variance is never below MS_rest / (T S). Degrees of freedom are
Satterthwaite's (1946, Biometrics Bulletin 2) over the mean squares that are left, and not fewer
than the smaller factor has by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.runs.estimate import CONFIDENCE, Estimate


@dataclass(frozen=True)
class MeanSquares:
    """The analysis of variance of differences; each a float64 array [...].

    Attributes:
        task: between tasks, with T - 1 degrees of freedom.
        seed: between seeds, with S - 1.
        rest: of what neither explains, with (T - 1)(S - 1).
    """

    task: np.ndarray
    seed: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, d: np.ndarray) -> "MeanSquares":
        """Compute them of float64 [..., T, S]."""
        num_tasks, num_seeds = d.shape[-2:]
        by_task, by_seed = d.mean(axis=-1), d.mean(axis=-2)
        grand = d.mean(axis=(-2, -1))
        left = d - by_task[..., :, None] - by_seed[..., None, :] + grand[..., None, None]
        return cls(
            task=num_seeds * by_task.var(axis=-1, ddof=1),
            seed=num_tasks * by_seed.var(axis=-1, ddof=1),
            rest=(left**2).sum(axis=(-2, -1)) / ((num_tasks - 1) * (num_seeds - 1)),
        )

    def of_mean(self, num_tasks: int, num_seeds: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the variance of the mean of d, and its degrees of freedom.

        Args:
            num_tasks: T.
            num_seeds: S.
        """
        task, seed = np.maximum(self.task, self.rest), np.maximum(self.seed, self.rest)
        total = task + seed - self.rest
        has_task, has_seed = self.task > self.rest, self.seed > self.rest
        spread = has_task * task**2 / (num_tasks - 1)
        spread = spread + has_seed * seed**2 / (num_seeds - 1)
        spread += (has_task == has_seed) * self.rest**2 / ((num_tasks - 1) * (num_seeds - 1))
        fewest = min(num_tasks, num_seeds) - 1
        known = spread > 0
        freedom = np.where(known, total**2 / np.where(known, spread, 1.0), fewest)
        return total / (num_tasks * num_seeds), np.maximum(freedom, fewest)


def half_width(d: np.ndarray) -> np.ndarray:
    """Return half of the 95% interval of the mean of float64 [..., T, S]; T, S at least 2."""
    from scipy.special import stdtrit  # a quarter of a second to import

    variance, freedom = MeanSquares.of(d).of_mean(*d.shape[-2:])
    return stdtrit(freedom, 0.5 + CONFIDENCE / 2) * np.sqrt(variance)


@dataclass(frozen=True)
class Effect:
    """The mean of d[t, s]; fractions.

    Attributes:
        mean: over tasks and seeds.
        half_width: half of its interval for tasks and seeds like these.
        p: two-sided, of the hypothesis that the mean is 0.
        freedom: degrees of freedom of the interval.
        squares: the mean squares, in squared fractions.
        over_seeds: the mean of the same tasks, with the t interval over seeds alone.
    """

    mean: float
    half_width: float
    p: float
    freedom: float
    squares: MeanSquares
    over_seeds: Estimate

    @classmethod
    def of(cls, d: np.ndarray) -> "Effect":
        """Estimate from float64 [T, S]; T, S at least 2."""
        from scipy.special import stdtr

        squares, mean = MeanSquares.of(d), float(d.mean())
        variance, freedom = (float(value) for value in squares.of_mean(*d.shape))
        if variance > 0:
            p = 2 * float(stdtr(freedom, -abs(mean) / variance**0.5))
        else:
            p = 0.0 if mean else 1.0  # every difference is the same
        return cls(
            mean=mean,
            half_width=float(half_width(d)),
            p=p,
            freedom=freedom,
            squares=squares,
            over_seeds=Estimate.of(d.mean(axis=0)),
        )

    @property
    def low(self) -> float:
        """The lower bound of its interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The upper bound of its interval."""
        return self.mean + self.half_width


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm 1979, Scandinavian J. of Statistics 6).

    The k-th smallest of m is multiplied by m - k + 1; none is smaller than the one before it.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected
