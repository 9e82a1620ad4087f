"""``task-stream run``: one run, or with ``-m`` a sweep of runs; everything behind it is Hydra's.

Hydra composes the configuration from conf/ and the command line. A mistake in it is answered in
one line, with exit code 2, before anything is written.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from stream.cli.boundary import EXIT_FAILED, EXPECTED, error_boundary
from stream.cli.command_line import CommandLine
from stream.cli.completion import completing
from stream.cli.help import help_text
from stream.cli.job_folders import register_job_folder
from stream.cli.next_steps import next_steps
from stream.cli.overrides import check_command_line
from stream.cli.resumed import with_run_folder
from stream.cli.sweeps import Job, SweepReport, check_sweep_folder, in_first_process, run_job
from stream.cli.terminal import outlive_readers
from stream.config.complaints import complaints
from stream.config.composition import to_objects
from stream.config.display import QUIET
from stream.config.loader import composed_once, hydra_composes_alike
from stream.config.paths import conf_folder
from stream.config.run import RunConfig
from stream.distributed.launched import launched
from stream.errors import UserError, is_out_of_memory, one_line
from stream.files.run_folder import FILE_NAME
from stream.files.writable import FULL
from stream.formatting import count, data_label, from_here, stream_title
from stream.record.method_name import name_given
from stream.record.run_record import RunRecord
from stream.run.interrupt import Interrupted, StopAll, stop_requests
from stream.run.lock import exclusive_writer, require_locks
from stream.run.new_folder import gone_unless_begun
from stream.run.preloaded import begin_importing, import_together
from stream.run.settings import register_groups

PLUGINS = ("hydra/sweeper", "hydra/launcher")

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
    if not (place := launched()).alone:
        from stream.cli.ranks import run_rank  # with torch

        raise SystemExit(run_rank(arguments, place, _how_a_run_goes_on))
    with error_boundary() as status, composed_once():
        require_locks()
        line = with_run_folder(CommandLine(arguments))
        check_command_line(conf_folder(), line)
        if line.dry_run:
            from stream.cli.dry_run import dry_run  # with torch, which nothing above needs

            dry_run(conf_folder(), line)
            return
        if line.multirun:
            check_sweep_folder(line.value("hydra.sweep.dir"), line.value("sweep"))
        status.code = 0 if _helped(line) else _started(line)
    if status.code:
        raise SystemExit(status.code)


def _helped(line: CommandLine) -> bool:
    """Print the help if it is asked for and Hydra is not needed for it; return whether it was."""
    text = line.flags.help and help_text(conf_folder(), line.config_name, line.settings())
    if text:
        print(text)
    return bool(text)


def _started(line: CommandLine) -> int:
    """Let Hydra do what a command line asks for; return the exit code."""
    sys.argv[1:] = line.for_hydra()
    how_on = partial(_how_a_sweep_goes_on, line)
    completes = completing(line.asks_what_fits)
    with completes, error_boundary(how_on) as status, of_plugins(line):
        _run_all()
        status.code = EXIT_FAILED if SweepReport.failed else 0
    return status.code


@contextmanager
def of_plugins(line: CommandLine) -> Iterator[None]:
    """Turn what Hydra and its plugins raise into one line; jobs note their own errors.

    Raises:
        UserError: a sweeper or launcher cannot do what it was asked for, or a folder not be made.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None or error.errno in FULL:
            raise
        if isinstance(error, FileNotFoundError) and not Path(error.filename).parent.exists():
            raise  # it was there when the sweep began
        raise UserError(
            f"{error.filename}: {error.strerror}; choose other folders (hydra.run.dir, "
            "hydra.sweep.dir, hydra.sweep.subdir)"
        ) from error
    except EXPECTED:
        raise
    except Exception as error:
        if not line.multirun:
            raise
        names = (f"{group}={line.value(group) or 'basic'}" for group in PLUGINS)
        told = f"Hydra cannot run this sweep, with {', '.join(names)}"
        raise UserError(f"{told}: {type(error).__name__}: {one_line(error)}") from error


def _run_all() -> None:
    """Have Hydra run everything.

    Raises:
        UserError: what Hydra cannot do.
        Interrupted: a signal asked to stop.
        ChildProcessError: a process of a sweep was killed.
    """
    with stop_requests(StopAll) as stop:
        with of_workers(stop.check), complaints(), hydra_composes_alike():
            job()
        stop.check()


@contextmanager
def of_workers(check: Callable[[], None]) -> Iterator[None]:
    """Say in one line that a process of a sweep was killed.

    Args:
        check: looks first whether that was asked for.

    Raises:
        ChildProcessError: it was not.
    """
    try:
        yield
    except BrokenProcessPool as error:  # joblib raises one of its own
        check()  # that process had not begun anything that could save
        reason = "a process of the sweep was killed (was there memory enough?)"
        raise ChildProcessError(reason) from error


