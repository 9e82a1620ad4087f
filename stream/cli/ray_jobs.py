"""Jobs of a multirun on Ray: each is a task that Ray starts where there is room for it.

A job whose process dies is started again by Ray, and goes on from its checkpoint. What a job shows
stays in its run folder and in Ray's own logs; the first process says which job begins, and what
went wrong.
"""

import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from stream.cli.outcomes import FAILED, RUNNING, STOPPED, Outcome, Plan, heading, outcomes
from stream.config.display import QUIET
from stream.errors import require
from stream.workers.engine import ATTEMPTS
from stream.workers.ray_connection import connect, require_room

LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class RayJobs:
    """What the jobs of a sweep have in common; it is pickled for them.

    Attributes:
        context: Hydra's.
        function: what a job calls with its configuration.
        config: of the sweep.
    """

    context: HydraContext
    function: TaskFunction
    config: DictConfig

    def run(
        self,
        jobs: Sequence[Sequence[str]],
        first: int,
        address: str | None,
        cpus: int,
        gpus: float | None,
    ) -> list[JobReturn]:
        """Run jobs; return how each ended. One whose processes died returns None.

        Args:
            jobs: the settings of each.
            first: the number of the first of them.
            address: of the cluster; None starts a Ray on this machine.
            cpus: that a job takes.
            gpus: that a job takes; None takes one where there are any.

        Raises:
            UserError: there is no such cluster, or no machine of it has as much.
            Interrupted: a signal asked to stop; the jobs have saved what they could.
        """
        problem = f"hydra.launcher.cpus must be 1 or more, got {cpus}"
        require(cpus >= 1, problem)
        watch = _Watch(Path(self.config.hydra.sweep.dir), self.config)
        at = f"joining the Ray cluster at {address}" if address else "starting Ray on this machine"
        watch.say(at)
        ray = connect(address)
        needed = {"CPU": float(cpus), "GPU": self._gpus(ray, gpus)}
        require_room(ray, {name: amount for name, amount in needed.items() if amount})
        task = ray.remote(
            num_cpus=cpus,
            num_gpus=needed["GPU"],
            max_retries=ATTEMPTS - 1,
            max_calls=1,  # a job leaves nothing behind in a process, nor on a GPU
        )(run_one)
        common = ray.put((self, Singleton.get_state(), os.getcwd()))
        calls = [task.remote(common, list(job), first + place) for place, job in enumerate(jobs)]
        ends = [call.future() for call in calls]
        try:
            watch.until_done(ends)
        except KeyboardInterrupt:
            for call in calls:
                ray.cancel(call)  # as Ctrl-C there: a run saves, and what has not begun never does
            wait(ends)
            watch.look()
            ray.shutdown()
            raise
        return [
            self._ended(ray, watch, first + place, list(jobs[place]), end)
            for place, end in enumerate(ends)
        ]

    def _gpus(self, ray: Any, asked: float | None) -> float:
        """Return how many GPUs a job takes."""
        if asked is not None:
            return asked
        there = ray.cluster_resources().get("GPU", 0) >= 1
        return 1.0 if there and self.config.device != "cpu" else 0.0

    def _ended(
        self, ray: Any, watch: "_Watch", number: int, settings: list[str], end: Future[JobReturn]
    ) -> JobReturn:
        """Return how a job ended; note it where the job could not."""
        error = end.exception()
        if error is None:
            return end.result()
        if not isinstance(error, ray.exceptions.RayTaskError):
            watch.lost(number, ", ".join(settings))
            return JobReturn(overrides=settings, status=JobStatus.COMPLETED)
        ended = JobReturn(overrides=settings, status=JobStatus.FAILED)
        ended.return_value = getattr(error, "cause", error)  # which raises it where it is read
        return ended


class _Watch:
    """Says in the first process what becomes of the jobs."""

    def __init__(self, sweep: Path, config: DictConfig):
        self._sweep, self._start = sweep, config.hydra.callbacks.sweep.start
        self._quiet = config.display == QUIET
        self._begun: set[int] = set()
        self._failed: set[int] = set()

    def say(self, text: str) -> None:
        """Say something unless only the result is asked for."""
        if not self._quiet:
            print(text, flush=True)

    def until_done(self, ends: Sequence[Future[Any]]) -> None:
        """Return when all jobs have ended."""
        left = set(ends)
        while left:
            left = wait(left, LOOK_EVERY_S, FIRST_COMPLETED).not_done
            self.look()

    def look(self) -> None:
        """Say which jobs have begun since the last look, and which went wrong."""
        found = outcomes(self._sweep, self._start)
        plan = Plan.read(self._sweep, self._start)
        for outcome in found:
            if outcome.job not in self._begun:
                self._begun.add(outcome.job)
                self.say(heading(outcome, plan, found))
            if outcome.outcome in (FAILED, STOPPED) and outcome.job not in self._failed:
                self._failed.add(outcome.job)
                print(f"{outcome.folder} {outcome.outcome}: {outcome.reason}", flush=True)

    def lost(self, number: int, settings: str) -> None:
        """Note that a job's process died each time."""
        found = {outcome.job: outcome for outcome in outcomes(self._sweep, self._start)}
        begun = found.get(number, Outcome(number, f"job-{number}", settings))
        if begun.outcome == RUNNING:
            reason = f"its process died {ATTEMPTS} times (was there memory enough?)"
            replace(begun, outcome=FAILED, reason=reason).write(self._sweep, self._start)
        self.look()


def run_one(common: tuple[RayJobs, Any, str], overrides: list[str], number: int) -> JobReturn:
    """Run one job, in a process that Ray started for it."""
    jobs, state, folder = common
    current_process().name = f"RayJob-{number}"  # so that it is seen to be none of the first one
    os.chdir(folder)
    setup_globals()
    Singleton.set_state(state)
    config = jobs.context.config_loader.load_sweep_config(jobs.config, overrides)
    with open_dict(config):
        config.hydra.job.id = f"{config.hydra.job.name}_{number}"
        config.hydra.job.num = number
    HydraConfig.instance().set_config(config)
    return run_job(
        hydra_context=jobs.context,
        task_function=jobs.function,
        config=config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )
