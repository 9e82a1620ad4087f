"""Multiruns: each job is run, skipped or continued, and a table at the end says what became of all.

What the jobs know of each other is in files: see `stream.cli.outcomes`.
"""

import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from multiprocessing import current_process
from pathlib import Path
from typing import Any, ClassVar, Self

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from stream.cli.boundary import told
from stream.cli.outcomes import (
    FAILED,
    FINISHED,
    SKIPPED,
    STOPPED,
    Outcome,
    Plan,
    closing_lines,
    heading,
    outcomes,
)
from stream.config.run import RunConfig
from stream.errors import TrainingDivergedError, UserError, is_out_of_memory, require
from stream.files.run_folder import FILE_NAME, LOCK, LOG_NAME, check_folder_of_runs
from stream.files.writable import SWEEP, FullDiskError
from stream.record.run_record import RunRecord
from stream.run.interrupt import Interrupted
from stream.run.lock import exclusive_writer
from stream.run.new_folder import lacking
from stream.run.settings import as_values, deciding_values, first_difference

UNFINISHED = "unfinished"
IN_THIS_PROCESS = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
ONE_AFTER_ANOTHER = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"

Run = Callable[[RunConfig, bool], float | None]


class SweepReport(Callback):
    """Plans a sweep and says at its end what became of its jobs, in the first process.

    ``start`` tells this start of the sweep from others. Hydra calls the methods. Of one run it
    notes which folders Hydra makes for it.
    """

    failed: ClassVar[int] = 0
    """Jobs that failed or were stopped in the sweep that ended last in this process."""

    made: ClassVar[list[Path]] = []
    """The folders that were made for the run that began last in this process."""

    def __init__(self, start: str):
        self._start = start

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Note which folders of the run Hydra is about to make."""
        del kwargs
        before = HydraConfig.instance().cfg
        HydraConfig.instance().set_config(config)  # the name of the folder has the learner in it
        SweepReport.made = lacking(Path(config.hydra.run.dir))
        HydraConfig.instance().cfg = before

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Write down for the jobs how many they are and in what they differ."""
        del kwargs
        plan(config).write(Path(config.hydra.sweep.dir), self._start)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print a table of the jobs and how many ended in which way, and name the failed ones."""
        del kwargs
        folder = Path(config.hydra.sweep.dir)
        found = outcomes(folder, self._start)
        search = config.hydra.sweeper.get("direction") is not None
        print("\n".join(closing_lines(folder, found, search=search)), flush=True)
        SweepReport.failed = sum(outcome.outcome in (FAILED, STOPPED) for outcome in found)


def check_sweep_folder(folder: str | None, name: str | None) -> None:
    """Check that a sweep's folder can be written to: ``hydra.sweep.dir``, or that of its name.

    Raises:
        UserError: what is in the way, or that the folder is one of a run.
    """
    named = Path("runs") if name is None else Path("runs/sweeps") / name
    check_folder_of_runs(named if folder is None else Path(folder), SWEEP)


def plan(config: DictConfig) -> Plan:
    """Return how many jobs a sweep has and in what they differ."""
    sweeper = config.hydra.sweeper
    own = [f"{key}={value}" for key, value in (sweeper.get("params") or {}).items()]
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    given = parser.parse_overrides([*own, *config.hydra.overrides.task])
    # The last one of each setting counts.
    last = {override.get_key_element(): override for override in given}
    swept = {key: override for key, override in last.items() if override.is_sweep_override()}
    jobs = sweeper.get("n_trials")
    if sweeper["_target_"] == ONE_AFTER_ANOTHER:
        jobs = prod(len(list(override.sweep_string_iterator())) for override in swept.values())
    return Plan(jobs, [*swept])


@dataclass(frozen=True)
class Job:
    """One job of a sweep.

    Attributes:
        number: from 0.
        folder: its run folder.
        start: what tells this start of the sweep from others.
        settings: what tells the job from others.
        plan: of the sweep.
        side_by_side: whether others may run at the same time.
    """

    number: int
    folder: Path
    start: str
    settings: str
    plan: Plan
    side_by_side: bool

    @classmethod
    def now(cls) -> Self:
        """Return the job that Hydra has begun in this process."""
        hydra = HydraConfig.get()
        folder, start = Path(hydra.runtime.output_dir), hydra.callbacks["sweep"].start
        planned = Plan.read(folder.parent, start)
        told = [o for o in hydra.overrides.task if o.partition("=")[0] in planned.swept]
        settings = ", ".join(told or [f"learner={hydra.runtime.choices['learner']}"])
        beside = hydra.launcher["_target_"] != IN_THIS_PROCESS
        return cls(hydra.job.num, folder, start, settings, planned, side_by_side=beside)

    @property
    def sweep(self) -> Path:
        """The folder of the sweep."""
        return self.folder.parent

    def others(self) -> list[Outcome]:
        """Return what became of the jobs of this start so far."""
        return outcomes(self.sweep, self.start)


def run_job(
    job: Job, build: Callable[[], RunConfig], run: Run, *, quiet: bool = False
) -> float | None:
    """Run one job of a sweep; a failure is noted and printed, and does not stop the others.

    A job that finished in an earlier start is not run again; an unfinished one goes on from its
    checkpoint, or is set aside where it has none.

    Args:
        job: the job.
        build: makes its configuration.
        run: runs it, from the start or (true) from its checkpoint; returns its average score.
        quiet: say no more than what went wrong.

    Returns:
        The average score, None for a job that failed.

    Raises:
        Interrupted: a signal asked to stop.
    """
    began = time.monotonic()
    own = Outcome(job.number, job.folder.name, job.settings)
    own.write(job.sweep, job.start)
    if not quiet:
        print(heading(own, job.plan, job.others()), flush=True)
    try:
        ended = _dropped(job, own) or _run_once(build(), job, own, run)
    except Interrupted as error:
        ended = replace(own, outcome=STOPPED, reason=f"by {signal.Signals(error.signum).name}")
        _end(job, ended, began, quiet=quiet)
        requeue(error)
        if in_first_process():
            raise
        return None  # raised there, it would have the first process kill those that still save
    except Exception as error:  # noqa: BLE001 - whatever it is, the other jobs go on
        ended = replace(own, outcome=FAILED, reason=told(error))
        known = isinstance(error, UserError | TrainingDivergedError | FullDiskError)
        if not known and not is_out_of_memory(error):
            _keep_traceback(job.folder)
    _end(job, ended, began, quiet=quiet)
    return ended.average


def in_first_process() -> bool:
    """Whether this process was not started by the one that began the sweep (by joblib)."""
    return current_process().name == "MainProcess"


def _dropped(job: Job, own: Outcome) -> Outcome | None:
    """Return how a job ended that is not to be looked at; None for all others."""
    others = [outcome for outcome in job.others() if outcome.job != own.job]
    same = (o for o in others if (o.folder, o.settings) == (own.folder, own.settings))
    twin = next(same, None)
    if twin is not None:  # whose score is that of this job too: Optuna may ask for it twice
        own = replace(own, average=twin.average, forgetting=twin.forgetting)
        return replace(own, outcome=SKIPPED, reason=f"it has the settings of job {twin.job + 1}")
    stopped = next((other for other in others if other.outcome == STOPPED), None)
    if stopped is not None and not in_first_process():
        return replace(own, outcome=STOPPED, reason=stopped.reason)
    return None


def _end(job: Job, ended: Outcome, began: float, *, quiet: bool) -> None:
    """Note how a job ended that began at this time, and say so unless it is done."""
    if ended.outcome not in (FINISHED, *((SKIPPED,) if quiet else ())):
        print(f"{ended.folder} {ended.outcome}: {ended.reason}", flush=True)
    replace(ended, seconds=time.monotonic() - began).write(job.sweep, job.start)


def _run_once(config: RunConfig, job: Job, own: Outcome, run: Run) -> Outcome:
    """Run a job unless it finished before; return how that ended.

    Raises:
        UserError: the folder holds another configuration, or another process writes to it.
    """
    from stream.run.checkpoint import CheckpointStore  # with torch, which no command line needs

    done, skipped = finished_before(config, job.folder), True
    if done is None:
        # Before anything is moved: what looks unfinished may be running in another start.
        with exclusive_writer(job.folder):
            done = finished_before(config, job.folder)  # it may have ended just now
            if done is None:
                skipped, resume = False, CheckpointStore(job.folder).latest() is not None
                if not resume:
                    set_aside(job.folder)
                run(on_its_gpu(config, job.number) if job.side_by_side else config, resume)
                done = RunRecord.read(job.folder)
    scores = done.metrics
    own = replace(own, average=scores["average_score"], forgetting=scores["forgetting"])
    if not skipped:
        return replace(own, outcome=FINISHED)
    return replace(own, outcome=SKIPPED, reason=_skipped(config, done))


def _skipped(config: RunConfig, done: RunRecord) -> str:
    """Say why a job is not run, and what was asked for that it does not have."""
    then, now = done.config.get("probe"), as_values(config)["probe"]
    lacks = first_difference(then, now, "probe")
    return "it finished before" if lacks is None else f"it finished before, although {lacks}"


def on_its_gpu(config: RunConfig, number: int) -> RunConfig:
    """Return the configuration of a job, which takes its turn at the GPUs that are visible."""
    import torch

    gpus = torch.cuda.device_count()
    if config.device != "auto" or gpus < 2:
        return config
    return replace(config, device=f"cuda:{number % gpus}")


def requeue(error: Interrupted) -> None:
    """Have submitit put this job back into the queue, where it is what runs the job.

    Its own handler of the signal that warns of a job's end does so, and does not return. Ctrl-C
    puts nothing back.
    """
    if "SUBMITIT_EXECUTOR" in os.environ and error.signum != signal.SIGINT:
        name = os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2")  # as submitit reads it
        signal.raise_signal(signal.Signals[f"SIG{name}"])


def _keep_traceback(folder: Path) -> None:
    """Append the present exception's traceback to the job's log."""
    with (folder / LOG_NAME).open("a", encoding="utf-8") as log:
        log.write(traceback.format_exc())


def finished_before(config: RunConfig, folder: Path) -> RunRecord | None:
    """Return the record of the same job if it finished earlier; None if it has to be run.

    Raises:
        UserError: the folder holds a run of another configuration.
    """
    if not (folder / FILE_NAME).exists():
        return None
    record = RunRecord.read(folder)
    different = first_difference(
        deciding_values(record.config, record.learner),
        deciding_values(as_values(config), config.learner.name),
    )
    require(
        different is None,
        f"{folder} holds a run of another configuration ({different}); choose another sweep name",
    )
    return record if record.status == "complete" else None


def set_aside(folder: Path) -> None:
    """Move what an unfinished job left to ``unfinished/`` of the sweep; nothing is deleted.

    Its results.json gets another name, so that reports do not take it for a run of the sweep. The
    lock stays where it is, because the caller holds it.
    """
    left = [path for path in folder.iterdir() if path.name != LOCK]
    if not left:
        return
    aside = folder.parent / UNFINISHED
    aside.mkdir(exist_ok=True)
    number = 1
    while (target := aside / f"{folder.name}-{number}").exists():
        number += 1
    target.mkdir()
    for path in left:
        path.rename(target / path.name)
    if (target / FILE_NAME).exists():
        (target / FILE_NAME).rename(target / f"unfinished-{FILE_NAME}")
    print(f"{folder.name}: an unfinished run was moved to {target}", flush=True)
