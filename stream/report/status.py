"""What a program is doing now: one live line on a terminal or in a notebook, else plain lines.

Importing this needs nothing heavy, so that it can speak while torch is imported.
"""

import textwrap
import threading
import time
import warnings
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from stream.config.display import PLAIN, QUIET

ANNOUNCE_S = 1.0  # how long a stage lasts before a plain line names it
PATIENCE_S = 5.0  # how long nothing may be said
RARER = 4  # a stage that goes on is told of again after a quarter of its time
BEAT_S = 0.5
INDENT = " " * 6
REFRESHED_PER_S = 4
BAR, BARS_FROM = 10, 80  # its width, and the least width of a terminal that has room for it
NOTEBOOK_WIDTH = 100


def console_for(*, quiet: bool = False) -> Console:
    """Return where a person sees text: the standard output, as text in a notebook too."""
    if not in_notebook():
        return Console(quiet=quiet)
    # A kernel calls its output a terminal, and rich would write every line as HTML of its own.
    return Console(quiet=quiet, force_jupyter=False, force_terminal=False, width=NOTEBOOK_WIDTH)


def in_notebook() -> bool:
    """Whether a notebook shows what this process prints."""
    return Console().is_jupyter


class Status:
    """What is done now; used in a ``with`` block.

    Without a live line, a thread says what takes long. It is told apart from what stays: `say`.
    """

    def __init__(self, console: Console, mode: str = "auto", label: str = ""):
        """Show on ``console``.

        Args:
            console: where a person looks.
            mode: ``auto``, ``plain`` (no live line) or ``quiet`` (nothing but what matters).
            label: goes before every line, where several programs share a screen.
        """
        self.console = console
        self.quiet = mode == QUIET or console.quiet
        self._label = f"[{label}] " if label else ""
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._what = self._detail = ""
        self._announces = self._told = False
        self._fraction: float | None = None
        self._began = self._said = time.monotonic()
        self._live = None if self.quiet or mode == PLAIN else self._live_line()

    @property
    def in_notebook(self) -> bool:
        """Whether the live line is that of a notebook."""
        return isinstance(self._live, _NotebookLine)

    def _live_line(self) -> "_Line | None":
        """Return a line that can change; None where there is none."""
        if in_notebook():
            return _NotebookLine(self)
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            return _TerminalLine(self)
        return None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        if not self.quiet and not isinstance(self._live, _TerminalLine):
            self._thread = threading.Thread(target=self._beat, daemon=True, name="status")
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Show nothing more of what is done; what is said stays."""
        self._ended.set()
        with self._lock:
            self._what, live, self._live = "", self._live, None
        if live is not None:
            live.stop()

    def say(self, line: str, *, always: bool = False) -> None:
        """Print a line; with ``always`` even if quiet was asked for."""
        text = self._label + line
        if self.console.is_terminal:  # a line in a file or a pipe stays one line
            text = "\n".join(_broken(text, self.console.width))
        self.show(text, always=always)

    def show(self, thing: Any, *, always: bool = False) -> None:
        """Print a text as it is, or a table; with ``always`` even if quiet was asked for."""
        if self.quiet and not always:
            return
        with self._lock:
            soft = isinstance(thing, str)
            self.console.print(thing, markup=False, highlight=False, soft_wrap=soft)
            self._said = time.monotonic()

    def stage(
        self, what: str, detail: str = "", fraction: float | None = None, *, announce: bool = True
    ) -> None:
        """Begin something else.

        Args:
            what: in a few words.
            detail: how far it is.
            fraction: how much of everything is done; None where that is not known.
            announce: a plain line names it after a second; else only what lasts is told.
        """
        with self._lock:
            self._what, self._detail, self._fraction = what, detail, fraction
            self._announces, self._told = announce, False
            self._began = time.monotonic()
        self._changed()

    def update(self, detail: str, fraction: float | None = None) -> None:
        """Say how far it is; ``fraction`` of everything is done."""
        with self._lock:
            self._detail, self._fraction = detail, fraction
        self._changed()

    def line(self) -> str:
        """Return what is done in one line; what matters most comes first.

        Takes no lock: rich asks for it from a thread that holds its own.
        """
        what, detail, fraction = self._what, self._detail, self._fraction
        age = time.monotonic() - self._began
        slow = f"{age:.0f} s" if what and age >= ANNOUNCE_S and not detail else ""
        told = ", ".join(part for part in (what, detail, slow) if part)
        return told if fraction is None else f"{100 * fraction:>3.0f}%  {told}"

    @property
    def fraction(self) -> float | None:
        """How much of everything is done; None where that is not known."""
        return self._fraction

    def _changed(self) -> None:
        """Show the line, where it can change or is due."""
        if self._live is not None:
            self._live.refresh()
        elif self._is_due():
            self._tell()

    def _is_due(self) -> bool:
        """Whether a plain line is due: first soon, then ever more rarely."""
        now = time.monotonic()
        age = now - self._began
        first = self._announces and not self._told and age >= ANNOUNCE_S
        late = now - self._said >= max(PATIENCE_S, age / RARER)
        return bool(self._what) and not self.quiet and (first or late)

    def _tell(self) -> None:
        """Print the line."""
        self._told = True
        self.say(f"  {self.line().strip()}")

    def _beat(self) -> None:
        """Say what takes long, in a thread of its own."""
        while not self._ended.wait(BEAT_S):
            with self._lock:
                if self._live is not None:
                    self._live.refresh()
                elif self._is_due():
                    self._tell()


def _broken(line: str, width: int) -> list[str]:
    """Return a line in pieces that fit; those after the first are indented, words stay whole."""
    begin = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=begin or INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [line]


class _Line(Protocol):
    """A line that can change."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def refresh(self) -> None: ...


