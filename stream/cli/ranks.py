"""``torchrun ... run_stream.py``: one run on several ranks, of which the first is seen and writes.

All read the same command line, and take the same way through the same run. The others write into a
folder that is gone afterwards, keep no checkpoint, show nothing, and have no tracker.
"""

import copy
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from stream.cli.boundary import EXIT_FAILED, EXIT_USER, SIGNALLED, error_boundary
from stream.cli.command_line import CommandLine
from stream.cli.overrides import check_command_line
from stream.cli.resumed import with_run_folder
from stream.config.display import QUIET
from stream.config.paths import conf_folder
from stream.config.run import RunConfig
from stream.distributed.launched import Place
from stream.distributed.world import World, joined_world
from stream.errors import IsolationError, TrainingDivergedError, UserError, one_line, require
from stream.files.run_folder import FILE_NAME
from stream.report.status import console_for
from stream.report.tracking import NoTracking
from stream.run.interrupt import Interrupted
from stream.run.lock import exclusive_writer
from stream.run.new_folder import gone_unless_begun, lacking
from stream.run.ranks import check_ranks
from stream.run.resume import resumed_config
from stream.run.session import run_in
from stream.run.settings import compose_settings

CHECKPOINT = "checkpoint"  # the one folder in a run folder that is read to go on


@dataclass(frozen=True)
class _Plan:
    """What the first rank tells the others: the settings, the run folder, whether it goes on."""

    settings: list[str]
    folder: Path
    resume: bool

    @property
    def given(self) -> list[str]:
        """The settings that are the run's own, without Hydra's."""
        return [text for text in self.settings if not text.lstrip("+~").startswith("hydra.")]

    def config(self) -> RunConfig:
        """Return the configuration of the run.

        Raises:
            UserError: settings that cannot be.
        """
        config, _ = compose_settings(self.settings)
        if not self.resume:
            return config
        names = [text.lstrip("+~").partition("=")[0] for text in self.given]
        return resumed_config(self.folder, config, names)


def run_rank(
    arguments: Sequence[str],
    place: Place,
    hint: Callable[[Path, BaseException], str],
) -> int:
    """Be one rank of a run; return the exit code.

    Args:
        arguments: the command line, the same for all.
        place: of this process.
        hint: what to say behind an error, by the run folder: how to go on.
    """
    folder: list[Path] = []
    told = partial(_hint, folder, hint)
    boundary = error_boundary(told) if place.rank == 0 else _silent(place)
    with boundary as status, _lost_ranks(), joined_world(place) as world:
        take_part(arguments, world, folder.append)
    return status.code


def take_part(
    arguments: Sequence[str], world: World, note: Callable[[Path], None] = lambda folder: None
) -> None:
    """Take part in the run that a command line asks for.

    Args:
        arguments: the command line, the same for all.
        world: the ranks.
        note: called with the run folder when it is known.

    Raises:
        UserError: what is wrong, on every rank.
        Interrupted: a signal asked one of them to stop.
    """
    plan = _agreed(world, partial(_planned, arguments))
    note(plan.folder)
    config = plan.config()
    check_ranks(config, world)
    (_lead if world.is_first else _follow)(plan, config)


def _hint(
    folder: list[Path], hint: Callable[[Path, BaseException], str], error: BaseException
) -> str:
    """Return what to say behind an error; nothing before the folder is known."""
    if isinstance(error, ChildProcessError) and folder and (folder[0] / CHECKPOINT).is_dir():
        return f"; go on with: {shlex.quote(f'resume={folder[0]}')}"
    return hint(folder[0], error) if folder else ""


def _planned(arguments: Sequence[str]) -> _Plan:
    """Return what a command line asks for.

    Raises:
        UserError: something that is wrong, or nothing that ranks do.
    """
    line = CommandLine(arguments)
    ranks = "torchrun starts the processes of one run"
    require(not line.multirun, f"{ranks}, and -m is many: start it without torchrun")
    require(line.runs and not line.dry_run, f"{ranks}: ask what would run without torchrun")
    line = with_run_folder(line)
    check_command_line(conf_folder(), line)
    config, folder = compose_settings(line.settings())
    resume = config.resume is not None and (folder / FILE_NAME).exists()
    return _Plan(list(line.settings()), folder.absolute(), resume)


def _agreed(world: World, decide: Callable[[], _Plan]) -> _Plan:
    """Return what the first rank decides.

    Raises:
        UserError: what it raises, on every rank.
    """
    found: _Plan | UserError | None = None
    if world.is_first:
        try:
            found = decide()
        except UserError as error:
            found = UserError(one_line(error))
    found = world.from_first(found)
    if isinstance(found, UserError):
        raise found
    assert found is not None
    return found


def _lead(plan: _Plan, config: RunConfig) -> None:
    """Be the rank that a person sees, and that writes."""
    made = lacking(plan.folder)
    plan.folder.mkdir(parents=True, exist_ok=True)
    console = console_for()
    with exclusive_writer(plan.folder), gone_unless_begun(made):
        run_in(plan.folder, config, console, overrides=plan.given, resume=plan.resume)


def _follow(plan: _Plan, config: RunConfig) -> None:
    """Be one of the other ranks."""
    silent = copy.copy(config)
    silent.tracking, silent.display = NoTracking(), QUIET
    silent.checkpoint = copy.copy(config.checkpoint)
    silent.checkpoint.enabled = False
    with tempfile.TemporaryDirectory(prefix="task-stream-rank-") as name:
        scratch = Path(name)
        if plan.resume:
            _link(plan.folder, scratch)
        run_in(scratch, silent, Console(quiet=True), overrides=plan.given, resume=plan.resume)


def _link(folder: Path, scratch: Path) -> None:
    """Let a rank go on from a run folder without writing to it."""
    for path in folder.iterdir():
        if path.is_file():
            shutil.copy2(path, scratch / path.name)
    (scratch / CHECKPOINT).symlink_to(folder / CHECKPOINT, target_is_directory=True)


@dataclass
class _Status:
    """The exit code of a rank that is not seen."""

    code: int = 0


@contextmanager
def _silent(place: Place) -> Iterator[_Status]:
    """Say nothing of what the first rank says too; other errors are those of this rank."""
    status = _Status()
    try:
        yield status
    except UserError:
        status.code = EXIT_USER
    except Interrupted as error:
        status.code = SIGNALLED + error.signum
    except (TrainingDivergedError, IsolationError):
        status.code = EXIT_FAILED
    except OSError as error:
        print(f"error: rank {place.rank}: {one_line(error)}", file=sys.stderr)
        status.code = EXIT_FAILED


@contextmanager
def _lost_ranks() -> Iterator[None]:
    """Turn what gloo raises where another rank is gone into one line.

    Raises:
        ChildProcessError: another rank has ended.
    """
    try:
        yield
    except RuntimeError as error:
        if "gloo" not in str(error):
            raise
        raise ChildProcessError("another rank of this run has ended") from error
