"""Workers that are processes of this machine, and what each of them runs.

Each slot has a process and a pipe; jobs go to the slots through a pool of threads, which is the
queue. So it is known which job a process died of, and the other processes go on. A process is a
copy of the fork server's, which has imported what `Processes` names while the first process does
something else; CUDA is initialized in the copies alone. Nothing of the user's own script is
imported there, so it needs no ``if __name__ == "__main__"``.
"""

import logging
import pickle
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stream.workers.engine import ATTEMPTS, WorkerLostError
from stream.workers.fork_server import begin_fork_server, without_main
from stream.workers.process import DONE, LOG_RECORD, STOP, TOLD, serve
from stream.workers.shared_file import SharedFile, write_shared

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

LOG = logging.getLogger(__name__)
LOST = (EOFError, OSError)  # what a pipe raises whose other end is gone


@dataclass(frozen=True)
class Place:
    """Where the process of a slot computes.

    Attributes:
        threads: how many threads it computes with.
        gpu: the number of its GPU; None without one.
    """

    threads: int = 1
    gpu: int | None = None


class Processes:
    """An `Engine` of processes of this machine."""

    def __init__(self, places: Sequence[Place], preload: Sequence[str] = ()):
        """Have a process for each of ``places``; each starts with its first job.

        Args:
            places: where the processes compute.
            preload: modules that are imported once for all of them, from now on.
        """
        self.slots = len(places)
        self._context = get_context("forkserver")
        self._preload = preload
        self._free = deque(_Slot(self._context, place) for place in places)
        self._all = list(self._free)
        self._told: deque[Any] = deque()
        self._stopped = self._ended = False

    def __enter__(self) -> Self:
        self._files = TemporaryDirectory(prefix="task-stream-workers-")
        self._pool = ThreadPoolExecutor(self.slots, thread_name_prefix="worker")
        begin_fork_server(self._preload)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended = True
        for slot in self._all:
            slot.kill()
        for slot in self._all:  # all end at the same time: that of a GPU's process is long
            slot.end()
        self._pool.shutdown(cancel_futures=True)
        self._files.cleanup()

    def share(self, value: Any) -> SharedFile:
        """Write a value to a file, which is there as long as what is returned."""
        return write_shared(value, Path(self._files.name))

    def submit(
        self, job: str, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> Future[Any]:
        """Have a worker call a function; as `Engine.submit`."""
        call = pickle.dumps((function, arguments, named), pickle.HIGHEST_PROTOCOL)
        return self._pool.submit(self._do, job, call)

    def _do(self, job: str, call: bytes) -> Any:
        """Have the process of a free slot make a call; begin again where it dies."""
        slot, why = self._free.popleft(), ""  # there is one: as many threads as slots
        try:
            for attempt in range(1, ATTEMPTS + 1):
                if self._ended or self._stopped:
                    raise CancelledError
                try:
                    return self._result(slot, call)
                except LOST:
                    why = slot.end()
                if not self._ended and attempt < ATTEMPTS:
                    LOG.warning("a worker died (%s) of: %s; it is done again", why, job)
            raise WorkerLostError(job, why)
        finally:
            self._free.append(slot)

    def _result(self, slot: "_Slot", call: bytes) -> Any:
        """Return what a call returns, or raise what it raises; hear what is told on the way."""
        slot.begin(call)
        if self._stopped:  # it may have been set between
            slot.stop()
        while True:
            kind, value = slot.hear()
            if kind == LOG_RECORD:
                logging.getLogger(value.name).handle(value)
            elif kind == TOLD:
                self._told.append(value)
            elif kind == DONE:
                return value
            else:
                raise value

    def messages(self) -> list[Any]:
        """Return what workers have told since the last call."""
        return [self._told.popleft() for _ in range(len(self._told))]

    def stop(self) -> None:
        """Cancel the jobs that have not begun, and ask the others to return."""
        self._stopped = True
        for slot in self._all:
            slot.stop()


class _Slot:
    """A process, started when it is needed, and its pipe. One thread uses it at a time."""

    def __init__(self, context: Any, place: Place):
        self._context, self._place = context, place
        self._process: Any = None
        self._pipe: Connection | None = None
        self._sending = threading.Lock()

    def begin(self, call: bytes) -> None:
        """Give the process a call.

        Raises:
            OSError: it has died.
        """
        if self._pipe is None:
            here, there = self._context.Pipe()
            place = self._place.threads, self._place.gpu
            process = self._context.Process(target=serve, args=(there, *place), daemon=True)
            with without_main():
                process.start()
            there.close()
            self._process, self._pipe = process, here
        self._send(call)

    def _send(self, message: bytes) -> None:
        with self._sending:
            if self._pipe is None:
                raise EOFError
            self._pipe.send_bytes(message)

    def hear(self) -> tuple[str, Any]:
        """Return the next message: its kind, and what it is.

        Raises:
            EOFError, OSError: the process has died.
        """
        pipe = self._pipe
        if pipe is None:
            raise EOFError
        found: tuple[str, Any] = pickle.loads(pipe.recv_bytes())
        return found

    def stop(self) -> None:
        """Ask the process to return what it has."""
        with suppress(*LOST):  # one that has died is seen by its own thread
            self._send(STOP)

    def kill(self) -> None:
        """Have the process end soon; it holds nothing that must be put in order."""
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> str:
        """End the process, and say how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "ended"
        process.kill()
        process.join()
        with self._sending:
            self._pipe = None  # closed when the thread that listens has let it go, too
        return f"exit code {process.exitcode}"
