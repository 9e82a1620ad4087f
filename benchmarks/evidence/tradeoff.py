"""What a task costs in parameters, and what it scores: the paper's figures 1 and 3, over the tasks.

Of each method whose tasks share nothing and that trains: percentiles over tasks of the score less
that of `independent` with the same seeds, the mean over seeds first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from matplotlib.figure import Figure

from analysis.figures.tradeoff import BASELINE, PERCENTILES, Point, draw_tradeoff
from benchmarks.evidence.comparisons import points
from benchmarks.evidence.methods import METHODS, Method
from benchmarks.evidence.quantities import GIVEN, differences, scores
from benchmarks.evidence.records import Records
from benchmarks.evidence.tables import left_out, named, trained
from benchmarks.markdown import table
from stream.formatting import DASH, percent
from stream.record.run_record import RunRecord

WANTED = tuple(method for method in METHODS if method.isolated and method.searched)


@dataclass(frozen=True)
class Found:
    """What a method has of the trade-off.

    Attributes:
        method: it.
        runs: its runs.
        differences: its score less that of `independent`, float64 [T, S].
    """

    method: Method
    runs: Sequence[RunRecord]
    differences: np.ndarray

    @property
    def is_full(self) -> bool:
        """Whether it is full fine-tuning, which the others are held against."""
        return self.method.name == BASELINE

    @property
    def size(self) -> float:
        """The numbers that are trained for a task, the mean over tasks."""
        return mean(row.trained_parameters for row in self.runs[0].ledger.tasks)

    @property
    def percentiles(self) -> np.ndarray:
        """`PERCENTILES` over the tasks, float64 [3]."""
        return np.percentile(self.differences.mean(axis=1), PERCENTILES)


def found_of(records: Records) -> list[Found]:
    """Return the methods that ran with seeds of `independent`, the smallest first."""
    found = []
    for method in WANTED:
        apart = differences(records, scores, method.name, BASELINE)
        if apart.size:
            found.append(Found(method, records.five(GIVEN, method.name), apart))
    return sorted(found, key=lambda one: one.size)


def tradeoff(records: Records) -> str:
    """Return parameters a task and percentiles of the score, and which methods were not run."""
    found = found_of(records)

    def lines() -> Iterator[Sequence[str]]:
        for one in found:
            part = mean(row.trained_fraction for row in one.runs[0].ledger.tasks)
            apart = [*one.percentiles, float(one.differences.mean())]
            cells = [DASH] * len(apart) if one.is_full else map(points, apart)
            seeds = str(one.differences.shape[1])
            yield named(one.method.name), trained(one.runs), f"{percent(part, 2)}%", *cells, seeds

    names = {one.method.name for one in found}
    missing = left_out([m.name for m in WANTED if m.name not in names], GIVEN)
    header = [
        *("method", "trained a task", "of the encoder"),
        *(f"{rank}th percentile" for rank in PERCENTILES),
        *("mean", "seeds"),
    ]
    return "\n\n".join(filter(None, [table(header, lines()) if found else "", missing]))


def tradeoff_figure(records: Records) -> Figure | None:
    """Return the same as a figure, a line for methods that are one learner in several sizes.

    None without runs to compare.
    """
    found = found_of(records)
    full = next((one for one in found if one.is_full), None)
    if full is None or len(found) == 1:
        return None
    families: dict[str, list[Point]] = {}
    for method in WANTED:  # in the order of the plan
        for one in found:
            if one.method == method and not one.is_full:
                point = Point(one.size, one.percentiles)
                families.setdefault(one.runs[0].learner, []).append(point)
    run = full.runs[0]
    seeds = sorted({one.differences.shape[1] for one in found})
    told = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    what = f"score minus full fine-tuning: percentiles {', '.join(map(str, PERCENTILES))}"
    heading = (
        f"{run.stream}, {len(run.order)} tasks, {run.backbone}\n{what} over the tasks, "
        f"means over {told} seeds"
    )
    return draw_tradeoff(heading, families, full.size)
