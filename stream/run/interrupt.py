"""Signals that ask a run to stop: it saves first, and stops where it can go on later.

A person sends SIGINT (Ctrl-C), a system SIGTERM, a terminal that closes SIGHUP, and a scheduler
SIGUSR1 or SIGUSR2 some time before it ends a job.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import active_children
from threading import current_thread, main_thread
from types import FrameType
from typing import Self

DEMANDS = (signal.SIGINT, signal.SIGTERM)
# Windows has none of these, but its users may look at runs from elsewhere.
WARNINGS = tuple(
    signal.Signals[name]
    for name in ("SIGHUP", "SIGUSR1", "SIGUSR2")
    if name in signal.Signals.__members__
)
AGREED_STEPS = 10  # asking the others takes a tenth of a millisecond


class Interrupted(KeyboardInterrupt):
    """A run was asked to stop; ``signum`` is the signal, ``saved`` whether it can go on."""

    def __init__(self, signum: int, *, saved: bool = True):
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum
        self.saved = saved

    def __reduce__(self) -> tuple[type[Self], tuple[int], dict[str, bool]]:
        """Say how to pickle it: it may come from another process of a sweep."""
        return type(self), (self.signum,), {"saved": self.saved}


class StopRequest:
    """Whether a signal asked the run to stop.

    Ranks of one run hear of it at different steps, and stop together: `agree`.

    Attributes:
        signum: the first signal, of several ranks one that all know of; None before it.
        saved: whether the run folder holds something to go on from.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.saved = False
        self._demanded = False
        self._heard: int | None = None  # by this process
        self._most: Callable[[int], int] | None = None

    def among(self, most: Callable[[int], int]) -> None:
        """Stop from now on where all ranks do.

        Args:
            most: returns the largest number that a rank gives it.
        """
        self._most = most

    def agree(self, step: int | None = None) -> None:
        """Find out whether any rank was asked to stop; all ranks call it at the same places.

        Args:
            step: a training step, of which they look at every tenth alone.
        """
        if self._most is not None and (step is None or step % AGREED_STEPS == 0):
            self.signum = self._most(self._heard or 0) or None

    def note(self, signum: int, frame: FrameType | None) -> None:
        """Handle a signal.

        A warning may come several times (from the terminal and from the shell, to each step of a
        job), and a demand may follow it; only a second demand stops at once.

        Raises:
            Interrupted: a second SIGINT or SIGTERM.
        """
        del frame
        if self._demanded and signum in DEMANDS:
            raise Interrupted(signum, saved=self.saved)
        self._demanded |= signum in DEMANDS
        self._heard = signum if self._heard is None else self._heard
        if self._most is None:
            self.signum = self._heard

    def check(self) -> None:
        """Stop here if that was asked for.

        Raises:
            Interrupted: the signal.
        """
        if self.signum is not None:
            raise Interrupted(self.signum, saved=self.saved)

    def check_together(self) -> None:
        """Stop here if any rank was asked to.

        Raises:
            Interrupted: the signal.
        """
        self.agree()
        self.check()


class StopAll(StopRequest):
    """The request to stop whatever this process has begun: there is no run that could save.

    Processes that it started for the jobs of a sweep are asked to save and stop instead.
    """

    def note(self, signum: int, frame: FrameType | None) -> None:
        """Handle a signal.

        Raises:
            Interrupted: no process of a sweep has to be waited for, or a second demand.
        """
        super().note(signum, frame)
        workers = active_children()
        if not workers:
            raise Interrupted(signum, saved=False)
        for worker in workers:
            if worker.pid is not None:
                # A terminal sends its signals to them as well; this one may come twice.
                os.kill(worker.pid, signal.SIGUSR1)


@contextmanager
def stop_requests(kind: type[StopRequest] = StopRequest) -> Iterator[StopRequest]:
    """Have a request of a kind note the signals inside the block instead of dying of them.

    A signal that was ignored when the block began stays ignored (SIGHUP under nohup).
    """
    request = kind()
    if current_thread() is not main_thread():  # only the main thread may handle signals
        yield request
        return
    # None: something that is not Python handles it.
    kept = (signal.SIG_IGN, None)
    heard = [n for n in (*DEMANDS, *WARNINGS) if signal.getsignal(n) not in kept]
    before = {number: signal.signal(number, request.note) for number in heard}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
