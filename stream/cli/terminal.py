"""Standard output and error that outlive their readers: a run is more than what is shown of it."""

import logging
import os
import sys
from typing import Any, TextIO

LOG = logging.getLogger(__name__)


class LastingOutput:
    """A text stream that falls silent where writing to it fails: ``| head``, a terminal that went.

    Letters that its encoding lacks are written as escapes.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text; return its length."""
        encoding = self._stream.encoding or "utf-8"
        shown = text.encode(encoding, "backslashreplace").decode(encoding)
        try:
            self._stream.write(shown)
        except OSError as error:
            self._fall_silent(error)
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fall_silent(error)

    def _fall_silent(self, error: OSError) -> None:
        """Send everything from now on nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        LOG.info("nothing more is shown (%s); the work goes on", error)


def outlive_readers() -> None:
    """Make standard output and error of this process last; what was closed goes nowhere."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # closed when the process began; no other file may get its number
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            stream = os.fdopen(number, "r" if number == 0 else "w")
            setattr(sys, name, stream)
        if number != 0 and not isinstance(stream, LastingOutput):
            setattr(sys, name, LastingOutput(stream))
