"""Paired differences: each method against one of them, seed by seed on the same stream."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.runs.collect import RecordedRun
from analysis.runs.methods import group, repetitions
from analysis.tables.text_table import Row, TextTable
from stream.errors import UserError, unknown
from stream.formatting import DASH, MINUS, percent

MEASURES = {
    "average_score": "average\nscore",
    "learning_score": "learning\nscore",
    "forgetting": "forgetting",
}
CONFIDENCE = 0.95
NUM_RESAMPLES = 9999
LEAST_PAIRS = 3


@dataclass(frozen=True)
class Difference:
    """Of one measure between two methods, as fractions.

    Attributes:
        pairs: seeds that both methods have.
        mean: of method minus the other; None without a pair.
        interval: bootstrap interval of the mean; None for fewer than `LEAST_PAIRS` pairs.
    """

    pairs: int
    mean: float | None
    interval: tuple[float, float] | None


def paired_difference(differences: Sequence[float]) -> Difference:
    """Mean of paired differences and its percentile bootstrap interval.

    Efron and Tibshirani 1993, An Introduction to the Bootstrap, ch. 13: resampled are the pairs,
    that is the seeds; the tasks of a run stay together. The generator is seeded: equal
    differences give equal intervals. With few pairs such an interval is too narrow.
    """
    if not len(differences):
        return Difference(0, None, None)
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < LEAST_PAIRS:
        return Difference(len(values), float(values.mean()), None)
    from scipy.stats import bootstrap  # slow to import, and needed by this option only

    interval = bootstrap(
        (values,),
        np.mean,
        n_resamples=NUM_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    bounds = float(interval.low), float(interval.high)
    return Difference(len(values), float(values.mean()), bounds)


def choose_method(runs: Sequence[RecordedRun], wanted: str) -> str:
    """The label of the method meant by a label, or by a learner that is one method only.

    Raises:
        UserError: no such method, or several.
    """
    labels = group(runs)
    if wanted in labels:
        return wanted
    of_learner = [label for label, runs in labels.items() if runs[0].record.learner == wanted]
    if len(of_learner) > 1:
        raise UserError(f"--against {wanted} is several methods: {', '.join(of_learner)}")
    if not of_learner:
        raise unknown("method", wanted, labels)
    return of_learner[0]


def differences(runs: Sequence[RecordedRun], against: str) -> dict[str, dict[str, Difference]]:
    """Every other method's differences from ``against`` by label and measure.

    Args:
        runs: runs of one stream; complete ones count, one per seed.
        against: a method's label.
    """
    groups = {label: repetitions(members) for label, members in group(runs).items()}
    base = {run.record.seed: run.record.metrics for run in groups.pop(against)}
    found = {}
    for label, members in groups.items():
        own = {run.record.seed: run.record.metrics for run in members}
        found[label] = {
            name: paired_difference(
                [
                    mine - other
                    for seed in sorted(own.keys() & base.keys())
                    for mine, other in [(own[seed][name], base[seed][name])]
                    if mine is not None and other is not None
                ]
            )
            for name in MEASURES
        }
    return found


def difference_table(runs: Sequence[RecordedRun], wanted: str) -> TextTable:
    """The table of `differences`, in percentage points.

    Raises:
        UserError: ``wanted`` is no method, or several.
    """
    against = choose_method(runs, wanted)
    found = differences(runs, against)
    rows = []
    for label, by_measure in found.items():
        pairs = min(difference.pairs for difference in by_measure.values())
        shown = [show_difference(difference) for difference in by_measure.values()]
        rows.append(Row([label, str(pairs)], shown))
    notes = [
        f"Method minus {against}, paired by seed, in percentage points: mean and "
        f"{percent(CONFIDENCE, 0)} % bootstrap interval (percentile, {NUM_RESAMPLES} resamples of "
        "the n seeds; tasks are not resampled). Positive forgetting: forgets more."
    ]
    if any(d.pairs < LEAST_PAIRS for by_measure in found.values() for d in by_measure.values()):
        notes.append(
            f"{DASH}: fewer than {LEAST_PAIRS} pairs give no interval, no pair no difference."
        )
    header = ["learner", "n", *MEASURES.values()]
    return TextTable(f"Differences from {against}", header, 2, [rows], notes)


def show_difference(difference: Difference) -> str:
    """A difference with its sign, and the bounds of its interval.

    >>> show_difference(Difference(3, 0.012, (-0.001, 0.02)))
    '+1.2 [−0.1, +2.0]'
    """
    if difference.mean is None:
        return DASH
    mean = signed(difference.mean)
    if difference.interval is None:
        return f"{mean} [{DASH}]"
    low, high = difference.interval
    return f"{mean} [{signed(low)}, {signed(high)}]"


def signed(fraction: float) -> str:
    """Percentage points with their sign."""
    text = percent(fraction)
    return text if text.startswith(MINUS) or text.strip("0.") == "" else f"+{text}"
