"""Intervals of paired differences, against formulas written out, other tests and simulation."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from benchmarks.evidence.statistics import Effect, MeanSquares, half_width, holm


def drawn(seed: int, tasks: float, seeds: float, rest: float, shape: tuple[int, ...]) -> np.ndarray:
    """Draw d[..., T, S] of mean 0 with these standard deviations of its parts."""
    rng = np.random.default_rng(seed)
    of_task = tasks * rng.standard_normal((*shape[:-1], 1))
    of_seed = seeds * rng.standard_normal((*shape[:-2], 1, shape[-1]))
    return of_task + of_seed + rest * rng.standard_normal(shape)


def test_an_effect_is_its_formula_written_out() -> None:
    d = 0.3 + drawn(1, 1.0, 0.8, 0.5, (6, 4))
    effect = Effect.of(d)
    mean = sum(d[t, s] for t in range(6) for s in range(4)) / 24
    tasks = [sum(d[t]) / 4 for t in range(6)]
    seeds = [sum(d[:, s]) / 6 for s in range(4)]
    task = 4 * sum((m - mean) ** 2 for m in tasks) / 5
    seed = 6 * sum((m - mean) ** 2 for m in seeds) / 3
    left = [(d[t, s] - tasks[t] - seeds[s] + mean) ** 2 for t in range(6) for s in range(4)]
    rest = sum(left) / 15
    assert task > rest
    assert seed > rest  # so nothing is cut off
    error = math.sqrt((task + seed - rest) / 24)
    freedom = (task + seed - rest) ** 2 / (task**2 / 5 + seed**2 / 3 + rest**2 / 15)
    half = stats.t.ppf(0.975, freedom) * error
    found = (effect.mean, effect.half_width, effect.freedom, effect.p)
    assert found == pytest.approx((mean, half, freedom, 2 * stats.t.sf(mean / error, freedom)))
    assert (effect.low, effect.high) == pytest.approx((mean - half, mean + half))
    assert effect.over_seeds.half_width == pytest.approx(
        stats.t.ppf(0.975, 3) * np.std(seeds, ddof=1) / 2
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_with_one_factor_alone_it_is_the_t_test_of_its_means(axis: int) -> None:
    values = np.random.default_rng(2).normal(0.5, 1, 7)
    d = np.broadcast_to(values[:, None], (7, 5)) if axis == 0 else np.tile(values, (9, 1))
    effect, test = Effect.of(d), stats.ttest_1samp(values, 0.0)
    interval = test.confidence_interval(0.95)
    assert effect.p == pytest.approx(test.pvalue)
    assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))


def test_the_variance_is_not_below_that_of_the_rest() -> None:
    d = drawn(3, 0.0, 0.0, 1.0, (2000, 8, 5))
    squares = MeanSquares.of(d)
    variance, freedom = squares.of_mean(8, 5)
    plain = (squares.task + squares.seed - squares.rest) / 40
    assert (plain <= 0).any()  # what the bound is for
    assert (variance >= squares.rest / 40 * (1 - 1e-12)).all()
    assert (variance >= plain * (1 - 1e-12)).all()
    assert (freedom >= 4).all()
    both = (squares.task < squares.rest) & (squares.seed < squares.rest)
    assert freedom[both] == pytest.approx(28)


@pytest.mark.parametrize("parts", [(1, 0, 1), (0, 1, 1), (1, 0.3, 2), (0, 0, 1), (1, 1, 0.2)])
def test_intervals_cover_the_mean_as_often_as_they_say(parts: tuple[float, float, float]) -> None:
    d = drawn(4, *parts, (4000, 26, 5))
    covered = (abs(d.mean(axis=(1, 2))) <= half_width(d)).mean()
    assert 0.94 <= covered <= 0.99  # 0.0034 is the standard error of 0.95


def test_few_tasks_far_on_one_side_are_covered_less_often_and_missed_on_that_side() -> None:
    """What docs/metrics.md says of skewed tasks: here exponential ones, of skewness -2."""
    rng, rest = np.random.default_rng(5), drawn(5, 0.0, 0.1, 0.5, (4000, 26, 5))
    d = 1.0 - rng.exponential(size=(4000, 26, 1)) + rest
    off = d.mean(axis=(1, 2)) / half_width(d)
    above, below = (off > 1).mean(), (off < -1).mean()
    assert 0.05 < above + below < 0.09
    assert above > 4 * below  # such an interval lies too high: it lacks the tasks far below


def test_tasks_that_share_texts_are_covered_less_often() -> None:
    """What docs/metrics.md says of dependent tasks: here two pairs and a triple are alike."""
    of_task = drawn(6, 1.0, 0.0, 0.0, (4000, 26, 1))
    for first, *others in ((5, 6), (16, 17, 18), (20, 21)):
        of_task[:, others] = of_task[:, first : first + 1]
    d = of_task + drawn(7, 0.0, 0.0, 0.5, (4000, 26, 5))
    covered = (abs(d.mean(axis=(1, 2))) <= half_width(d)).mean()
    assert 0.89 <= covered <= 0.93


def test_equal_differences_have_no_interval_to_doubt() -> None:
    none, all_equal = Effect.of(np.zeros((4, 3))), Effect.of(np.full((4, 3), 0.5))
    assert (none.p, none.low, none.high) == (1.0, 0.0, 0.0)
    assert (all_equal.p, all_equal.low) == (0.0, 0.5)


def test_holm_is_the_closed_test_of_bonferroni() -> None:
    """Of every set of hypotheses that holds one, the largest p of Bonferroni's test."""
    p = [0.01, 0.011, 0.3, 0.04, 0.0001, 0.9]
    sets = [s for size in range(1, 7) for s in combinations(range(6), size)]
    closed = [
        max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets if i in s) for i in range(6)
    ]
    assert holm(p) == pytest.approx(closed)


def test_holm_is_the_example_of_its_article() -> None:
    """Wikipedia, "Holm-Bonferroni method": of 0.01, 0.04, 0.03, 0.005 the first and last hold."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
