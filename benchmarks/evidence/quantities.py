"""What docs/protocol.md measures of a run: numbers of records, by task and by seed.

T tasks, S seeds; scores are fractions.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.evidence.plan import (
    ABLATED,
    FAILING,
    LONGER,
    MINILM,
    MPNET,
    OTHER_ORDERS,
    SEEDS,
)
from benchmarks.evidence.records import Records
from stream.metrics import forgetting_by_task
from stream.record.matrix import Routed
from stream.record.run_record import RunRecord

GIVEN = MINILM.name
"""The group of the tasks in the given order."""
IN_ORDERS = (GIVEN, *(group.name for group in OTHER_ORDERS))
"""The groups of the same tasks in all orders, the given one first."""
ENCODERS = {"MiniLM": GIVEN, "MPNet": MPNET.name}
"""The groups in which tasks are known and in the given order, by what their encoder is called."""
ByTask = dict[str, float]
Runs = Mapping[int, RunRecord]
"""Runs of one method, by seed."""
Failed = Mapping[str, Sequence[int]]
"""The seeds with which tasks failed, by task."""


def scores(run: RunRecord) -> ByTask:
    """Return the score of every task after the last one."""
    return dict(zip(run.order, map(float, run.scores[-1]), strict=True))


def routed(run: RunRecord) -> dict[str, Routed]:
    """Return what came of every task after the last one where the task of a text was inferred."""
    cells = zip(run.order, run.cells[-1], strict=True)
    return {t: c.routed for t, c in cells if c is not None and c.routed is not None}


def forgotten(run: RunRecord) -> ByTask:
    """Return what was forgotten of every task but the last one."""
    return dict(zip(run.order[:-1], map(float, forgetting_by_task(run.scores)), strict=True))


def majority(run: RunRecord) -> ByTask:
    """Return the score of giving each task's majority answer."""
    assert run.majority is not None, f"{run.learner}, seed {run.seed}: no majority answers"
    return dict(zip(run.order, map(float, np.array(run.majority, np.float64)), strict=True))


def normalized(run: RunRecord, whole: RunRecord) -> float:
    """Return how far a run is from not reading the text (0) to a whole model a task (1).

    Args:
        run: any run.
        whole: that of `independent` with the same seed.
    """
    nothing = sum(majority(run).values())
    return (sum(scores(run).values()) - nothing) / (sum(scores(whole).values()) - nothing)


def normalized_scores(records: Records, method: str, group: str = GIVEN) -> list[float]:
    """Return the normalized score of each run of a method in a group that has one."""
    whole = records.seeds(group, "independent")
    runs = records.five(group, method)
    return [normalized(run, whole[run.seed]) for run in runs if run.seed in whole]


def differences(
    records: Records,
    quantity: Callable[[RunRecord], ByTask],
    method: str,
    other: str = "",
    group: str = GIVEN,
) -> np.ndarray:
    """Return d[t, s], float64 [T, S]: a method's quantity, less another's where there is one.

    Args:
        records: all of them.
        quantity: `scores` or `forgotten`.
        method: its runs, of the seeds of tables.
        other: the method that is subtracted; of its seeds those count that both have.
        group: where both ran.
    """
    first = {run.seed: run for run in records.five(group, method)}
    second = {run.seed: run for run in records.five(group, other)} if other else first
    seeds = sorted(first.keys() & second.keys())
    found = by_task_and_seed([quantity(first[seed]) for seed in seeds])
    return found - by_task_and_seed([quantity(second[seed]) for seed in seeds]) if other else found


def by_task_and_seed(by_seed: Sequence[ByTask]) -> np.ndarray:
    """Return [T, S] of values by task, the tasks in the order of the first."""
    tasks = list(by_seed[0]) if by_seed else []
    assert all(found.keys() == set(tasks) for found in by_seed), "runs of other tasks"
    return np.array([[found[task] for found in by_seed] for task in tasks], np.float64)


