"""Intervals: how often they cover, against what they are said to; and scipy's own."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from analysis.runs.estimate import Estimate, mean_and_half_width, over_seeds
from stream.formatting import percent

NUM_STUDIES = 40_000
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def normal(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return generator.normal(0.7, 0.02, size)


def skewed(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Scores with a tail to one side, as those with a ceiling have: skewness 0.83, mean 0.8."""
    return 1 - generator.beta(2, 8, size)


def extreme(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Skewness 2."""
    return 0.9 - generator.exponential(0.1, size)


@pytest.mark.parametrize(
    ("draw", "true_mean", "num_seeds", "claimed"),
    [
        *((normal, 0.7, n, 0.95) for n in (2, 3, 5)),
        (skewed, 0.8, 3, 0.931),  # what docs/metrics.md says of skewed scores
        (extreme, 0.8, 3, 0.885),
    ],
)
def test_intervals_cover_as_often_as_is_claimed(
    draw: Draw, true_mean: float, num_seeds: int, claimed: float
) -> None:
    """Each column is a study of some seeds; within four binomial deviations, and 0.1 points."""
    scores = draw(np.random.default_rng(1), (num_seeds, NUM_STUDIES))
    means, half_widths = mean_and_half_width(scores)
    covered = float(np.mean(np.abs(means - true_mean) <= half_widths))
    error = 4 * math.sqrt(claimed * (1 - claimed) / NUM_STUDIES) + 0.001
    assert covered == pytest.approx(claimed, abs=error)


def test_the_interval_is_that_of_scipy() -> None:
    values = [0.41, 0.52, 0.47, 0.61]
    found = Estimate.of([*values, None, math.nan])
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert (found.n, found.sd) == (4, pytest.approx(np.std(values, ddof=1)))


def test_one_seed_has_no_interval_and_none_no_mean() -> None:
    one, none = Estimate.of([0.5]), Estimate.of([None])
    assert (one.mean, one.interval, one.show(percent, 1)) == (0.5, None, "50.0")
    assert math.isnan(one.half_width)
    assert math.isnan(one.sd)
    assert (none.n, none.interval) == (0, None)
    assert Estimate.of([0.5, 0.6]).show(percent, 3) == "55.0 ± 63.5 (n=2)"  # t(0.975, 1) = 12.706


def test_figures_say_over_how_many_seeds() -> None:
    assert over_seeds([3, 3]) == "mean and 95% t interval over 3 seeds"
    assert over_seeds([3, 1]) == "mean and 95% t interval over 1 to 3 seeds, none of one seed"
    assert over_seeds([1]) == "one seed, no interval"
    assert over_seeds([1, 2], "means") == "means over 1 to 2 seeds"
