"""The work of a run, known before it starts, and what it takes, which is estimated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.evaluation.probe import planned_evaluations
from stream.learners.workload import Workload, all_of


@dataclass(frozen=True)
class WorkPlan:
    """The work of a run on T tasks.

    Attributes:
        works: what learning each task takes, [T].
        sizes: the examples of each task that are scored, [T].
        scored: how often each task is scored, [T]; cells that may be reused count too.
        probed: the evaluations of the probe.
        routed: the passes of a text for routing, where tasks are inferred.
        selecting: the evaluations of candidates (``select``).
    """

    works: list[Workload]
    sizes: list[int]
    scored: list[int]
    probed: int
    routed: int = 0
    selecting: int = 0

    @classmethod
    def of(cls, config: RunConfig, tasks: Sequence[Task]) -> Self:
        """Return the work of a run whose learner has begun the stream."""
        split, last = config.evaluation.split, len(tasks)
        works = [_work(config, task) for task in tasks]
        tried = 0 if config.select is None else len(config.candidates)
        unseen, before = config.evaluation.unseen, int(config.evaluation.baseline)
        probed = planned_evaluations(config.probe, tasks, split, [work.steps for work in works])
        return cls(
            works=works,
            sizes=[len(task.split(split)) for task in tasks],
            scored=[before + (last if unseen else last - k) for k in range(last)],
            probed=probed,
            routed=_routed(config, tasks) if config.scenario == "inferred" else 0,
            selecting=tried * sum(len(task.split("validation")) for task in tasks),
        )

    @property
    def examples(self) -> int:
        """The examples of all training steps."""
        return sum(work.examples for work in self.works)

    @property
    def steps(self) -> int:
        """All training steps."""
        return sum(work.steps for work in self.works)

    @property
    def evaluations(self) -> int:
        """The evaluations of whole tasks."""
        return sum(size * times for size, times in zip(self.sizes, self.scored, strict=True))


def _routed(config: RunConfig, tasks: Sequence[Task]) -> int:
    """Return the passes of a text for routing; answers of other tasks, which are few, not counted.

    Features are computed once for every text, of training and of evaluation. Outputs of every task
    for every text are computed after each task anew, unless what gives them cannot change.
    """
    sizes = [len(task.split(config.evaluation.split)) for task in tasks]
    if config.router.reads_features:
        return sum(sizes) + sum(len(task.split("train")) for task in tasks)
    last = len(tasks)
    if config.learner.tags.parameter_isolation:
        return last * sum(sizes)
    return sum(k * sum(sizes[:k]) for k in range(1, last + 1))


def _work(config: RunConfig, task: Task) -> Workload:
    """Return what learning a task takes: of all candidates, where there are several."""
    learner, training = config.learner, config.training
    if config.select is None:
        return learner.workload(task, training)
    learners = (replace(learner, **candidate.settings) for candidate in config.candidates)
    return all_of([one.workload(task, training) for one in learners])


@dataclass(frozen=True)
class Estimate:
    """What a run takes.

    Attributes:
        learning_s: seconds of learning.
        scoring_s: seconds of scoring.
        rest_s: seconds of reading the data, of the probe, of routing and of fingerprints.
        peak_bytes: the most memory.
        checkpoint_bytes: checkpoints on disk at the end.
        record_bytes: the record and the log.
        figures_bytes: the figures.
    """

    learning_s: float
    scoring_s: float
    rest_s: float
    peak_bytes: float
    checkpoint_bytes: float
    record_bytes: float
    figures_bytes: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.learning_s + self.scoring_s + self.rest_s

    @property
    def disk_bytes(self) -> float:
        """Everything on disk."""
        return self.checkpoint_bytes + self.record_bytes + self.figures_bytes
