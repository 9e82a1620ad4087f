"""One stream in this process, with nothing on the screen."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from stream.composition import compose_run, register  # noqa: E402
from stream.display import Display  # noqa: E402
from stream.learners import LEARNERS  # noqa: E402
from stream.orchestrator import run_stream  # noqa: E402
from stream.tasks.sequence import DATA  # noqa: E402
from stream.tracking import TRACKERS, NoTracking  # noqa: E402


def streamed(settings: Sequence[str], tracker: NoTracking | None = None) -> dict[str, Any]:
    """Run a stream in a temporary folder; return its results, as in results.json.

    Args:
        settings: as for run_stream.py.
        tracker: is told of every row; nothing is tracked without one.
    """
    register({"learner": LEARNERS, "data": DATA, "tracking": TRACKERS})
    config, _ = compose_run(ROOT / "conf", [*settings, "tracking=none"])
    folder = Path(tempfile.mkdtemp(prefix="benchmark-"))
    with (folder / "shown").open("w") as file, Display(Console(file=file), folder) as display:
        return run_stream(config, folder, tracker=tracker or NoTracking(), display=display)
