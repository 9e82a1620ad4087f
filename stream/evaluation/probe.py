"""The probe: scores while a task is being learned, on a fixed sample of every task met so far.

Shows what scores after whole tasks hide, the stability gap (De Lange et al. 2023, arXiv
2205.13452). It changes nothing: a run with a probe learns what it learns without.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from stream.config.run import EvaluationConfig, ProbeConfig
from stream.data.task import Task
from stream.evaluation.evaluate import logits_of, require_finite, task_score
from stream.learners.base import Learner
from stream.metrics import ProbePoint
from stream.record.run_record import ProbeRecord
from stream.seeding import numpy_generator


@dataclass
class Probe:
    """The samples, and the record of what was seen on them.

    Attributes:
        evaluation: how they are scored.
        samples: a sample of each task of the stream.
        record: gets a point at every look.
    """

    evaluation: EvaluationConfig
    samples: list[Task]
    record: ProbeRecord

    def is_due(self, step: int, steps: int) -> bool:
        """Whether to look after ``step`` of ``steps``: every so often, at the start and the end."""
        return step % self.record.every == 0 or step == steps

    def look(self, learner: Learner, index: int, step: int, device: torch.device) -> int:
        """Score tasks 0 to ``index``; return how many examples that took.

        Learners whose tasks share the encoder are scored in one pass over all samples.

        Args:
            learner: whatever predicts.
            index: position of the task being learned.
            step: its steps so far.
            device: where the learner predicts.

        Raises:
            TrainingDivergedError: logits that are not finite.
        """
        started = time.perf_counter()
        tasks, split = self.samples[: index + 1], self.evaluation.split
        groups = [tasks] if learner.serves_together else [[task] for task in tasks]
        scores = []
        for group in groups:
            found = logits_of(learner, group, split, self.evaluation.batch_tokens, device)
            for task, logits in zip(group, found, strict=True):
                require_finite(task, logits)
                scores.append(task_score(task, logits, task.split(split).targets).value)
        self.record.add(ProbePoint(index, step, scores), time.perf_counter() - started)
        return sum(len(task.split(split)) for task in tasks)


def sampled(task: Task, split: str, rows: int, seed: int) -> Task:
    """Return the task with at most ``rows`` rows of its split: a sample that its name decides."""
    whole = task.split(split)
    order = numpy_generator(seed, "probe", task.name).permutation(len(whole))
    return replace(task, splits={split: whole.select(np.sort(order[:rows]))})


def planned_looks(probe: ProbeConfig, steps: int) -> int:
    """Return how often a task of ``steps`` steps is looked at."""
    return 0 if probe.every is None else 1 + -(-steps // probe.every)


def planned_evaluations(
    probe: ProbeConfig, tasks: Sequence[Task], split: str, steps: Sequence[int]
) -> int:
    """Return how many examples the probe will score over a stream, ``steps`` a task."""
    sizes = np.cumsum([min(len(task.split(split)), probe.rows) for task in tasks])
    looks = [planned_looks(probe, of_task) for of_task in steps]
    return int(np.dot(looks, sizes))
