"""The runs of trials: ordinary jobs of a sweep, started through Hydra's launcher or on workers.

So `hydra/launcher=joblib` or `workers=4` runs several at once, a finished job is not run again, and
an unfinished one goes on from its checkpoint (`stream.cli.sweeps`).
"""

import logging
import signal
import threading
from _thread import interrupt_main
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import current_process
from pathlib import Path
from typing import Any, Self, cast

from hydra import version
from hydra._internal import hydra as internal
from hydra._internal.callbacks import Callbacks
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf

from stream.cli.outcomes import FAILED, FINISHED, SKIPPED, Outcome, Plan, outcomes
from stream.cli.run import job
from stream.cli.sweeps import IN_THIS_PROCESS
from stream.config.complaints import complaints
from stream.config.compose import override
from stream.config.composition import CONFIG_NAME, VERSION_BASE, hydra_composes_alike
from stream.config.paths import conf_folder
from stream.config.workers import WorkersConfig
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.run.settings import register_groups
from stream.tuning.record import SeedRun
from stream.tuning.space import Point
from stream.workers.engine import Engine, Worker, WorkerLostError

TRIALS = "trials"
LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class TrialSweep:
    """The sweep that trials are jobs of: what a process needs to launch them.

    Attributes:
        settings: of every run and of Hydra, in Hydra's grammar; the learner is one that all fit.
        start: what tells this start of the search from others; None in its first process, which
            has Hydra find one.
    """

    settings: tuple[str, ...]
    start: str | None = None

    def opened(self, stack: ExitStack) -> tuple[Any, DictConfig]:
        """Have Hydra compose what all runs share, until a stack ends; return launcher and config.

        Raises:
            UserError: what cannot be composed.
        """
        stack.enter_context(complaints())
        stack.enter_context(hydra_composes_alike())
        GlobalHydra.instance().clear()
        stack.callback(GlobalHydra.instance().clear)
        version.setbase(VERSION_BASE)
        search = create_config_search_path(str(conf_folder().resolve()))
        hydra = internal.Hydra.create_main_hydra2("run_stream", search)
        given = [*self.settings, "hydra.mode=MULTIRUN"]
        if self.start is not None:
            given.append(override("hydra.callbacks.sweep.start", self.start))
        composed = hydra.compose_config(CONFIG_NAME, given, run_mode=RunMode.MULTIRUN)
        context = HydraContext(hydra.config_loader, Callbacks(composed))
        function: Any = job
        launcher = Plugins.instance().instantiate_launcher(context, function.__wrapped__, composed)
        return launcher, composed


def run_trial(worker: Worker, sweep: TrialSweep, overrides: list[str], number: int) -> None:
    """Run one job of a search, on a worker.

    Raises:
        Exception: what the job could not note itself.
    """
    current_process().name = f"Trial-{number}"  # so that it is seen to be none of the first one
    if "trials" not in worker.kept:
        logging.getLogger("stream").handlers.clear()  # a run's log is in its own folder
        register_groups()
        worker.kept["trials"] = sweep.opened(ExitStack())[0]
    with _stopped_with(worker):
        for done in worker.kept["trials"].launch([overrides], initial_job_idx=number):
            _ = done.return_value


