"""Foretell a run: read its data, count its work, try its learner, and estimate."""

import gc
import json
import time
from dataclasses import dataclass
from pathlib import Path

from stream.config.run import RunConfig
from stream.data.build import Notify
from stream.data.prepare.leakage import Leak
from stream.data.task import Task
from stream.report.plan import WorkPlan
from stream.run.dry_run.costs import Costs
from stream.run.dry_run.estimate import Estimate
from stream.run.dry_run.trial import measure
from stream.run.run import Run
from stream.run.settings import as_values, with_learner
from stream.run.setup import build_run

NOT_MEASURED = ("seed", "order", "order_seed", "stream", "experiment", "evaluation", "probe")
"""Settings that change what is done, not what a step costs."""
RATES = ("lr", "head_lr")


@dataclass(frozen=True)
class Forecast:
    """A run that would be.

    Attributes:
        tasks: the stream.
        leaks: held-out texts that were found in training rows.
        plan: its work.
        estimate: what it takes.
        costs: what was measured for that.
    """

    tasks: list[Task]
    leaks: list[Leak]
    plan: WorkPlan
    estimate: Estimate
    costs: Costs


class Foreteller:
    """Foretells runs; runs of one learner on one encoder share a measurement.

    Nothing is written but the cache of encoded data.
    """

    def __init__(self, notify: Notify = lambda what, detail: None):
        """Call ``notify`` with what is about to be done, and how far that is."""
        self._notify = notify
        self._known: dict[str, Costs] = {}

    def of(self, config: RunConfig) -> Forecast:
        """Foretell a run; its learner is of no use afterwards.

        Raises:
            UserError: something asked for is not there or makes no sense.
            TrainingDivergedError: a loss that is not finite.
        """
        config = with_learner(config)
        began = time.perf_counter()
        run = build_run(config, Path(), self._notify)
        prepare_s = time.perf_counter() - began
        tasks, leaks = list(run.tasks), [Leak(**leak) for leak in run.record.data.leaks]
        plan = WorkPlan.of(config, tasks)
        costs = self._costs(run)
        on_gpu = run.device.type == "cuda"
        estimate = Estimate.of(config, tasks, plan, costs, prepare_s, on_gpu=on_gpu)
        return Forecast(tasks, leaks, plan, estimate, costs)

    def _costs(self, run: Run) -> Costs:
        """Return what the learner of a run costs, measured once for all that are alike."""
        key = _alike(run.config)
        if key not in self._known:
            what = f"measuring {run.config.learner.name} on {run.config.backbone.name}"
            self._known[key] = measure(run, lambda detail: self._notify(what, detail))
            gc.collect()
        return self._known[key]


def _alike(config: RunConfig) -> str:
    """Return what decides how long a step of a run takes."""
    values = {k: v for k, v in as_values(config).items() if k not in NOT_MEASURED}
    learner = {k: v for k, v in values["learner"].items() if k not in RATES}
    batches = {"batch_size": config.training.batch_size, "engine": config.training.engine}
    values |= {"learner": [config.learner.name, learner], "training": batches}
    values["evaluation"] = [config.evaluation.split, config.evaluation.batch_tokens]
    return json.dumps({**values, "task": list(values["task"])}, sort_keys=True)