def digests(run: RunRecord) -> dict[str, str]:
    """Return what stands for every task's logits at the end."""
    return {t: c.digest for t, c in zip(run.order, run.cells[-1], strict=True) if c is not None}


def both_digests(run: RunRecord) -> dict[str, tuple[str, str]]:
    """Return what stands for every task's logits, right after it was learned and at the end."""
    found = {}
    for place, task in enumerate(run.order):
        cells = run.cells[place][place], run.cells[-1][place]
        first, last = ("" if cell is None else cell.digest for cell in cells)
        found[task] = first, last
    return found


def is_perfect(run: RunRecord) -> bool:
    """Whether nothing was forgotten: not a digit of a score, not a bit of a logit."""
    same = [first == last != "" for first, last in both_digests(run).values()]
    earlier = len(run.order) - 1
    memory = (run.memory.tasks_identical, run.memory.tasks_checked)
    return run.metrics["forgetting"] == 0.0 and memory == (earlier, earlier) and all(same)


def adapter_runs(records: Records) -> list[RunRecord]:
    """Return every run of adapters on all tasks: seeds, orders, encoders, sizes, chosen or not."""
    short = ABLATED.name, LONGER.name, FAILING.name
    whole = {name: run for name, run in records.runs.items() if not name.startswith(short)}
    return [run for run in whole.values() if run.learner == "adapter"]


def at_majority(runs: Runs, learned: ByTask) -> dict[str, list[int]]:
    """Return the seeds with which tasks failed, by task: within a point of the majority answer.

    Args:
        runs: of one method, by seed.
        learned: mean scores of whole models; a task counts where it is 5 points above the
            majority answer.
    """
    found: dict[str, list[int]] = {}
    for seed, run in sorted(runs.items()):
        nothing, reached = majority(run), scores(run)
        for task in run.order:
            if learned[task] >= nothing[task] + 0.05 and reached[task] <= nothing[task] + 0.01:
                found.setdefault(task, []).append(seed)
    return found


def failed(records: Records, group: str, method: str) -> dict[str, list[int]]:
    """Return the seeds with which tasks of a method failed in a group, by task.

    Whole models of the same group say what can be learned; without them nothing can fail.
    """
    whole = [*records.seeds(group, "independent").values()]
    return at_majority(records.seeds(group, method), mean_scores(whole)) if whole else {}


def failed_pairs(records: Records, group: str, method: str) -> tuple[int, int]:
    """Return (the number of pairs of task and seed that failed, that of all pairs)."""
    return counted(records.seeds(group, method), failed(records, group, method))


def counted(runs: Runs, lost: Failed) -> tuple[int, int]:
    """Return how many pairs of task and seed of some runs failed, and of how many."""
    return sum(map(len, lost.values())), sum(len(run.order) for run in runs.values())


def where_neither_failed(both: Sequence[Runs], lost: Sequence[Failed]) -> list[float]:
    """Return how far one method's scores are above another's, by pair of task and seed.

    Args:
        both: the runs of the one and of the other; seeds count that both have.
        lost: where either failed.
    """
    first, second = both
    return [
        score - scores(second[seed])[task]
        for seed, run in first.items()
        if seed in second
        for task, score in scores(run).items()
        if not any(seed in failed.get(task, ()) for failed in lost)
    ]


def mean_scores(runs: Sequence[RunRecord]) -> ByTask:
    """Return the mean score of each task; empty without runs."""
    tasks = runs[0].order if runs else []
    return {task: float(np.mean([scores(run)[task] for run in runs])) for task in tasks}


def in_orders(records: Records, method: str) -> list[RunRecord]:
    """Return a method's runs in all orders, the given one first, with the first seed."""
    found = [records.seeds(group, method).get(SEEDS[0]) for group in IN_ORDERS]
    return [run for run in found if run is not None]


def range_of(values: Sequence[float]) -> float:
    """Return the largest value less the smallest."""
    return max(values) - min(values)
