"""The way to Ray: joining a cluster or starting one of this machine, and what there is room for."""

import logging
import math
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import current_thread, main_thread
from typing import Any

from stream.errors import UserError, one_line, require

ENVIRONMENT = {
    "RAY_worker_niceness": "0",  # it lets everything else on the machine go first
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # what Ray would print of workers; they tell by themselves
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what it warns of otherwise
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Read by Ray when it is imported, unless the environment has them."""
WARNINGS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What a terminal or a scheduler sends to all processes that were started together."""


def ray_module() -> Any:
    """Import Ray, which then keeps the screen as it is.

    Raises:
        UserError: it is not installed.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        return import_module("ray")
    except ImportError as error:
        raise UserError("Ray is not installed: pip install '.[ray]' in the clone") from error


def connect(address: str | None, cpus: int | None = None) -> Any:
    """Connect this process to a Ray cluster, or to a new one of this machine's own; return Ray.

    A process that is connected stays so. Starting a cluster takes seconds; it ends with this
    process, or with ``ray.shutdown()``.

    Args:
        address: as Ray takes it (``HOST:6379``, ``auto``); None starts one.
        cpus: how many CPUs this machine may be taken for, if one is started; None counts them.

    Raises:
        UserError: there is no such cluster, or Ray is not installed.
    """
    ray = ray_module()
    if ray.is_initialized():
        return ray
    where: dict[str, Any] = {"address": address or "local"}
    if not address:
        where |= {"num_cpus": cpus, "include_dashboard": False}
    try:
        with _own_signals():
            ray.init(**where, log_to_driver=False, logging_level=logging.CRITICAL)
    except (OSError, RuntimeError, ValueError) as error:
        at = f"the Ray cluster at {address}" if address else "a Ray of this machine"
        raise UserError(f"cannot use {at}: {one_line(error)}") from error
    return ray


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep signals for this process: Ray takes SIGTERM, and its daemons would die of warnings.

    What is blocked when a daemon begins stays blocked in it; what came meanwhile comes here later.
    """
    if current_thread() is not main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, WARNINGS)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def gpu_share(per_gpu: int) -> float:
    """Return the share of a GPU of which ``per_gpu`` workers use one; Ray counts in 1/10000."""
    return 1.0 if per_gpu == 1 else math.floor(10_000 / per_gpu) / 10_000


def require_room(ray: Any, needed: Mapping[str, float]) -> int:
    """Return how many processes that need so much a cluster has room for, were it empty.

    Args:
        ray: what `connect` returned.
        needed: how much of what Ray counts: ``CPU``, ``GPU``.

    Raises:
        UserError: no machine has as much.
    """
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    room = sum(
        min(math.floor(machine.get(name, 0) / amount + 1e-9) for name, amount in needed.items())
        for machine in machines
    )
    told = " and ".join(f"{amount:g} {name}" for name, amount in needed.items())
    require(room > 0, f"no machine of the Ray cluster has {told}, which one process takes")
    return room


def on_this_machine(ray: Any) -> dict[str, Any]:
    """Return how something small is placed beside this process, so that it lives as long."""
    kind: Any = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    here = ray.get_runtime_context().get_node_id()
    return {"num_cpus": 0, "scheduling_strategy": kind(node_id=here, soft=False)}