@contextmanager
def _stopped_with(worker: Worker) -> Iterator[None]:
    """Have what runs inside the block get a signal when the workers are to stop: runs save then."""
    before = signal.signal(signal.SIGUSR1, lambda number, frame: None)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_EVERY_S):
            if worker.stopping():
                interrupt_main(signal.SIGUSR1)
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before or signal.SIG_IGN)


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
        workers: what does the runs, if there are several.
        device: where workers compute.
    """

    folder: Path
    fixed: Sequence[str]
    learner: str
    swept: Sequence[str]
    seeds: Sequence[int]
    objective: str
    workers: WorkersConfig = field(default_factory=WorkersConfig)
    device: str = "auto"
    _stack: ExitStack = field(default_factory=ExitStack)
    _engine: Engine | None = None
    _started: int = 0

    @property
    def _sweep(self) -> Path:
        return self.folder / TRIALS

    def __enter__(self) -> Self:
        """Have Hydra compose what all runs share; make its launcher, or start workers."""
        sweep_dir = override("hydra.sweep.dir", str(self._sweep))
        settings = (*self.fixed, f"learner={self.learner}", sweep_dir)
        with ExitStack() as stack:
            self._launcher, composed = TrialSweep(settings).opened(stack)
            self._start: str = composed.hydra.callbacks.sweep.start
            self._of_workers = TrialSweep(settings, self._start)
            task = cast("list[str]", OmegaConf.to_container(composed.hydra.overrides.task))
            self._shared = [text for text in task if not text.startswith("learner=")]
            self._in_turn = composed.hydra.launcher["_target_"] == IN_THIS_PROCESS
            Plan(None, ["learner", *self.swept, "seed"]).write(self._sweep, self._start)
            if self.workers.used:
                from stream.run.engines import engine_for  # with torch

                self._engine = stack.enter_context(engine_for(self.workers, self.device))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.__exit__(None, None, None)

    def __call__(self, learner: str, points: Sequence[Point]) -> Iterator[list[SeedRun]]:
        """Yield the runs of each point as they are done, in order.

        In this process one trial is run after another; workers and other launchers get all of them
        at once.
        """
        if self._engine is not None:
            yield from self._worked(self._engine, learner, points)
            return
        size = 1 if self._in_turn else max(len(points), 1)
        for start in range(0, len(points), size):
            yield from self._launched(learner, points[start : start + size])

    def _worked(
        self, engine: Engine, learner: str, points: Sequence[Point]
    ) -> Iterator[list[SeedRun]]:
        """Have workers run some points; yield the runs of each.

        Raises:
            Interrupted: a signal asked to stop; the runs have saved what they could.
        """
        jobs, first = self._jobs(learner, points)
        futures = [
            engine.submit(
                f"run {first + place + 1}", run_trial, self._of_workers, settings, first + place
            )
            for place, settings in enumerate(jobs)
        ]
        each = len(self.seeds)
        try:
            for place in range(0, len(jobs), each):
                numbers = range(first + place, first + place + each)
                for number, future in zip(numbers, futures[place:], strict=False):
                    try:
                        future.result()
                    except WorkerLostError as error:
                        self._note_lost(number, str(error))
                yield self._runs(numbers)
        except BaseException:
            engine.stop()
            wait(futures)
            raise

    def _note_lost(self, number: int, reason: str) -> None:
        """Note that a run failed whose processes died."""
        begun = [o for o in outcomes(self._sweep, self._start) if o.job == number]
        own = begun[0] if begun else Outcome(number, f"run-{number + 1}", "")
        replace(own, outcome=FAILED, reason=reason).write(self._sweep, self._start)

    def _launched(self, learner: str, points: Sequence[Point]) -> list[list[SeedRun]]:
        """Run some points; return the runs of each.

        Raises:
            UserError: as a launcher says it.
        """
        jobs, first = self._jobs(learner, points)
        for done in self._launcher.launch(jobs, initial_job_idx=first):
            _ = done.return_value  # raises what a job could not note itself
        each = len(self.seeds)
        starts = range(first, first + len(jobs), each)
        return [self._runs(range(start, start + each)) for start in starts]

    def _jobs(self, learner: str, points: Sequence[Point]) -> tuple[list[list[str]], int]:
        """Return the settings of each run of some points, and the number of the first."""
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
        return jobs, first

    def _runs(self, numbers: range) -> list[SeedRun]:
        """Return what the jobs of one point came to, one for each seed."""
        ended = {outcome.job: outcome for outcome in outcomes(self._sweep, self._start)}
        pairs = zip(numbers, self.seeds, strict=True)
        return [self._run(ended[number], seed) for number, seed in pairs]

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
