"""What benchmarks run in this process: a configuration, or a stream with nothing on the screen."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from stream.config.compose import compose_run, register
from stream.config.run import RunConfig
from stream.data.build import DATA
from stream.learners import LEARNERS
from stream.report.progress import Display
from stream.report.tracking import TRACKERS, NoTracking
from stream.run.runner import run_stream

ROOT = Path(__file__).parent.parent


def composed(settings: Sequence[str]) -> RunConfig:
    """Return what the settings say, as for run_stream.py; nothing is tracked."""
    register({"learner": LEARNERS, "data": DATA, "tracking": TRACKERS})
    return compose_run(ROOT / "conf", ["tracking=none", *settings])[0]


def streamed(settings: Sequence[str], tracker: NoTracking | None = None) -> dict[str, Any]:
    """Run a stream in a temporary folder; return its results, as in results.json.

    Args:
        settings: as for run_stream.py.
        tracker: is told of every row; nothing is tracked without one.
    """
    folder = Path(tempfile.mkdtemp(prefix="benchmark-"))
    with (folder / "shown").open("w") as file, Display(Console(file=file), folder) as display:
        record = run_stream(
            composed(settings), folder, tracker=tracker or NoTracking(), display=display
        )
    return msgspec.to_builtins(record)
