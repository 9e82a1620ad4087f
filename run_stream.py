"""Run one learner over one stream of tasks: ``python run_stream.py learner=adapter``.

Hydra composes the configuration from conf/ and the command line. A mistake in it is answered in
one line, with exit code 2, before anything is written.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import current_process
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console

from stream.cli import overrides
from stream.cli.sweeps import SweepReport, run_job
from stream.cli.terminal import outlive_readers
from stream.config import compose
from stream.config.run import RunConfig
from stream.data.build import DATA
from stream.errors import IsolationError, TrainingDivergedError, UserError, require
from stream.learners import LEARNERS
from stream.record.run_record import RunRecord
from stream.report.progress import Display
from stream.report.tracking import TRACKERS
from stream.run.interrupt import Interrupted
from stream.run.lock import exclusive_writer
from stream.run.resume import resumed_config, unfinished_run
from stream.run.runner import run_stream
from stream.run_folder import FILE_NAME, LOCK, LOG_NAME

CONF = Path(__file__).parent / "conf"
EXIT_FAILED, EXIT_USER, EXIT_INTERRUPTED = 1, 2, 130


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def job(composed: DictConfig) -> float | None:
    """Run what was composed; returns the average score, for sweepers."""
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    if hydra_config.mode == RunMode.MULTIRUN:
        start = hydra_config.callbacks["sweep"].start
        return run_job(lambda: compose.to_objects(composed), folder, start, partial(_run, folder))
    try:
        config = compose.to_objects(composed)
        resume = config.resume is not None and (folder / FILE_NAME).exists()
        if resume:
            given = [override.partition("=")[0] for override in hydra_config.overrides.task]
            config = resumed_config(folder, config, given)
        with exclusive_writer(folder):
            return _run(folder, config, resume)
    except (UserError, TrainingDivergedError, IsolationError, OSError) as error:
        code = EXIT_USER if isinstance(error, UserError) else EXIT_FAILED
        _stop(f"{_one_line(error)}{_kept(folder)}", code)
    except Interrupted as error:
        lost = "nothing is kept to go on from (checkpoint.enabled=false)"
        then = f"go on with: resume={folder}" if error.saved else lost
        _stop(f"{error}; {then}", 128 + error.signum)
    except KeyboardInterrupt:
        _stop(f"interrupted{_kept(folder)}", EXIT_INTERRUPTED)


def _run(folder: Path, config: RunConfig, resume: bool) -> float | None:  # noqa: FBT001
    """Open the display and the tracker, and run; the caller is the only writer of the folder."""
    used = sorted(path.name for path in folder.iterdir() if path.name not in (LOCK, LOG_NAME))
    require(
        resume or not used,
        f"the run folder {folder} is not empty: it holds {', '.join(used[:5])}",
    )
    # Jobs that run side by side share a screen: plain lines, each with its job's name.
    aside = current_process().name != "MainProcess"
    console = Console(force_terminal=False) if aside else Console()
    label = folder.name if aside else ""
    with Display(console, folder, label) as display, config.tracking as tracker:
        record = run_stream(
            config,
            folder,
            tracker=tracker,
            display=display,
            resume=resume,
            overrides=HydraConfig.get().overrides.task,
        )
    return record.metrics["average_score"]


def main(arguments: Sequence[str]) -> None:
    """Check the command line, then hand it to Hydra."""
    outlive_readers()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra hands on what it cannot do; it is told below
    compose.register({"learner": LEARNERS, "data": DATA, "tracking": TRACKERS})
    try:
        arguments = _with_run_folder(arguments)
        overrides.check_command_line(CONF, arguments)
    except UserError as error:
        _stop(_one_line(error), EXIT_USER)
    sys.argv[1:] = overrides.flags_first(arguments)
    # Jobs of a sweep that run in other processes import the program from here.
    paths = [str(CONF.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    named = any(argument.startswith("sweep=") for argument in arguments)
    rest = "the next start goes on from here" if named else "name a sweep (sweep=NAME) to go on"
    try:
        job()
    except OSError as error:  # the run folder cannot be made
        _stop(_one_line(error), EXIT_FAILED)
    except BrokenProcessPool:  # joblib raises one of its own
        _stop(f"a process of the sweep was killed (was there memory enough?); {rest}", EXIT_FAILED)
    except Interrupted as error:
        _stop(f"{error}; {rest}", 128 + error.signum)
    except KeyboardInterrupt:
        _stop(f"interrupted; {rest}", EXIT_INTERRUPTED)
    if SweepReport.failed:
        raise SystemExit(EXIT_FAILED)


def _with_run_folder(arguments: Sequence[str]) -> list[str]:
    """Return the arguments; after ``resume=FOLDER`` that folder is the run folder.

    ``resume=auto`` looks for an unfinished run of the same configuration below runs/, and starts a
    new one where there is none.

    Raises:
        UserError: there is no run in the folder.
    """
    asked = [a.partition("=")[2] for a in arguments if a.startswith("resume=")]
    if not asked or asked[-1] == "null":
        return list(arguments)
    folder: Path | None = Path(asked[-1])
    if asked[-1] == "auto":
        overrides = [a for a in arguments if "=" in a and not a.startswith("-")]
        config, _ = compose.compose_run(CONF, overrides)
        folder = unfinished_run(Path("runs"), config)
    else:
        RunRecord.read(folder)
    return [*arguments, *([] if folder is None else [f"hydra.run.dir='{folder}'"])]


def _kept(folder: Path) -> str:
    """Say where the finished rows are, if there are any."""
    written = folder / FILE_NAME
    try:
        partial = RunRecord.read(folder).status == "partial"
    except UserError:  # none was written, or it is not ours
        return ""
    return f" (rows finished so far are in {written}, status: partial)" if partial else ""


def _one_line(error: BaseException) -> str:
    """Return a message without line breaks."""
    return " ".join(str(error).split())


def _stop(message: str, code: int) -> Any:
    """Print one line to the error stream and exit."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
