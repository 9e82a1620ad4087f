"""The runs of trials: ordinary jobs of a sweep, started through Hydra's launcher.

So `hydra/launcher=joblib` runs several at once, a finished job is not run again, and an unfinished
one goes on from its checkpoint (`stream.cli.sweeps`).
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

from hydra import version
from hydra._internal import hydra as internal
from hydra._internal.callbacks import Callbacks
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.types import HydraContext, RunMode
from omegaconf import OmegaConf

from stream.cli.outcomes import FINISHED, SKIPPED, Outcome, Plan, outcomes
from stream.cli.run import job
from stream.cli.sweeps import IN_THIS_PROCESS
from stream.config.complaints import complaints
from stream.config.compose import override
from stream.config.composition import CONFIG_NAME, VERSION_BASE, hydra_composes_alike
from stream.config.paths import conf_folder
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.tuning.record import SeedRun
from stream.tuning.space import Point

TRIALS = "trials"


@dataclass
class TrialRuns:
    """Runs trials; used in a ``with`` block.

    Attributes:
        folder: of the search; the runs are in ``trials`` below it.
        fixed: the settings of every run, in Hydra's grammar.
        learner: a learner that all of them fit.
        swept: the settings that differ, for the names of folders.
        seeds: of the runs of each trial.
        objective: the metric that is a run's score.
    """

    folder: Path
    fixed: Sequence[str]
    learner: str
    swept: Sequence[str]
    seeds: Sequence[int]
    objective: str
    _stack: ExitStack = field(default_factory=ExitStack)
    _started: int = 0

    @property
    def _sweep(self) -> Path:
        return self.folder / TRIALS

    def __enter__(self) -> Self:
        """Have Hydra compose what all runs share, and make its launcher."""
        with ExitStack() as stack:
            stack.enter_context(complaints())
            stack.enter_context(hydra_composes_alike())
            GlobalHydra.instance().clear()
            stack.callback(GlobalHydra.instance().clear)
            version.setbase(VERSION_BASE)
            search = create_config_search_path(str(conf_folder().resolve()))
            hydra = internal.Hydra.create_main_hydra2("run_stream", search)
            given = [*self.fixed, f"learner={self.learner}", "hydra.mode=MULTIRUN"]
            given.append(override("hydra.sweep.dir", str(self._sweep)))
            composed = hydra.compose_config(CONFIG_NAME, given, run_mode=RunMode.MULTIRUN)
            context = HydraContext(hydra.config_loader, Callbacks(composed))
            function: Any = job
            self._launcher = Plugins.instance().instantiate_launcher(
                context, function.__wrapped__, composed
            )
            self._start: str = composed.hydra.callbacks.sweep.start
            task = cast("list[str]", OmegaConf.to_container(composed.hydra.overrides.task))
            self._shared = [text for text in task if not text.startswith("learner=")]
            self._in_turn = composed.hydra.launcher["_target_"] == IN_THIS_PROCESS
            Plan(None, ["learner", *self.swept, "seed"]).write(self._sweep, self._start)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.__exit__(None, None, None)

    def __call__(self, learner: str, points: Sequence[Point]) -> Iterator[list[SeedRun]]:
        """Yield the runs of each point as they are done, in order.

        In this process one trial is run after another; another launcher gets all of them at once.
        """
        size = 1 if self._in_turn else max(len(points), 1)
        for start in range(0, len(points), size):
            yield from self._launched(learner, points[start : start + size])

    def _launched(self, learner: str, points: Sequence[Point]) -> list[list[SeedRun]]:
        """Run some points; return the runs of each.

        Raises:
            UserError: as a launcher says it.
        """
        jobs = [
            [
                *self._shared,
                f"learner={learner}",
                *(override(f"learner.{key}", value) for key, value in point.items()),
                f"seed={seed}",
            ]
            for point in points
            for seed in self.seeds
        ]
        first, self._started = self._started, self._started + len(jobs)
        for done in self._launcher.launch(jobs, initial_job_idx=first):
            _ = done.return_value  # raises what a job could not note itself
        ended = {outcome.job: outcome for outcome in outcomes(self._sweep, self._start)}
        runs = [
            self._run(ended[first + place], self.seeds[place % len(self.seeds)])
            for place in range(len(jobs))
        ]
        each = len(self.seeds)
        return [runs[place : place + each] for place in range(0, len(runs), each)]

    def _run(self, ended: Outcome, seed: int) -> SeedRun:
        """Return what a job came to."""
        try:
            record = RunRecord.read(self._sweep / ended.folder)
        except UserError:  # it failed before it wrote one
            return SeedRun(seed=seed, folder=ended.folder, reason=ended.reason or ended.outcome)
        timing, score, reason = record.timing, None, ended.reason or ended.outcome
        if ended.outcome in (FINISHED, SKIPPED):
            score = record.metrics.get(self.objective)
            reason = f"{self.objective} has no value on this stream" if score is None else ""
        seconds = timing.baseline_s + timing.train_s + timing.evaluate_s + timing.select_s
        return SeedRun(
            seed=seed,
            folder=ended.folder,
            score=score,
            reason=reason,
            seconds=seconds,
            steps=timing.steps,
        )