@hydra.main(config_path=str(conf_folder()), config_name="config", version_base="1.3")
def job(composed: DictConfig) -> float | None:
    """Run what was composed; returns the average score, for sweepers.

    After a job that failed it is None, which Optuna counts as a failed trial; NaN ends its sweep.
    """
    hydra_config = HydraConfig.get()
    # Unresolved: the folder is called as it is, also where its name holds "${".
    runtime = cast("dict[str, Any]", OmegaConf.to_container(hydra_config.runtime, resolve=False))
    folder = Path(runtime["output_dir"])
    if hydra_config.mode == RunMode.MULTIRUN:
        quiet = composed.display == QUIET
        run = partial(_run, folder, is_job=True)
        return run_job(Job.now(), partial(to_objects, composed), run, quiet=quiet)
    with error_boundary(partial(_how_a_run_goes_on, folder)) as status:
        config = to_objects(composed)
        resume = config.resume is not None and (folder / FILE_NAME).exists()
        if resume:
            from stream.run.resume import resumed_config  # with torch

            given = [text.lstrip("+~").partition("=")[0] for text in hydra_config.overrides.task]
            config = resumed_config(folder, config, given)
        with exclusive_writer(folder), gone_unless_begun(SweepReport.made):
            if config.display != QUIET:
                _say_first(folder, config, resume, hydra_config.overrides.task)
            average = _run(folder, config, resume)
        if config.display != QUIET:
            for text in next_steps(config, folder):
                print(text, flush=True)
        return average
    raise SystemExit(status.code)  # before Hydra can say it again


def _say_first(
    folder: Path,
    config: RunConfig,
    resume: bool,  # noqa: FBT001
    overrides: Sequence[str],
) -> None:
    """Say what is about to run, before the libraries that learn are imported.

    In the run's log the same is said when its data are there, with their numbers.
    """
    begins = "going on with " if resume else ""
    tasks = count(len(config.task), "task")
    name = name_given(config.learner.name, overrides)
    print(
        f"{begins}{name} on {stream_title(config.stream_name)}: {tasks}, "
        f"{data_label(config.data.source)}, {config.backbone.name}, seed {config.seed} "
        f"({from_here(folder)})",
        flush=True,
    )


def _run(
    folder: Path,
    config: RunConfig,
    resume: bool,  # noqa: FBT001
    *,
    is_job: bool = False,
) -> float | None:
    """Run one job; the caller is the only writer of the folder."""
    from rich.console import Console

    from stream.report.status import Status, console_for

    # Jobs that run side by side share a screen: plain lines, each with its job's name.
    alone = in_first_process()
    console = console_for() if alone else Console(force_terminal=False)
    begin_importing(config.workers)
    with Status(console, config.display, "" if alone else folder.name) as status:
        status.stage("loading torch")
        import_together(["stream.run.session"], for_good=True)
        from stream.run.session import run_in
    return run_in(
        folder,
        config,
        console,
        overrides=HydraConfig.get().overrides.task,
        label="" if alone else folder.name,
        resume=resume,
        is_job=is_job,
    )


def _how_a_run_goes_on(folder: Path, error: BaseException) -> str:
    """Say behind an error how to go on, and where the finished rows are if there are any."""
    written = folder / FILE_NAME
    if isinstance(error, Interrupted):
        lost = "nothing is kept to go on from (checkpoint.enabled=false)"
        lost = lost if written.exists() else "nothing was done yet"
        again = shlex.quote(f"resume={folder}")
        return f"; go on with: {again}" if error.saved else f"; {lost}"
    if is_out_of_memory(error) and _has_checkpoint(folder):
        again = shlex.quote(f"resume={folder}")
        return f"; with more memory free, this run goes on with: {again}"
    try:
        partial = RunRecord.read(folder).status == "partial"
    except UserError:  # none was written, or it is not ours
        return ""
    return f" (rows finished so far are in {written}, status: partial)" if partial else ""


def _has_checkpoint(folder: Path) -> bool:
    """Whether a run kept a checkpoint."""
    from stream.run.checkpoint import CheckpointStore  # with torch

    return CheckpointStore(folder).latest() is not None


def _how_a_sweep_goes_on(line: CommandLine, error: BaseException) -> str:
    """Say behind what stopped a sweep how to go on."""
    if not line.multirun or not isinstance(error, KeyboardInterrupt | ChildProcessError):
        return ""
    if line.value("sweep") is None:
        return "; name a sweep (sweep=NAME) to go on"
    return "; the next start goes on from here"
