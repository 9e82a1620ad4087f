"""What benchmarks run in this process: a configuration, or a stream with nothing on the screen."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from stream.composition import compose_run, register  # noqa: E402
from stream.config import RunConfig  # noqa: E402
from stream.display import Display  # noqa: E402
from stream.learners import LEARNERS  # noqa: E402
from stream.orchestrator import run_stream  # noqa: E402
from stream.tasks.sequence import DATA  # noqa: E402
from stream.tracking import TRACKERS, NoTracking  # noqa: E402


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
        return run_stream(
            composed(settings), folder, tracker=tracker or NoTracking(), display=display
        )
