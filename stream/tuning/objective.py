"""Whether an objective can have a value in the runs of a search, and whether it can differ."""

import numpy as np

from stream.config.run import RunConfig
from stream.errors import require
from stream.metrics import Evidence, Flops, ProbePoint, Storage, summarize
from stream.metrics.catalogue import METRICS
from stream.metrics.glossary import OF_RUNS

PROBED_STEPS = 20  # at most, of each made-up task; more than any metric asks for


def check_objective(objective: str, config: RunConfig) -> None:
    """Check that a search has something to choose by; made-up runs say so before any is started.

    Args:
        objective: a metric of runs, by name.
        config: of one of the runs.

    Raises:
        UserError: the objective has no value in such runs, or the same one in all of them.
    """
    tasks, value = len(config.task), _value(objective, config, 0)
    require(
        value is not None,
        f"tune.objective={objective} has no value in these runs of k = {tasks}: it has none with "
        f"{OF_RUNS[objective].undefined}; task-stream metrics explains all of them",
    )
    tags = config.learner.tags
    same = value == _value(objective, config, 1)
    require(
        not (objective in METRICS and same and (tags.parameter_isolation or tags.keeps_logits)),
        f"tune.objective={objective} is the same whatever is tried: nothing that "
        f"{config.learner.name} learns changes an earlier task; average_score tells trials apart",
    )


def _value(objective: str, config: RunConfig, seed: int) -> float | None:
    """Return an objective of a made-up run with perfect memory, which measured what a run will."""
    generator, tasks = np.random.default_rng(seed), len(config.task)
    scores = np.tile(generator.random(tasks), (tasks, 1))
    ahead = np.triu(np.ones((tasks, tasks), bool), 1)
    matrix = np.where(ahead & (not config.evaluation.unseen), np.nan, scores)
    some = np.array([True, False])
    right = [None if spec.target == "score" else some for spec in config.task.values()]
    counts, own = [1] * tasks, np.where(ahead, np.nan, scores)
    evidence = Evidence(
        baseline=[0.0] * tasks if config.evaluation.baseline else None,
        probe=_probed(config, scores[0].tolist()),
        correct=[right] * tasks,
        flops=Flops(counts, counts, counts) if config.count_flops else None,
        storage=Storage(counts, counts, 1),
        linear_probes=(counts, counts) if config.evaluation.linear_probe else None,
        one_head=config.scenario == "shared_head",
        routed=(own, own) if config.scenario == "inferred" else None,
    )
    return summarize(matrix, evidence)[objective]


def _probed(config: RunConfig, scores: list[float]) -> list[ProbePoint] | None:
    """Return what the probe would measure if every task had many steps."""
    every = config.probe.every
    if every is None:
        return None
    steps = range(0, PROBED_STEPS * every, every)
    return [
        ProbePoint(task, step, scores[: task + 1]) for task in range(len(scores)) for step in steps
    ]
