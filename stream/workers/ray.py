"""The engine of workers that Ray runs: processes of this machine, or of a cluster with its GPUs.

Ray places the workers, gives each its share of a GPU, moves values between machines, and starts a
worker again that died. A worker is an actor of Ray's and no task: it keeps what it has built and
its GPU from one job to the next. What Ray calls an actor's retries is not used, because they wait
for the same worker, whose machine may be gone: a job whose worker died goes to any other one.

On a cluster, all machines need this program and its data under the same paths.
"""

import logging
import os
import secrets
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, Self

from stream.config.workers import WorkersConfig
from stream.errors import one_line
from stream.workers.engine import ATTEMPTS, WorkerLostError
from stream.workers.ray_connection import (
    connect,
    gpu_share,
    on_this_machine,
    ray_module,
    require_room,
)
from stream.workers.ray_worker import Mailbox, RayShared, RayWorker

logger = logging.getLogger(__name__)


@dataclass
class _Job:
    """A job that is to be done or being done."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    future: Future[Any] = field(default_factory=Future)
    attempts: int = 0


def ray_engine(
    settings: WorkersConfig,
    *,
    on_gpus: bool,
    threads: int = 1,
    preload: tuple[str, ...] = (),
) -> "RayEngine":
    """Return the engine that settings stand for; ``on_gpus`` allows GPUs, where there are any."""
    return RayEngine(
        settings.count,
        threads=threads,
        on_gpus=on_gpus,
        per_gpu=settings.per_gpu,
        address=settings.address,
        preload=preload,
    )


class RayEngine:
    """Workers on Ray; used in a ``with`` block.

    Args:
        slots: how many workers.
        threads: with which each computes; it takes as many CPUs of Ray's.
        on_gpus: whether they compute on GPUs, if the cluster has any.
        per_gpu: how many of them share a GPU; None spreads them over all there are.
        address: of a cluster; None starts a Ray on this machine.
        preload: modules that workers import at once.
    """

    def __init__(
        self,
        slots: int,
        *,
        threads: int = 1,
        on_gpus: bool = False,
        per_gpu: int | None = None,
        address: str | None = None,
        preload: tuple[str, ...] = (),
    ):
        self.slots = slots
        self._threads, self._on_gpus, self._per_gpu = threads, on_gpus, per_gpu
        self._address, self._preload = address, preload
        self._lock = Lock()
        self._waiting: deque[_Job] = deque()
        self._idle: list[Any] = []
        self._workers: list[Any] = []
        self._own = ThreadPoolExecutor(1, thread_name_prefix="ray-ended")
        self._alive, self._lost = slots, ""
        self._open = False

    def __enter__(self) -> Self:
        """Start the workers.

        Raises:
            UserError: Ray is not installed, there is no such cluster, or it has room for none.
        """
        self._connected_before = ray_module().is_initialized()
        self._ray = connect(self._address, self.slots * self._threads)
        try:
            resources = self._resources()
            self._open = True
            # By name: a worker that Ray starts again gets the same arguments, which hold no object.
            name = f"mailbox-{secrets.token_hex(8)}"
            self._mailbox = (
                self._ray.remote(**on_this_machine(self._ray))(Mailbox).options(name=name).remote()
            )
            actor = self._ray.remote(max_restarts=-1, **resources)(RayWorker)
            given = (name, self._threads, os.getcwd(), self._preload)
            for _ in range(self.slots):
                self._workers.append(actor.remote(*given))
                self._await(self._workers[-1])
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _resources(self) -> dict[str, float]:
        """Return what each worker takes of the cluster.

        Raises:
            UserError: no machine has as much.
        """
        needed: dict[str, float] = {"CPU": self._threads}
        gpus = int(self._ray.cluster_resources().get("GPU", 0))
        if self._on_gpus and (gpus or self._per_gpu):
            needed["GPU"] = gpu_share(self._per_gpu or -(-self.slots // gpus))
        room = require_room(self._ray, needed)
        if room < self.slots:
            logger.warning("the Ray cluster has room for %d of %d workers", room, self.slots)
        return {f"num_{name.lower()}s": amount for name, amount in needed.items()}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers."""
        self._cancel_waiting()
        for worker in self._workers:
            self._ray.kill(worker)
        if not self._connected_before:
            self._ray.shutdown()
        self._own.shutdown(wait=False, cancel_futures=True)

    def share(self, value: Any) -> RayShared:
        """Put a value into Ray's object store."""
        return RayShared(self._ray.put(value))

    def submit(
        self, job: str, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> Future[Any]:
        """Have a worker call a function; see `stream.workers.engine.Engine`."""
        new = _Job(job, function, arguments, named)
        with self._lock:
            if self._open:
                self._waiting.append(new)
            else:
                new.future.set_exception(CancelledError())
        self._begin()
        return new.future

    def messages(self) -> list[Any]:
        """Return what workers have told since the last call."""
        # In Python's own waiting a signal's handler raises what it raises.
        told = self._mailbox.take.remote().future().result()
        found = []
        for message in told:
            if isinstance(message, logging.LogRecord):
                logging.getLogger(message.name).handle(message)
            else:
                found.append(message)
        return found

    def stop(self) -> None:
        """Cancel the jobs that have not begun, and ask the others to return what there is."""
        self._cancel_waiting()
        self._mailbox.stop.remote()

    def _cancel_waiting(self) -> None:
        with self._lock:
            self._open = False  # nothing begins any more
            waiting, self._waiting = [*self._waiting], deque()
        for job in waiting:
            if job.attempts or job.future.set_running_or_notify_cancel():
                job.future.set_exception(CancelledError())

    def _await(self, worker: Any) -> None:
        """Have a worker take jobs as soon as it is there, also after it died."""
        call = worker.ready.options(max_task_retries=-1).remote()
        call.future().add_done_callback(partial(self._hand_on, self._arrived, worker))

    def _hand_on(self, *call: Any) -> None:
        """Make a call in a thread of our own: whoever waits in one of Ray's has Ray wait."""
        with suppress(RuntimeError):  # it comes after the end
            self._own.submit(*call)

    def _arrived(self, worker: Any, ready: Future[Any]) -> None:
        """Give a worker its first job; in a thread of its own."""
        error = ready.exception()
        with self._lock:
            if error is None:
                self._idle.append(worker)
            else:
                self._alive -= 1
                self._lost = one_line(error)
        self._begin()

    def _free(self, worker: Any) -> None:
        """Give a worker the next job."""
        with self._lock:
            self._idle.append(worker)
        self._begin()

    def _begin(self) -> None:
        """Hand out jobs while there are jobs and workers without one."""
        self._give_up_if_alone()
        while True:
            with self._lock:
                if not (self._open and self._waiting and self._idle):
                    return
                job, worker = self._waiting.popleft(), self._idle.pop(0)
            if not job.attempts and not job.future.set_running_or_notify_cancel():
                self._free_again(worker)
                continue
            job.attempts += 1
            try:
                call = worker.run.remote(job.function, job.arguments, job.named)
            except Exception as error:  # noqa: BLE001 - it cannot be pickled: the caller is told
                self._free_again(worker)
                job.future.set_exception(error)
                continue
            call.future().add_done_callback(partial(self._hand_on, self._ended, job, worker))

    def _give_up_if_alone(self) -> None:
        """Fail the jobs that no worker will ever do."""
        with self._lock:
            if self._alive or not self._open:
                return
            waiting, self._waiting = [*self._waiting], deque()
        for job in waiting:
            if job.attempts or job.future.set_running_or_notify_cancel():
                job.future.set_exception(WorkerLostError(job.name, self._lost))

    def _free_again(self, worker: Any) -> None:
        """Put a worker back that got no job."""
        with self._lock:
            self._idle.insert(0, worker)

    def _ended(self, job: _Job, worker: Any, done: Future[Any]) -> None:
        """Hand on how a job ended; in a thread of its own."""
        errors = self._ray.exceptions
        error = done.exception()
        if not isinstance(error, errors.RayActorError):
            self._free(worker)
            if error is None:
                job.future.set_result(done.result())
            else:
                job.future.set_exception(_as_raised(error))
            return
        if job.attempts >= ATTEMPTS:
            job.future.set_exception(WorkerLostError(job.name))
        elif self._take_back(job):
            logger.warning("a worker died of: %s; it is done again", job.name)
            self._begin()
        else:
            job.future.set_exception(CancelledError())
        self._await(worker)

    def _take_back(self, job: _Job) -> bool:
        """Have a job done again, before all others, unless nothing begins any more."""
        with self._lock:
            if self._open:
                self._waiting.appendleft(job)
            return self._open


def _as_raised(error: BaseException) -> BaseException:
    """Return what a job raised; Ray's report, with the worker's traceback, is its cause."""
    raised = getattr(error, "cause", None)
    if not isinstance(raised, BaseException):
        return error
    raised.__cause__ = error
    return raised
