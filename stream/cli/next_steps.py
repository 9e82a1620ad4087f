"""What to try after a first run, as commands that work where this program was called."""

import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from stream.config.data import GeneratedData
from stream.config.run import RunConfig
from stream.formatting import from_here

COMPARED = (
    "-m",
    "sweep=compare",
    "learner=adapter,finetune,replay",
    "task=[rte,cola,crowdflower_airline]",
    "tracking=none",
)
PLOTLY = ("pip", "install", "plotly")


def next_steps(config: RunConfig, folder: Path) -> list[str]:
    """Return three lines after a run over generated data; none after others.

    Args:
        config: the run's configuration.
        folder: its run folder.
    """
    if not isinstance(config.data, GeneratedData):
        return []
    report = [] if importlib.util.find_spec("plotly") else [_with(sys.executable, "-m", *PLOTLY)]
    report.append(_with(*program(), "report", _short(folder), "--out", "report.html"))
    return [
        "What to try next:",
        f"  compare learners  {_with(*program(), 'run', *COMPARED)}",
        f"  a file of yours   {_with(*program(), 'tasks', 'inspect', 'FILE.csv')}",
        f"  see this run      {' && '.join(report)}",
    ]


def program() -> list[str]:
    """Return how ``task-stream`` is called from here.

    By its name where that finds the one of this interpreter, else by its path, relative where it
    lies below this folder; where it is not installed, as a module.
    """
    own = Path(sys.executable).parent / "task-stream"
    found = shutil.which("task-stream")
    if found is not None and os.path.abspath(found) == os.path.abspath(own):
        return ["task-stream"]
    if own.exists():
        return [_short(own)]
    return [_short(Path(sys.executable)), "-m", "stream.cli.main"]


def _short(path: Path) -> str:
    """Return a path from here if it lies below, else the whole; with a slash, as shells need."""
    short = from_here(path)
    return str(short) if len(short.parts) > 1 else f"./{short}"


def _with(*words: str | Sequence[str]) -> str:
    """Return words as a shell takes them."""
    return shlex.join(map(str, words))
