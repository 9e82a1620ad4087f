"""Ctrl-C and SIGTERM: the run stops where it can go on later. A second signal stops at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A run was asked to stop; ``signum`` is the signal, ``saved`` whether it can go on."""

    def __init__(self, signum: int, *, saved: bool = True):
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum
        self.saved = saved


class StopRequest:
    """Whether a signal asked the run to stop."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def check(self, *, saved: bool) -> None:
        """Stop here if that was asked for.

        Args:
            saved: whether all that was done so far is on disk.

        Raises:
            Interrupted: the signal.
        """
        if self.signum is not None:
            raise Interrupted(self.signum, saved=saved)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Note SIGINT and SIGTERM inside the block instead of dying of them."""
    request = StopRequest()
    if current_thread() is not main_thread():  # only the main thread may handle signals
        yield request
        return

    def note(signum: int, frame: FrameType | None) -> None:
        del frame
        if request.signum is not None:
            raise Interrupted(signum)
        request.signum = signum

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
