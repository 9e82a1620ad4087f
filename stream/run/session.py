"""A run from outside: its folder, and the display and the tracker that are open while it lasts."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from stream.config.run import RunConfig
from stream.files.run_folder import refuse_used_folder
from stream.files.writable import RUN, folder_errors
from stream.report.progress import Display
from stream.run.runner import run_stream
from stream.run.settings import with_learner
from stream.training.gpu_memory import give_gpu_memory_back


def run_in(  # noqa: PLR0913 - a run, where it is seen, and what began it
    folder: Path,
    config: RunConfig,
    console: Console,
    *,
    overrides: Sequence[str],
    label: str = "",
    resume: bool = False,
    is_job: bool = False,
) -> float | None:
    """Run a stream with its display and tracker; return the average score.

    Args:
        folder: the run folder; the caller is its only writer.
        config: the whole configuration; its learner may be the settings of one.
        console: where a person sees the run.
        overrides: what the command line gave, for the record.
        label: goes before every line that is shown.
        resume: go on from the folder's last checkpoint.
        is_job: it is one of several runs of one command.

    Raises:
        UserError: something asked for is not there or makes no sense.
        FullDiskError: there is no room.
        TrainingDivergedError: a loss that is not finite.
        Interrupted: a signal asked to stop.
    """
    if not resume:
        refuse_used_folder(folder)
    config = with_learner(config)
    try:
        with (
            folder_errors(folder, RUN),
            Display(console, folder, label, config.display, is_job=is_job) as display,
            config.tracking as tracker,
        ):
            record = run_stream(
                config, folder, tracker=tracker, display=display, resume=resume, overrides=overrides
            )
    finally:
        give_gpu_memory_back()
    return record.metrics["average_score"]
