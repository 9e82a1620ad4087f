"""The workers of a run: which engine runs them, and on which devices and threads."""

import torch

from stream.config.run import RunConfig
from stream.config.workers import WorkersConfig
from stream.errors import require
from stream.formatting import count
from stream.run.preloaded import LIBRARIES, PRELOADED
from stream.run.setup import Place, device_called, pick_precision
from stream.run.worker import device_of
from stream.workers.engine import Engine
from stream.workers.processes import Place as Slot
from stream.workers.processes import Processes

DRAWERS = 2
"""How many processes draw: one figure takes as long as all others."""


def engine_of(config: RunConfig) -> Engine | None:
    """Return the engine that a run's workers are of; None without workers.

    Raises:
        UserError: a device that this machine does not have, or more workers than its GPUs may have.
    """
    return engine_for(config.workers, config.device) if config.workers.used else None


def engine_for(settings: WorkersConfig, device_name: str) -> Engine:
    """Return workers that compute on a device, or on all GPUs.

    Raises:
        UserError: as `engine_of`.
    """
    threads = threads_of(settings)
    if settings.engine == "ray":
        from stream.workers.ray import ray_engine  # with Ray, an extra

        require(
            ":" not in device_name,
            f"device={device_name} and workers.engine=ray exclude each other: Ray chooses the "
            "GPU of each worker; use device=cuda",
        )
        on_gpus = device_name != "cpu"
        return ray_engine(settings, on_gpus=on_gpus, threads=threads, preload=LIBRARIES)
    device = device_called(device_name)
    if device.type == "cpu":
        return Processes([Slot(threads)] * settings.count, PRELOADED)
    gpus = [device.index] if device.index is not None else list(range(torch.cuda.device_count()))
    per_gpu = settings.per_gpu or -(-settings.count // len(gpus))
    require(
        settings.count <= per_gpu * len(gpus),
        f"workers.count={settings.count} with workers.per_gpu={per_gpu} needs "
        f"{count(-(-settings.count // per_gpu), 'GPU')}, and there are {len(gpus)}; use "
        f"workers.per_gpu={-(-settings.count // len(gpus))}",
    )
    slots = [Slot(threads, gpus[number // per_gpu]) for number in range(settings.count)]
    return Processes(slots, PRELOADED)


def drawers_beside(engine: Engine) -> Engine | None:
    """Return the processes that draw figures beside the workers of an engine.

    They have imported matplotlib when the last row is there. None where the workers draw.
    """
    return Processes([Slot()] * DRAWERS, PRELOADED) if isinstance(engine, Processes) else None


def threads_of(settings: WorkersConfig) -> int:
    """Return how many threads each worker has: as chosen, or its part of those of the run."""
    return settings.threads or max(1, torch.get_num_threads() // settings.count)


def place_with(config: RunConfig, engine: Engine | None) -> "WorkersPlace | None":
    """Return where a run's workers compute; None without workers. They start now."""
    return None if engine is None else WorkersPlace(config, engine)


class WorkersPlace:
    """Where a run's workers compute; they start now, while the first process reads the data."""

    def __init__(self, config: RunConfig, engine: Engine):
        """Have every worker start."""
        asked = config.device, config.backbone.precision
        jobs = [
            engine.submit(f"starting worker {number + 1}", device_of, *asked)
            for number in range(engine.slots)
        ]
        self._found = jobs[0]
        self._config = config

    def __call__(self) -> Place:
        """Return the place of the first process: it counts and keeps on the CPU.

        Raises:
            UserError: the workers have no such device.
        """
        cpu = torch.device("cpu")
        if self._config.device == "cpu":  # no need to wait for it
            return Place(cpu, pick_precision(self._config.backbone.precision, cpu), cpu, None)
        found = self._found.result()
        return Place(cpu, found.precision, torch.device(found.name), found.gpu)
