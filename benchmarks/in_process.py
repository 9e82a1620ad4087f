"""The product in the process of a benchmark: a configuration, a learner set up, a whole stream."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from stream.config.run import RunConfig
from stream.record.run_record import RunRecord
from stream.report.progress import Display
from stream.report.tracking import NoTracking
from stream.run.run import Run
from stream.run.runner import run_stream
from stream.run.settings import compose_settings, with_learner
from stream.run.setup import build_run


class RowTracker(NoTracking):
    """A tracker that calls a function after every row."""

    def __init__(self, after_row: Callable[[], None]):
        super().__init__()
        self._after_row = after_row

    def row(self, index: int, results: Any) -> None:
        """Call it; what it needs of the record it reads when the run is done."""
        del index, results
        self._after_row()


def composed(settings: Sequence[str]) -> RunConfig:
    """Return what the settings say, as for run_stream.py; nothing is tracked."""
    return with_learner(compose_settings(["tracking=none", *settings])[0])


def set_up(settings: Sequence[str]) -> Run:
    """Return a run, ready for its first task; nothing is written."""
    return build_run(composed(settings), Path())


def streamed(settings: Sequence[str], after_row: Callable[[], None] = lambda: None) -> RunRecord:
    """Run a stream in a temporary folder with nothing on the screen; return its record.

    Args:
        settings: as for run_stream.py.
        after_row: called when a task is learned and its row of scores is there.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        with (folder / "shown").open("w") as file, Display(Console(file=file), folder) as display:
            config, tracker = composed(settings), RowTracker(after_row)
            run_stream(config, folder, tracker=tracker, display=display)
        return RunRecord.read(folder)
