"""The engine of workers that Ray runs: processes of this machine, or of a cluster with its GPUs.

Ray places the workers, gives each its share of a GPU, moves values between machines, and starts a
worker again that died. A worker is an actor of Ray's and no task: it keeps what it has built and
its GPU from one job to the next. What Ray calls an actor's retries is not used, because they wait
for the same worker, whose machine may be gone: a job whose worker died goes to any other one.

On a cluster, all machines need this program and its data under the same paths.
"""

import logging
import math
import os
import secrets
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from logging.handlers import QueueHandler
from threading import Lock, current_thread, main_thread
from types import TracebackType
from typing import Any, Self

from stream.config.workers import WorkersConfig
from stream.errors import UserError, one_line, require
from stream.workers.engine import ATTEMPTS, WorkerLostError

logger = logging.getLogger(__name__)

QUIET = {
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # what Ray would print of workers; they tell by themselves
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what it warns of otherwise
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Read by Ray when it is imported, unless the environment has them."""
WARNINGS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What a terminal or a scheduler sends to all processes that were started together."""
STOP_EVERY_S = 0.1
"""How often a worker looks whether it was asked to stop."""


def ray_module() -> Any:
    """Import Ray, which then keeps the screen as it is.

    Raises:
        UserError: it is not installed.
    """
    for name, value in QUIET.items():
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


@dataclass(frozen=True)
class RayShared:
    """A value in Ray's object store: each machine has it once, arrays are mapped."""

    reference: Any

    def get(self) -> Any:
        """Return the value; arrays in it cannot be written to."""
        return ray_module().get(self.reference)


class Mailbox:
    """What workers have told and the first process has not read; an actor of Ray's."""

    def __init__(self) -> None:
        self._messages: list[Any] = []
        self._stopping = False

    def tell(self, message: Any) -> None:
        """Keep a message."""
        self._messages.append(message)

    def take(self) -> list[Any]:
        """Return the messages since the last call."""
        taken, self._messages = self._messages, []
        return taken

    def stop(self) -> None:
        """Have `stopping` be true."""
        self._stopping = True

    def stopping(self) -> bool:
        """Return whether the workers are to stop."""
        return self._stopping


class RayWorker:
    """A process that does jobs, one at a time; an actor of Ray's.

    Attributes:
        kept: what functions keep from one job to the next.
    """

    def __init__(self, mailbox: str, threads: int, folder: str, preload: tuple[str, ...]):
        self.kept: dict[str, Any] = {}
        self._mailbox = ray_module().get_actor(mailbox)
        self._told: Any = None
        self._asked: Any = None
        self._looked, self._stopping = -math.inf, False
        if os.path.isdir(folder):  # so that relative paths mean the same
            os.chdir(folder)
        for name in preload:
            import_module(name)
        _compute_with(threads)
        log = logging.getLogger("stream")
        log.setLevel(logging.INFO)
        log.addHandler(_ToMailbox(self))

    def ready(self) -> None:
        """Return when this process is there."""

    def run(self, function: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Do a job; what it told has arrived when it returns."""
        try:
            return function(self, *arguments, **named)
        finally:
            if self._told is not None:
                ray_module().get(self._told)

    def tell(self, message: Any) -> None:
        """Have `RayEngine.messages` return a message."""
        self._told = self._mailbox.tell.remote(message)

    def stopping(self) -> bool:
        """Whether `RayEngine.stop` was called a moment ago or before."""
        now = time.monotonic()
        if not self._stopping and now - self._looked >= STOP_EVERY_S:
            self._looked = now
            self._ask(ray_module())
        return self._stopping

    def _ask(self, ray: Any) -> None:
        """Ask the mailbox, without waiting for its answer, which the next call gets."""
        if self._asked is not None:
            done, _ = ray.wait([self._asked], timeout=0)
            if not done:
                return
            self._stopping = ray.get(self._asked)
        self._asked = self._mailbox.stopping.remote()


class _ToMailbox(QueueHandler):
    """Gives what is logged in a worker to the loggers of the first process."""

    def __init__(self, worker: RayWorker):
        super().__init__(None)  # pyright: ignore[reportArgumentType]
        self._worker = worker

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record."""
        self._worker.tell(record)


def _compute_with(threads: int) -> None:
    """Have torch compute with some threads; Ray shows it no GPU but the worker's own."""
    import torch

    torch.set_num_threads(threads)


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
            self._mailbox = self._ray.remote(num_cpus=0)(Mailbox).options(name=name).remote()
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
        with self._lock:
            self._open = False
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
            self._waiting.append(new)
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
            waiting, self._waiting = [*self._waiting], deque()
        for job in waiting:
            job.future.cancel()

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
        if job.attempts >= ATTEMPTS or not self._open:
            job.future.set_exception(WorkerLostError(job.name))
        else:
            logger.warning("a worker died of: %s; it is done again", job.name)
            with self._lock:
                self._waiting.appendleft(job)
            self._begin()
        self._await(worker)


def _as_raised(error: BaseException) -> BaseException:
    """Return what a job raised; Ray's report, with the worker's traceback, is its cause."""
    raised = getattr(error, "cause", None)
    if not isinstance(raised, BaseException):
        return error
    raised.__cause__ = error
    return raised