class _TerminalLine:
    """The last line of a terminal; rich draws it again and again, and takes it away at the end."""

    def __init__(self, status: Status):
        self._status = status
        self._live = Live(
            console=status.console,
            get_renderable=self._drawn,
            transient=True,
            refresh_per_second=REFRESHED_PER_S,
        )

    def _drawn(self) -> Text:
        """Return the line, cut at the end where the terminal is narrow."""
        text, fraction = self._status.line(), self._status.fraction
        console = self._status.console
        drawn = Text(no_wrap=True, overflow="ellipsis")
        if fraction is not None and console.width >= BARS_FROM:
            done = round(BAR * fraction)
            full, empty = ("━", "─") if "utf" in console.encoding.lower() else ("#", "-")
            drawn.append(full * done, "green").append(empty * (BAR - done), "dim").append(" ")
        return drawn.append(text)

    def start(self) -> None:
        """Draw it from now on."""
        self._live.start()

    def stop(self) -> None:
        """Take it away."""
        self._live.stop()

    def refresh(self) -> None:
        """Do nothing: it is drawn several times a second."""


class _NotebookLine:
    """An output of a notebook's cell that is written anew."""

    def __init__(self, status: Status):
        self._status = status
        self._shown = ""
        self._drawn = 0.0

    def start(self) -> None:
        """Make the output."""
        library = import_module("IPython.display")  # a notebook has it
        # tqdm, which other libraries import, would rather have widgets; nothing here needs them.
        warnings.filterwarnings("ignore", message="IProgress not found")
        self._handle: Any = library.display({"text/plain": "starting"}, raw=True, display_id=True)

    def stop(self) -> None:
        """Leave a last word: outputs cannot be taken away."""
        self._write("")

    def refresh(self) -> None:
        """Write it again, not too often."""
        text, now = self._status.line(), time.monotonic()
        if text != self._shown and now - self._drawn >= 1 / REFRESHED_PER_S:
            self._drawn = now
            self._write(text)

    def _write(self, text: str) -> None:
        self._shown = text
        self._handle.update({"text/plain": text}, raw=True)
