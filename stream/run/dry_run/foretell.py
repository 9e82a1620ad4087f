"""Foretell a run: read its data, count its work, try its learner, and estimate."""

import gc
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stream.config.run import RunConfig
from stream.data.build import Notify
from stream.data.prepare.leakage import Leak
from stream.data.task import Task
from stream.report.plan import Estimate, WorkPlan
from stream.run.dry_run.costs import Costs
from stream.run.dry_run.estimate import estimated
from stream.run.dry_run.trial import measure
from stream.run.run import Run
from stream.run.settings import as_values, with_learner
from stream.run.setup import build_run

NAMES = ("seed", "protocol", "experiment", "sweep", "tracking", "resume", "display", "workers")
"""Settings that change nothing of what is foretold."""
AMOUNTS = ("order", "order_seed", "stream", "router", "probe", "checkpoint", "select", "figures")
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
        self._costs: dict[str, Costs] = {}
        self._known: dict[str, Forecast] = {}

    def of(self, config: RunConfig) -> Forecast:
        """Foretell a run; its learner is of no use afterwards.

        Raises:
            UserError: something asked for is not there or makes no sense.
            TrainingDivergedError: a loss that is not finite.
        """
        config = with_learner(config)
        key = json.dumps(_alike(config), sort_keys=True)
        if key not in self._known:
            self._known[key] = self._foretold(config)
        return self._known[key]

    def _foretold(self, config: RunConfig) -> Forecast:
        """Foretell a run that is unlike those before."""
        began = time.perf_counter()
        # A candidate costs what the learner costs; the plan counts how many there are.
        run = build_run(replace(config, select=None), Path(), self._notify)
        prepare_s = time.perf_counter() - began
        tasks, leaks = list(run.tasks), [Leak(**leak) for leak in run.record.data.leaks]
        plan = WorkPlan.of(config, tasks)
        costs = self._measured(run)
        estimate = estimated(run, tasks, plan, costs, prepare_s)
        return Forecast(tasks, leaks, plan, estimate, costs)

    def _measured(self, run: Run) -> Costs:
        """Return what the learner of a run costs, measured once for all that are alike."""
        values = {k: v for k, v in _alike(run.config).items() if k not in AMOUNTS}
        training, evaluation = run.config.training, run.config.evaluation
        values["training"] = [training.batch_size, training.engine]
        values["evaluation"] = [evaluation.split, evaluation.batch_tokens]
        key = json.dumps(values, sort_keys=True)
        if key not in self._costs:
            what = f"measuring {run.config.learner.name} on {run.config.backbone.name}"
            self._costs[key] = measure(run, lambda detail: self._notify(what, detail))
            gc.collect()
        return self._costs[key]


def _alike(config: RunConfig) -> dict[str, Any]:
    """Return what decides the amount and the cost of the work of a run."""
    values = {k: v for k, v in as_values(config).items() if k not in NAMES}
    learner = {k: v for k, v in values["learner"].items() if k not in RATES}
    return values | {"learner": [config.learner.name, learner]}
