"""``task-stream run``: one run, or with ``-m`` a sweep of runs; everything behind it is Hydra's.

Hydra composes the configuration from conf/ and the command line. A mistake in it is answered in
one line, with exit code 2, before anything is written.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console

from stream.cli.boundary import EXIT_FAILED, error_boundary
from stream.cli.job_folders import register_job_folder
from stream.cli.overrides import CommandLine, check_command_line
from stream.cli.sweeps import (
    Job,
    SweepReport,
    check_sweep_folder,
    in_first_process,
    run_job,
)
from stream.cli.terminal import outlive_readers
from stream.config import compose
from stream.config.paths import conf_folder
from stream.config.run import RunConfig
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.run.interrupt import Interrupted, StopAll, stop_requests
from stream.run.lock import exclusive_writer
from stream.run.resume import resumed_config, unfinished_run
from stream.run.session import run_in
from stream.run.settings import compose_settings, register_groups
from stream.run_folder import FILE_NAME

# When this module is imported, because other processes of a sweep get no more than `job`.
register_job_folder()


def add_commands(commands: Any) -> None:
    """Add ``run`` to the command line."""
    # No prefix makes an argument a flag here: all of them are for Hydra's own parser.
    command = commands.add_parser("run", add_help=False, prefix_chars="\0")
    command.add_argument("arguments", nargs="*")
    command.set_defaults(execute=lambda given: main(given.arguments))


def main(arguments: Sequence[str]) -> None:
    """Check the command line, then hand it to Hydra.

    Raises:
        SystemExit: something failed; it was told in one line.
    """
    outlive_readers()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra hands on what it cannot do
    register_groups()
    line = CommandLine(arguments)
    with error_boundary(partial(_how_a_sweep_goes_on, line)) as status:
        line = _with_run_folder(line)
        check_command_line(conf_folder(), line)
        if line.multirun:
            check_sweep_folder(line.value("hydra.sweep.dir"), line.value("sweep"))
        sys.argv[1:] = line.for_hydra()
        _run_all()
        status.code = EXIT_FAILED if SweepReport.failed else 0
    if status.code:
        raise SystemExit(status.code)


def _run_all() -> None:
    """Have Hydra run everything.

    Raises:
        Interrupted: a signal asked to stop.
        ChildProcessError: a process of a sweep was killed.
    """
    with stop_requests(StopAll) as stop:
        try:
            job()
        except BrokenProcessPool as error:  # joblib raises one of its own
            stop.check()  # that process had not begun anything that could save
            reason = "a process of the sweep was killed (was there memory enough?)"
            raise ChildProcessError(reason) from error
        stop.check()


@hydra.main(config_path=str(conf_folder()), config_name="config", version_base="1.3")
def job(composed: DictConfig) -> float | None:
    """Run what was composed; returns the average score, for sweepers."""
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    if hydra_config.mode == RunMode.MULTIRUN:
        build = partial(compose.to_objects, composed)
        return run_job(Job.now(), build, partial(_run, folder))
    with error_boundary(partial(_how_a_run_goes_on, folder)) as status:
        config = compose.to_objects(composed)
        resume = config.resume is not None and (folder / FILE_NAME).exists()
        if resume:
            given = [override.partition("=")[0] for override in hydra_config.overrides.task]
            config = resumed_config(folder, config, given)
        with exclusive_writer(folder):
            return _run(folder, config, resume)
    raise SystemExit(status.code)  # before Hydra can say it again


def _run(folder: Path, config: RunConfig, resume: bool) -> float | None:  # noqa: FBT001
    """Run one job; the caller is the only writer of the folder."""
    # Jobs that run side by side share a screen: plain lines, each with its job's name.
    alone = in_first_process()
    return run_in(
        folder,
        config,
        Console() if alone else Console(force_terminal=False),
        overrides=HydraConfig.get().overrides.task,
        label="" if alone else folder.name,
        resume=resume,
    )


def _with_run_folder(line: CommandLine) -> CommandLine:
    """Return the command line; after ``resume=FOLDER`` that folder is the run folder.

    ``resume=auto`` looks for an unfinished run of the same configuration below runs/, and starts a
    new one where there is none.

    Raises:
        UserError: there is no run in the folder.
    """
    asked = line.value("resume")
    if asked is None:
        return line
    folder: Path | None = Path(asked)
    if asked == "auto":
        config, _ = compose_settings(line.settings())
        folder = unfinished_run(Path("runs"), config)
    else:
        RunRecord.read(folder)
    return line if folder is None else line.extended(compose.override("hydra.run.dir", folder))


def _how_a_run_goes_on(folder: Path, error: BaseException) -> str:
    """Say behind an error how to go on, and where the finished rows are if there are any."""
    written = folder / FILE_NAME
    if isinstance(error, Interrupted):
        lost = "nothing is kept to go on from (checkpoint.enabled=false)"
        lost = lost if written.exists() else "nothing was done yet"
        return f"; go on with: resume={folder}" if error.saved else f"; {lost}"
    try:
        partial = RunRecord.read(folder).status == "partial"
    except UserError:  # none was written, or it is not ours
        return ""
    return f" (rows finished so far are in {written}, status: partial)" if partial else ""


def _how_a_sweep_goes_on(line: CommandLine, error: BaseException) -> str:
    """Say behind what stopped a sweep how to go on."""
    if not line.multirun or not isinstance(error, KeyboardInterrupt | ChildProcessError):
        return ""
    if line.value("sweep") is None:
        return "; name a sweep (sweep=NAME) to go on"
    return "; the next start goes on from here"
