"""Tasks that were learned again in other runs: do their logits have the same bits?

Methods whose tasks share nothing learn a task alike whatever comes before it. So runs with one
seed and one setting in different groups (other orders, inferred tasks, four tasks only) are
repetitions of each other, made at other times, beside other runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.evidence.plan import (
    ABLATED,
    CHOSEN_PER_TASK,
    INFERRED,
    MINILM,
    OTHER_ORDERS,
    Group,
    jobs,
)
from benchmarks.evidence.quantities import ENCODERS, both_digests
from benchmarks.evidence.records import Records
from benchmarks.evidence.tables import CHOSEN, named
from benchmarks.markdown import table
from stream.formatting import count, percent
from stream.record.run_record import RunRecord

AGAIN_IN: Sequence[Group] = (*OTHER_ORDERS, INFERRED, ABLATED)
"""Groups with the rows and the schedule of the given order."""


@dataclass
class Repeated:
    """What runs of a method in a group have in common with those in the given order.

    Attributes:
        method: its name in the given order.
        group: where tasks were learned again.
        seeds: of the runs.
        tasks: how many tasks were learned again, over all seeds.
        identical: of how many the logits are the same, right after learning and at the end.
        differing: the tasks whose logits are not.
        largest: the largest absolute difference between two scores of a task at the end.
    """

    method: str
    group: str
    seeds: list[int] = field(default_factory=list)
    tasks: int = 0
    identical: int = 0
    differing: set[str] = field(default_factory=set)
    largest: float = 0.0

    def add(self, seed: int, first: RunRecord, again: RunRecord) -> None:
        """Compare a run with the one in the given order."""
        self.seeds.append(seed)
        before, after = both_digests(first), both_digests(again)
        for task in again.order:
            self.tasks += 1
            if before[task] == after[task]:
                self.identical += 1
            else:
                self.differing.add(task)
            self.largest = max(self.largest, abs(_score(first, task) - _score(again, task)))


def repeated(records: Records) -> list[Repeated]:
    """Return what was learned again, by method and group."""
    found: dict[tuple[str, str], Repeated] = {}
    fixed = [job for job in jobs() if job.method.isolated and not job.method.choice]
    first = [job for job in fixed if job.group == MINILM]
    for job in fixed:
        again = records.runs.get(job.name)
        if job.group not in AGAIN_IN or again is None:
            continue
        for other in first:
            run = records.runs.get(other.name)
            if run is not None and other.seed == job.seed and _same_learner(run, again):
                key = other.method.name, job.group.name
                found.setdefault(key, Repeated(*key)).add(job.seed, run, again)
    return [*found.values()]


def repeats(records: Records) -> str:
    """Return a line a method and group: how many tasks have the same logits there."""

    def lines() -> Iterator[Sequence[str]]:
        for one in repeated(records):
            runs = count(len(one.seeds), "run")
            differing = ", ".join(sorted(one.differing)) or "none"
            equal = f"{one.identical} of {one.tasks}"
            yield named(one.method), f"`{one.group}`", runs, equal, differing, percent(one.largest)

    names = "method,again in,runs,tasks with the same logits,others,largest difference of a score"
    return table(names, lines())


def chosen_again(records: Records) -> str:
    """Return how many tasks of runs that choose have the logits of runs with one setting.

    Where a run that chooses for each task took the one setting and its first start, it learned what
    the run with this setting and its seed did, in another order of trainings.
    """

    def lines() -> Iterator[Sequence[str]]:
        for encoder, group in ENCODERS.items():
            for method in CHOSEN_PER_TASK:
                learner = method.removesuffix(CHOSEN)
                fixed, same = records.seeds(group, learner), []
                for seed, run in records.seeds(group, method).items():
                    if seed in fixed:
                        before, after = both_digests(fixed[seed]), both_digests(run)
                        taken = [task for task in run.order if _took(run, task, fixed[seed])]
                        same += [before[task] == after[task] for task in taken]
                yield encoder, f"`{learner}`", f"{sum(same)} of {len(same)}"

    return table("encoder,method,tasks with the same logits", lines())


def _took(run: RunRecord, task: str, fixed: RunRecord) -> bool:
    """Whether the first start with the one setting was chosen for a task."""
    found = run.selection[task]
    assert found.chosen is not None, f"{run.learner}, seed {run.seed}: nothing chosen for {task}"
    candidate = found.candidates[found.chosen]
    same = {**run.config["learner"], **candidate.settings} == fixed.config["learner"]
    return candidate.restart == 0 and same


def _same_learner(one: RunRecord, other: RunRecord) -> bool:
    """Whether two runs have one learner with one setting."""
    return one.learner == other.learner and one.config["learner"] == other.config["learner"]


def _score(run: RunRecord, task: str) -> float:
    return float(run.matrix[-1][run.order.index(task)] or 0.0)
