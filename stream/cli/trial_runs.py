"""The runs of trials: ordinary jobs of a sweep, started through Hydra's launcher or on workers.

So `hydra/launcher=joblib` or `workers=4` runs several at once, a finished job is not run again, and
an unfinished one goes on from its checkpoint (`stream.cli.sweeps`).
"""

import logging
import signal
import threading
from _thread import interrupt_main
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
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
from stream.config.loader import CONFIG_NAME, VERSION_BASE, hydra_composes_alike
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
class _Begun:
    """A trial that workers were given.

    Attributes:
        numbers: of its jobs.
        running: the number of each job that is not known to have ended.
    """

    numbers: range
    running: dict[Future[None], int]


@dataclass
class TrialRuns:
    """Runs trials: `stream.tuning.search.Runs`; used in a ``with`` block.

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
    _waiting: deque[tuple[str, Sequence[Point]]] = field(default_factory=deque)
    _begun: dict[str, deque[_Begun]] = field(default_factory=dict)

    @property
    def side_by_side(self) -> bool:
        """Whether there are workers, which need not wait until a learner's round is done."""
        return self.workers.used

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

    def __exit__(self, kind: type[BaseException] | None, *others: object) -> None:
        """End the workers; after an error or a signal, when runs have saved what they could."""
        try:
            if kind is not None and self._engine is not None:
                self._engine.stop()
                begun = [trial for trials in self._begun.values() for trial in trials]
                wait([future for trial in begun for future in trial.running])
        finally:
            self._stack.close()

    def begin(self, learner: str, points: Sequence[Point]) -> None:
        """Have points of a learner tried: by workers from now on, else when `done` gets to them."""
        if self._engine is None:
            self._waiting.append((learner, points))
            return
        jobs, number = self._jobs(learner, points)
        trials = self._begun.setdefault(learner, deque())
        while jobs:
            own, jobs = jobs[: len(self.seeds)], jobs[len(self.seeds) :]
            numbers = range(number, number := number + len(own))
            submitted = (self._submit(self._engine, *job) for job in zip(numbers, own, strict=True))
            trials.append(_Begun(numbers, dict(zip(submitted, numbers, strict=True))))

    def _submit(self, engine: Engine, number: int, settings: list[str]) -> Future[None]:
        """Have a worker run a job."""
        return engine.submit(f"run {number + 1}", run_trial, self._of_workers, settings, number)

    def done(self) -> Iterator[tuple[str, list[SeedRun]]]:
        """Yield a learner and the runs of a point, in the order of the learner's points.

        In this process one trial is run after another; other launchers get all of a round at once.
        """
        yield from self._worked()
        while self._waiting:
            learner, points = self._waiting.popleft()
            size = 1 if self._in_turn else max(len(points), 1)
            for start in range(0, len(points), size):
                for runs in self._launched(learner, points[start : start + size]):
                    yield learner, runs

    def _worked(self) -> Iterator[tuple[str, list[SeedRun]]]:
        """Yield what workers have done, of whichever learner it is done first."""
        while self._begun:
            first = {learner: trials[0] for learner, trials in self._begun.items()}
            running = [future for trial in first.values() for future in trial.running]
            ended = wait(running, return_when=FIRST_COMPLETED).done
            for learner, trial in first.items():
                for future in ended & trial.running.keys():
                    self._end(trial.running.pop(future), future)
                if not trial.running:
                    self._begun[learner].popleft()
                    if not self._begun[learner]:
                        del self._begun[learner]
                    yield learner, self._runs(trial.numbers)

    def _end(self, number: int, ended: Future[None]) -> None:
        """Note how a job ended whose worker died; raise what a job could not note itself."""
        try:
            ended.result()
        except WorkerLostError as error:
            self._note_lost(number, str(error))

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
