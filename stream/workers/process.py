"""What a worker process does: it makes the calls that come through its pipe, one after another."""

import logging
import os
import pickle
import signal
import threading
import time
from logging.handlers import QueueHandler
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

TOLD, LOG_RECORD, DONE, FAILED = "told", "log record", "done", "failed"
STOP = b""  # no call is empty
LOOKED_S = 0.05  # how often a worker looks whether it should stop
IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
"""Signals that a terminal or a scheduler sends to all processes: the first one decides."""


class ProcessWorker:
    """The `Worker` of this process."""

    def __init__(self, pipe: Connection):
        self.kept: dict[str, Any] = {}
        self._pipe = pipe
        self._stopping = False
        self._looked = 0.0

    def tell(self, message: Any) -> None:
        """Have `Engine.messages` return a message."""
        self._send(TOLD, message)

    def _send(self, kind: str, value: Any) -> None:
        self._pipe.send_bytes(pickle.dumps((kind, value), pickle.HIGHEST_PROTOCOL))

    def stopping(self) -> bool:
        """Whether `Engine.stop` was called."""
        now = time.monotonic()
        if not self._stopping and now - self._looked >= LOOKED_S:
            self._looked = now
            # While a job runs, nothing else comes.
            self._stopping = self._pipe.poll() and self._pipe.recv_bytes() == STOP
        return self._stopping

    def answer(self, call: bytes) -> None:
        """Make a call, and send what it returns or raises."""
        try:
            function, arguments, named = pickle.loads(call)
            result = function(self, *arguments, **named)
            self._send(DONE, result)
        except Exception as error:  # noqa: BLE001 - whatever it is, the first process raises it
            self._send_error(error)

    def _send_error(self, error: Exception) -> None:
        """Send an error as it is, or as text if it cannot be pickled and read again."""
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001 - errors of any library
            error = RuntimeError(f"{type(error).__name__}: {error}")
        self._send(FAILED, error)


class _ToFirstProcess(QueueHandler):
    """Gives what is logged here to the loggers of the first process."""

    def __init__(self, worker: ProcessWorker):
        super().__init__(SimpleQueue())  # which is not used
        self._worker = worker

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record."""
        self._worker._send(LOG_RECORD, record)


def serve(pipe: Connection, threads: int, gpu: int | None) -> None:
    """Make the calls that come through a pipe, until it is closed.

    Args:
        pipe: to the first process.
        threads: how many threads compute.
        gpu: the number of the GPU; None without one.
    """
    for name in IGNORED:
        if name in signal.Signals.__members__:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True, name="parent").start()
    _compute_on(threads, gpu)
    worker = ProcessWorker(pipe)
    logger = logging.getLogger("stream")
    logger.setLevel(logging.INFO)
    logger.addHandler(_ToFirstProcess(worker))
    logger.propagate = False
    while True:
        try:
            call = pipe.recv_bytes()
        except EOFError:
            return
        if call != STOP:
            worker.answer(call)


def _end_with_parent() -> None:
    """End this process when the first one has died, whatever is being done."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _compute_on(threads: int, gpu: int | None) -> None:
    """Have torch compute with some threads, and on a GPU."""
    import torch

    torch.set_num_threads(threads)
    if gpu is not None:
        torch.cuda.set_device(gpu)
