"""What is shown while something is done: on terminals of any width, in pipes, in notebooks."""

import io
import sys
import time
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from stream.report import status as module
from stream.report.status import Status, console_for


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def screen(width: int = 80, **options: Any) -> tuple[io.StringIO, Console]:
    text = io.StringIO()
    return text, Console(file=text, width=width, **options)


def silent(status: Status, clock: Clock, seconds: float) -> None:
    """A stage in which nothing happens; its thread's beats without the thread."""
    for _ in range(round(seconds / module.BEAT_S)):
        clock.sleep(module.BEAT_S)
        status.update("")


def test_in_a_pipe_a_stage_is_named_once_it_lasts_and_then_ever_more_rarely(clock: Clock) -> None:
    text, console = screen()
    status = Status(console)
    status.stage("quick")
    silent(status, clock, 0.5)
    status.stage("loading torch")
    silent(status, clock, 1)
    assert text.getvalue() == "  loading torch, 1 s\n"
    silent(status, clock, 5)
    assert text.getvalue().count("\n") == 2
    silent(status, clock, 3600)
    assert 10 < text.getvalue().count("\n") < 50
    text, console = screen()
    status = Status(console)
    status.stage("one of many", announce=False)  # the lines of the stream say enough
    silent(status, clock, 4)
    assert text.getvalue() == ""
    silent(status, clock, 2)
    assert "one of many" in text.getvalue()


def test_quiet_says_only_what_matters(clock: Clock) -> None:
    text, console = screen(force_terminal=True)
    with Status(console, "quiet") as status:
        status.stage("reading")
        silent(status, clock, 60)
        status.say("a line")
        status.say("warning: a fault", always=True)
    assert text.getvalue() == "warning: a fault\n"


@pytest.mark.parametrize("width", [20, 60, 80, 120])
def test_the_live_line_fits_every_terminal_and_long_lines_keep_their_words(width: int) -> None:
    text, console = screen(width, force_terminal=True, _environ={"NO_COLOR": "1"})
    status = Status(console)
    line = "after  1 Corporate messaging: scored 97.0, average 97.0, learned in 12.0 s"
    with status:
        status.stage("task 12 of 26, Corporate messaging: learning")
        status.update("about 2:03 left, step 12/48, 33 examples/s", 0.47)
        live = status._live
        assert isinstance(live, module._TerminalLine)
        shown = "".join(segment.text for segment in console.render(live._drawn()))
        assert shown.count("\n") == 1
        assert len(shown.rstrip("\n")) <= width
        assert "47%" in shown
    status.say(line)
    said = text.getvalue().rpartition("\x1b[2K")[2]
    assert all(len(part) <= max(width, len("Corporate")) for part in said.split("\n"))
    assert said.split() == line.split()
    assert "\x1b[3" not in text.getvalue()  # no colour


def test_a_dumb_terminal_gets_plain_lines(clock: Clock) -> None:
    text, console = screen(force_terminal=True, _environ={"TERM": "dumb"})
    status = Status(console)
    status.stage("loading torch")
    silent(status, clock, 2)
    assert text.getvalue() == "  loading torch, 1 s\n"


def test_a_thread_tells_of_what_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    monkeypatch.setattr(module, "ANNOUNCE_S", 0.02)
    text, console = screen()
    deadline = time.monotonic() + 60
    with Status(console, label="job-1") as status:
        status.stage("importing")
        while not text.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)  # the main thread says nothing
    assert text.getvalue().startswith("[job-1]   importing, ")


def test_a_notebook_gets_one_output_that_changes(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            assert raw
            shown.append(data["text/plain"])

    displayed: list[dict[str, str]] = []

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        displayed.append(data)
        return Handle()

    library = ModuleType("IPython.display")
    library.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", library)
    monkeypatch.setattr(module, "in_notebook", lambda: True)
    assert not console_for().is_terminal  # whatever the kernel says
    text, console = screen()
    with Status(console) as status:
        for number in range(100):
            clock.sleep(1)
            status.stage(f"task {number}")
            status.update("step 1")
        status.say("a row")
    assert len(displayed) == 1
    assert text.getvalue() == "a row\n"
    assert any("task 99" in line for line in shown)
    assert shown[-1] == ""
