"""Do adapters catch up with whole models where they lag, if both learn for more epochs?

Of each method there are two runs with a seed: one of all tasks with three epochs, one of four tasks
with twenty. Both choose the rate for each task.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.evidence.ablation_quantities import validation
from benchmarks.evidence.comparisons import apart, points
from benchmarks.evidence.plan import LAGGING, LONGER, SEEDS
from benchmarks.evidence.quantities import GIVEN, scores
from benchmarks.evidence.records import Records
from benchmarks.evidence.statistics import Effect
from benchmarks.evidence.tables import left_out
from benchmarks.markdown import spread, table
from stream.formatting import MINUS
from stream.record.run_record import RunRecord

METHODS = ("independent_per_task", "adapter_per_task")
Pair = tuple[RunRecord, RunRecord]
"""The run with three epochs, and that with twenty, of one seed."""


def longer(records: Records) -> str:
    """Return what twenty epochs change, task by task and in all."""
    whole, adapters = both(records)
    if len(whole) < 2:
        found = {method: len(pairs(records, method)) for method in METHODS}
        fewest = min(found.values())
        return left_out([method for method in METHODS if found[method] == fewest], LONGER.name)
    return f"{by_task(whole, adapters)}\n\n{_sentences(whole, adapters)}"


def with_longer(records: Records) -> Effect | None:
    """Return how far adapters are from whole models with the better number of epochs.

    Over all tasks; only for those where adapters lag are there two numbers. None with fewer than
    two seeds.
    """
    whole, adapters = both(records)
    return _better_apart(whole, adapters) if len(whole) > 1 else None


def both(records: Records) -> list[list[Pair]]:
    """Return the runs of whole models and of adapters, with the seeds that both have."""
    found = [pairs(records, method) for method in METHODS]
    seeds = [seed for seed in SEEDS if all(seed in of for of in found)]
    return [[of[seed] for seed in seeds] for of in found]


def pairs(records: Records, method: str) -> dict[int, Pair]:
    """Return both runs of a method, by the seeds that both have."""
    short, long = (records.seeds(group, method) for group in (GIVEN, LONGER.name))
    return {seed: (short[seed], long[seed]) for seed in SEEDS if seed in short and seed in long}


def by_task(whole: Sequence[Pair], adapters: Sequence[Pair]) -> str:
    """Return a line a task: both methods with either number of epochs, and how far apart."""
    titles = dict(zip(whole[0][1].order, whole[0][1].titles, strict=True))

    def lines() -> Iterator[Sequence[str]]:
        for task in LAGGING:
            found = np.array(
                [
                    [[scores(run)[task] for run in pair] for pair in method]
                    for method in (whole, adapters)
                ]
            )  # [method, seed, epochs]
            cells = [spread([*found[m, :, e]]) for m in (0, 1) for e in (0, 1)]
            lost = found[1].mean(axis=0) - found[0].mean(axis=0)
            yield titles[task], *cells, *map(points, lost)

    header = (
        *("task", "`independent`, 3 epochs", "20 epochs", "`adapter`, 3 epochs", "20 epochs"),
        *(f"`adapter` {MINUS} `independent`, 3 epochs", "20 epochs"),
    )
    return table(header, lines())


def _sentences(whole: Sequence[Pair], adapters: Sequence[Pair]) -> str:
    """Return the differences over these tasks, and over all with the better number of epochs."""
    few, many = (
        _apart([_some(pair[e]) for pair in adapters], [_some(pair[e]) for pair in whole])
        for e in (0, 1)
    )
    chosen = _better_apart(whole, adapters)
    return (
        f"On these tasks adapters end {apart(few, 'whole models')} with 3 epochs, and "
        f"{apart(many, 'whole models')} with 20. If each method takes the number of epochs that is "
        f"better on validation rows, for each of these tasks and seeds, adapters end "
        f"{apart(chosen, 'whole models')} over all 26 tasks."
    )


def _better_apart(whole: Sequence[Pair], adapters: Sequence[Pair]) -> Effect:
    return _apart([*map(better, adapters)], [*map(better, whole)])


def _some(run: RunRecord) -> list[float]:
    return [scores(run)[task] for task in LAGGING]


def better(pair: Pair) -> list[float]:
    """Return the scores of all tasks: of the lagging ones, of the run that validation prefers."""
    short, long = pair
    found = scores(short)
    for task in LAGGING:
        if validation(long, task) > validation(short, task):
            found[task] = scores(long)[task]
    return [*found.values()]


def _apart(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Effect:
    """Return what scores [S, T] are above others."""
    return Effect.of((np.array(first) - np.array(second)).T)
