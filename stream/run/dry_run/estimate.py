"""From what a few steps cost to what a whole run takes."""

from collections.abc import Sequence

import numpy as np

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.report.plan import Estimate, WorkPlan
from stream.run.dry_run.costs import Costs
from stream.run.dry_run.trial import batch_tokens, reads_earlier
from stream.run.run import Run

CELL_BYTES, EXAMPLES_A_BYTE = (
    180,
    6,
)  # of a measured cell: digest, score, time; what was right in base64
REUSED_BYTES = 23  # of a cell that is reused: its score, and the number of a row
LOSS_BYTES = 21
TASK_BYTES = 3500  # its settings, account of rows, hashes
ROW_BYTES = 900  # of a line of rows.jsonl, but for its cells and losses
FIGURES_BYTES, FIGURES_BYTES_A_TASK = 180_000, 36_000
DRAWING_BYTES = 40e6  # of memory: matplotlib, and what it draws
CHECKPOINTS = 2  # kept at a time


def estimated(
    run: Run, tasks: Sequence[Task], plan: WorkPlan, costs: Costs, prepare_s: float
) -> Estimate:
    """Return what a run takes.

    Args:
        run: the run; what its learner has learned does not matter.
        tasks: its stream, [T].
        plan: its work.
        costs: what was measured of its learner.
        prepare_s: how long it took to read the data and to load the encoder.
    """
    config, num_tasks = run.config, len(tasks)
    split = config.evaluation.split
    scores = [costs.scoring.at(1, float(t.split(split).lengths.sum())) for t in tasks]
    each = sum(scores) / max(sum(plan.sizes), 1)  # of a text; a pass of the router is like it
    routing_s = plan.routed * each
    marks = _fingerprints_s(config, costs, num_tasks)
    kept = (num_tasks - costs.tried) * costs.kept_bytes
    draws_here = config.figures and run.device.type != "cuda"
    return Estimate(
        learning_s=_learning_s(config, tasks, plan, costs),
        scoring_s=float(np.dot(_times_measured(config, plan), scores))
        + _selecting_s(config, tasks, costs)
        + costs.warm_s,
        rest_s=prepare_s + marks + _probe_s(config, tasks, plan, costs) + routing_s,
        peak_bytes=costs.peak_bytes + kept + (DRAWING_BYTES if draws_here else 0),
        checkpoint_bytes=_checkpoint_bytes(config, plan, costs, num_tasks),
        record_bytes=_record_bytes(config, plan, num_tasks),
        figures_bytes=config.figures * (FIGURES_BYTES + num_tasks * FIGURES_BYTES_A_TASK),
    )


def _fingerprints_s(config: RunConfig, costs: Costs, num_tasks: int) -> float:
    """Return the seconds of fingerprints: of all tasks so far, or of two and in the end of all."""
    if config.learner.tags.parameter_isolation:
        return costs.fingerprint.at(2, 2 * num_tasks + num_tasks)
    return sum(costs.fingerprint.at(1, k + 1) for k in range(num_tasks))


def _learning_s(config: RunConfig, tasks: Sequence[Task], plan: WorkPlan, costs: Costs) -> float:
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


def _selecting_s(config: RunConfig, tasks: Sequence[Task], costs: Costs) -> float:
    """Return the seconds of scoring candidates."""
    if config.select is None:
        return 0.0
    rows = [task.split("validation").lengths.sum() for task in tasks]
    return len(config.candidates) * sum(costs.scoring.at(1, float(tokens)) for tokens in rows)


def _probe_s(config: RunConfig, tasks: Sequence[Task], plan: WorkPlan, costs: Costs) -> float:
    """Return the seconds of the probe."""
    if not plan.probed:
        return 0.0
    lengths = [task.split(config.evaluation.split).lengths.mean() for task in tasks]
    looks = plan.probed / config.probe.rows
    return looks * costs.scoring.at(1, config.probe.rows * float(np.mean(lengths)))


def _checkpoint_bytes(config: RunConfig, plan: WorkPlan, costs: Costs, num_tasks: int) -> float:
    """Return the bytes of the checkpoints at the end."""
    if not config.checkpoint.enabled:
        return 0.0
    isolated = config.learner.tags.parameter_isolation
    own = num_tasks * costs.owned_bytes * (1 if isolated else CHECKPOINTS)
    every = config.checkpoint.every
    within = every is not None and plan.works[-1].steps >= every
    shared = costs.shared_bytes * (1 if isolated and not within else CHECKPOINTS)
    opening = num_tasks * TASK_BYTES  # the record before its first row
    return own + shared + opening + (costs.moments_bytes if within else 0)


def _record_bytes(config: RunConfig, plan: WorkPlan, num_tasks: int) -> float:
    """Return the bytes of results.json, rows.jsonl and run.log."""
    untrained = int(config.evaluation.baseline)
    measured = [times - untrained for times in _times_measured(config, plan)]
    cells = sum(
        times * (CELL_BYTES + size / EXAMPLES_A_BYTE)
        for times, size in zip(measured, plan.sizes, strict=True)
    )
    reused = sum(times - untrained for times in plan.scored) - sum(measured)
    lines = cells + plan.steps * LOSS_BYTES + num_tasks * ROW_BYTES
    return lines + cells + plan.steps * LOSS_BYTES + reused * REUSED_BYTES + num_tasks * TASK_BYTES
