"""From what a few steps cost to what a whole run takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.report.plan import WorkPlan
from stream.run.dry_run.costs import Costs
from stream.run.dry_run.trial import batch_tokens, reads_earlier

CELL_BYTES, EXAMPLES_A_BYTE = 180, 6  # of results.json: digest, score, time; what was right in base64
LOSS_BYTES = 21
TASK_BYTES = 3500  # its settings, account of rows, hashes
FIGURES_BYTES, FIGURES_BYTES_A_TASK = 180_000, 36_000
DRAWING_BYTES = 40e6  # of memory: matplotlib, and what it draws
CHECKPOINTS = 2  # kept at a time


@dataclass(frozen=True)
class Estimate:
    """What a run takes.

    Attributes:
        learning_s: seconds of learning.
        scoring_s: seconds of scoring.
        rest_s: seconds of reading the data, of the probe and of fingerprints.
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

    @classmethod
    def of(
        cls,
        config: RunConfig,
        tasks: Sequence[Task],
        plan: WorkPlan,
        costs: Costs,
        prepare_s: float,
        *,
        on_gpu: bool,
    ) -> Self:
        """Return what a run takes.

        Args:
            config: its configuration.
            tasks: the stream, [T].
            plan: its work.
            costs: what was measured of its learner.
            prepare_s: how long it took to read the data and to load the encoder.
            on_gpu: whether the memory is that of a GPU.
        """
        split, num_tasks = config.evaluation.split, len(tasks)
        scores = [costs.scoring.at(1, float(t.split(split).lengths.sum())) for t in tasks]
        measured = np.dot(_times_measured(config, plan), scores)
        later = num_tasks - costs.tried
        drawing = 0.0 if on_gpu else DRAWING_BYTES
        marks = sum(costs.fingerprint.at(1, k + 1) for k in range(num_tasks))
        return cls(
            learning_s=_learning_s(config, tasks, plan, costs),
            scoring_s=float(measured) + costs.warm_s,
            rest_s=prepare_s + marks + _probe_s(config, tasks, plan, costs),
            peak_bytes=costs.peak_bytes + later * costs.kept_bytes + drawing,
            checkpoint_bytes=_checkpoint_bytes(config, plan, costs, num_tasks),
            record_bytes=_record_bytes(config, plan, num_tasks),
            figures_bytes=FIGURES_BYTES + num_tasks * FIGURES_BYTES_A_TASK,
        )


def _learning_s(
    config: RunConfig, tasks: Sequence[Task], plan: WorkPlan, costs: Costs
) -> float:
    """Return the seconds of learning."""
    splits = [task.split("train") for task in tasks]
    tokens = [batch_tokens(split, config.training.batch_size) for split in splits]
    if config.learner.tags.is_multitask:  # its steps are of any task
        tokens = [float(np.mean(tokens))] * len(tasks)
    growing = reads_earlier(config.learner)
    seconds = 0.0
    for index, (work, width, split) in enumerate(zip(plan.works, tokens, splits, strict=True)):
        earlier = index if growing else 0
        step = costs.step.at(1, width, width * earlier) * (1 if index else costs.first)
        seconds += work.steps * step + costs.ending.at(1, len(split))
    return seconds


def _times_measured(config: RunConfig, plan: WorkPlan) -> list[int]:
    """Return how often each task is really scored; cells may be reused."""
    settings, last = config.evaluation, len(plan.scored)
    if settings.reuse == "off" or not config.learner.tags.parameter_isolation:
        return plan.scored
    before = [int(settings.baseline) + (k if settings.unseen else 0) for k in range(last)]
    again = [int(settings.reuse == "verify" and k + 1 < last) for k in range(last)]
    return [1 + b + a for b, a in zip(before, again, strict=True)]


def _probe_s(config: RunConfig, tasks: Sequence[Task], plan: WorkPlan, costs: Costs) -> float:
    """Return the seconds of the probe."""
    if not plan.probed:
        return 0.0
    lengths = [task.split(config.evaluation.split).lengths.mean() for task in tasks]
    looks = plan.probed / config.probe.rows
    return looks * costs.scoring.at(1, config.probe.rows * float(np.mean(lengths)))


def _checkpoint_bytes(
    config: RunConfig, plan: WorkPlan, costs: Costs, num_tasks: int
) -> float:
    """Return the bytes of the checkpoints at the end."""
    if not config.checkpoint.enabled:
        return 0.0
    isolated = config.learner.tags.parameter_isolation
    own = num_tasks * costs.owned_bytes * (1 if isolated else CHECKPOINTS)
    every = config.checkpoint.every
    within = every is not None and plan.works[-1].steps >= every
    shared = costs.shared_bytes * (1 if isolated and not within else CHECKPOINTS)
    records = CHECKPOINTS * _record_bytes(config, plan, num_tasks)
    return own + shared + records + (costs.moments_bytes if within else 0)


def _record_bytes(config: RunConfig, plan: WorkPlan, num_tasks: int) -> float:
    """Return the bytes of results.json and run.log."""
    rows = [times - int(config.evaluation.baseline) for times in plan.scored]
    cells = sum(
        times * (CELL_BYTES + size / EXAMPLES_A_BYTE)
        for times, size in zip(rows, plan.sizes, strict=True)
    )
    return cells + plan.steps * LOSS_BYTES + num_tasks * TASK_BYTES
