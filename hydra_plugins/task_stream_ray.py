"""``hydra/launcher=ray``, which Hydra finds here: it looks for plugins in this package alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class RayLauncherConfig:
    """How the jobs of a multirun are spread over a Ray cluster.

    Attributes:
        address: of the cluster; null starts a Ray on this machine.
        cpus: that a job takes; it computes with as many threads, unless OMP_NUM_THREADS is set.
        gpus: that a job takes; 0.25 has four jobs share one. null takes one where there are any.
    """

    _target_: str = "hydra_plugins.task_stream_ray.RayLauncher"
    address: str | None = None
    cpus: int = 1
    gpus: float | None = None


class RayLauncher(Launcher):
    """Launches jobs on Ray; Hydra calls the methods."""

    def __init__(self, address: str | None, cpus: int, gpus: float | None):
        self._takes = (address, cpus, gpus)

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Keep what all jobs have in common."""
        self._common: tuple[Any, ...] = (hydra_context, task_function, config)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs; return how each ended."""
        from stream.cli.ray_jobs import RayJobs  # not for every command line

        return RayJobs(*self._common).run(job_overrides, initial_job_idx, *self._takes)


if find_spec("ray") is not None:
    ConfigStore.instance().store(
        group="hydra/launcher", name="ray", node=RayLauncherConfig, provider="task_stream"
    )
