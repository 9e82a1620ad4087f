"""What Ray runs for workers: the process that does jobs, the box of messages, values they share."""

import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from logging.handlers import QueueHandler
from typing import Any

from stream.workers.ray_connection import ray_module

STOP_EVERY_S = 0.1
"""How often a worker looks whether it was asked to stop."""


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
