"""Folders that are written to: why nothing can be, in one line, and the setting to change."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stream.errors import UserError, require

FULL = (errno.ENOSPC, errno.EDQUOT)


class FullDiskError(OSError):
    """There is no room left in a folder. The message names it and its setting."""


class Place(NamedTuple):
    """A kind of folder that is written to, and the setting that chooses it."""

    name: str
    setting: str


RUN = Place("run folder", "hydra.run.dir")
SWEEP = Place("sweep folder", "hydra.sweep.dir")
CACHE = Place("cache", "cache")
EXPORT = Place("export", "--out")
OWN_TASKS = Place("folder of tasks", "--out")


def check_writable(folder: Path, place: Place) -> None:
    """Check that a folder can be made and written to; nothing that is made for it stays.

    Raises:
        UserError: what is in the way, and the setting that chooses another folder.
    """
    home = folder.parts[:1] == ("~",)  # no shell has read it
    require(not home, f"{place.setting}={folder}: ~ is no home folder here; write it in full")
    reason = _obstacle(folder)
    require(reason is None, _told(folder, place, str(reason)))


@contextmanager
def folder_errors(folder: Path, place: Place) -> Iterator[None]:
    """Say what a failure to write below ``folder`` means; errors of other paths pass.

    Raises:
        UserError: nothing can be written there.
        FullDiskError: there is no room.
    """
    try:
        yield
    except OSError as error:
        if not _concerns(error, folder):
            raise
        reason = error.strerror or str(error)
        if error.errno in FULL or error.errno is None:
            left = f"{reason}; make room there, or choose another with {place.setting}=FOLDER"
            raise FullDiskError(f"{place.name} {folder}: {left}") from error
        obstacle = _obstacle(folder)
        itself = Path(os.path.abspath(folder)).is_relative_to(os.path.abspath(error.filename))
        if obstacle is None and not itself and isinstance(error, FileNotFoundError):
            raise  # it was there when the run began: no mistake of the setting
        raise UserError(_told(folder, place, obstacle or reason)) from error


def _told(folder: Path, place: Place, reason: str) -> str:
    wanted = f"choose another with {place.setting}=FOLDER"
    return f"{place.name} {folder}: nothing can be written there ({reason}); {wanted}"


def _concerns(error: OSError, folder: Path) -> bool:
    """Whether an error is about ``folder``, a folder above it, or something below it.

    Python names no file where writing to an open one fails, and NumPy gives no number either.
    """
    if error.filename is None:
        return error.errno in FULL or (error.errno is None and type(error) is OSError)
    path, folder = Path(os.path.abspath(error.filename)), Path(os.path.abspath(folder))
    return path.is_relative_to(folder) or folder.is_relative_to(path)


def _obstacle(folder: Path) -> str | None:
    """Return why nothing can be written to a folder that may not be there yet; None if it can."""
    try:
        os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # a name that is too long, links in a circle, ...
        return getattr(error, "strerror", None) or str(error)
    absolute = Path.cwd() / folder
    for part in [absolute, *absolute.parents]:
        if part.is_dir():
            return _refusal(part)
        if part.is_symlink():
            return f"{part} is a link to nothing"
        if part.exists():
            return f"{part} is a file"
    return None


def _refusal(folder: Path) -> str | None:
    """Return why a folder that is there cannot be written to; None if it can.

    Permissions do not say all of it: nobody, not even root, makes a folder in /proc, and a server
    of files has rules of its own.
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
        return f"{folder}: {os.strerror(errno.EROFS if read_only else errno.EACCES)}"
    trial = folder / f".trial-{os.getpid()}"
    try:
        trial.mkdir()
        trial.rmdir()
    except FileExistsError:  # of a process that was killed between the two
        pass
    except OSError as error:
        if error.errno not in FULL:  # how much room there is, is seen where something is written
            return f"{folder} takes no new folder: {error.strerror}"
    return None
