"""What docs/protocol.md measures of the paper's ablations.

P points (methods of an ablation), T tasks, S seeds, L layers; scores are fractions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.evidence.ablations import AS_CHOSEN, TASKS
from benchmarks.evidence.layers import read_layers
from benchmarks.evidence.methods import Method
from benchmarks.evidence.plan import ABLATED, SEEDS
from benchmarks.evidence.quantities import scores
from benchmarks.evidence.records import Records
from benchmarks.evidence.statistics import Effect
from stream.record.run_record import RunRecord

CLOSE = 0.03
"""How far below its best rate's score a task may be so that a rate counts as one that works."""


def runs_of(records: Records, method: Method) -> dict[int, RunRecord]:
    """Return the runs of a method of the ablations, by seed."""
    found = records.seeds(ABLATED.name, method.name)
    return {seed: found[seed] for seed in SEEDS if seed in found}


def common_seeds(records: Records, methods: Sequence[Method]) -> list[int]:
    """Return the seeds with which all of these methods were run."""
    found = [runs_of(records, method).keys() for method in methods]
    return [seed for seed in SEEDS if all(seed in seeds for seeds in found)]


def scores_of(records: Records, methods: Sequence[Method]) -> np.ndarray:
    """Return float64 [P, T, S]: scores with the seeds that all methods have; S may be 0."""
    seeds = common_seeds(records, methods)
    found = [runs_of(records, method) for method in methods]
    by_run = [[scores(runs[seed]) for seed in seeds] for runs in found]
    values = [[[by_task[task] for by_task in one] for task in TASKS] for one in by_run]
    return np.array(values, np.float64).reshape(len(methods), len(TASKS), len(seeds))


def minus(records: Records, method: Method, other: Method) -> np.ndarray:
    """Return d[t, s], float64 [T, S]: scores of a method less those of another."""
    first, second = scores_of(records, [method, other])
    return first - second


def effect(d: np.ndarray) -> Effect | None:
    """Return what differences [T, S] say; None with fewer than two seeds."""
    return Effect.of(d) if d.shape[-1] > 1 else None


def working_rates(found: np.ndarray) -> np.ndarray:
    """Return float64 [T, S]: at how many of P rates each task is close to its own best one.

    Args:
        found: scores, float64 [P, T, S].
    """
    return (found >= found.max(axis=0) - CLOSE).sum(axis=0).astype(np.float64)


@dataclass(frozen=True)
class Best:
    """What was best on each task's validation rows, among methods of an ablation.

    Attributes:
        scores: on test rows, float64 [T, S].
        places: of the best methods, int [T, S].
        seeds: the S seeds.
    """

    scores: np.ndarray
    places: np.ndarray
    seeds: list[int]


def best_of(records: Records, methods: Sequence[Method]) -> Best:
    """Choose for each task and seed, of equal ones the first; with the seeds that all have."""
    seeds = common_seeds(records, methods)
    found = [runs_of(records, method) for method in methods]
    judged = [[[validation(runs[s], task) for s in seeds] for task in TASKS] for runs in found]
    shape = len(methods), len(TASKS), len(seeds)
    places = np.array(judged, np.float64).reshape(shape).argmax(axis=0)
    reached = scores_of(records, methods)
    return Best(np.take_along_axis(reached, places[None], axis=0)[0], places, seeds)


def validation(run: RunRecord, task: str) -> float:
    """Return a task's score on its validation rows, of what was chosen for it within the run."""
    found = run.selection[task]
    assert found.chosen is not None
    score = found.candidates[found.chosen].score
    assert score is not None
    return score


def lost_without(records: Records) -> np.ndarray:
    """Return float64 [L, L, T, S]: what tasks lose without the adapters of layers i to j.

    NaN where a range would end before it begins. Without runs, L and S are 0.
    """
    found = {seed: read_layers(records, seed) for seed in runs_of(records, AS_CHOSEN)}
    lost = [
        [by_task[task].full - by_task[task].without for task in TASKS]
        for by_task in found.values()
        if by_task is not None
    ]
    if not lost:
        return np.empty((0, 0, len(TASKS), 0))
    return np.array(lost, np.float64).transpose(2, 3, 1, 0)
