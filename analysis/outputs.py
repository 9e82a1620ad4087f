"""Where a command writes: checked before any work, and errors of the disk in one line."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from analysis.errors import disk_trouble
from stream.errors import UserError, require
from stream.files.atomic import write_atomic
from stream.files.run_folder import FILE_NAME, LOCK, LOG_NAME, ROWS_NAME

OF_RUNS = (FILE_NAME, ROWS_NAME, LOG_NAME, LOCK)
"""The files of a run folder, which no command of analysis writes."""


def check_file(option: str, path: Path, example: str) -> None:
    """Raise `UserError` unless a file of that path can be written.

    Args:
        option: that named the path, such as ``--out``.
        path: its folders are made when it is written.
        example: a file name for somebody who named a folder.
    """
    of_run = path.name in OF_RUNS and (path.parent / FILE_NAME).exists()
    require(not of_run, f"{option} {path} is a file of a run: name another file")
    is_folder = path.is_dir()
    require(not is_folder, f"{option} {path} is a folder: name a file, such as {path / example}")
    if path.is_file() or not path.exists():  # a device or a pipe is written to, not its folder
        _check_writable(option, path, path.parent)
    require(
        not path.exists() or os.access(path, os.W_OK),
        f"{option} {path} is not writable: change its permissions, or name another file",
    )


def check_different(files: Mapping[str, Path]) -> None:
    """Raise `UserError` if two options, by which files are given, name the same file."""
    named: dict[Path, str] = {}
    for option, path in files.items():
        other = named.setdefault(path.resolve(), option)
        require(other == option, f"{other} and {option} name the same file: {path}")


def check_folder(option: str, path: Path) -> None:
    """Raise `UserError` unless files can be written into a folder of that path.

    Args:
        option: that named the path, such as ``--out``.
        path: it is made when something is written.
    """
    _check_writable(option, path, path)


def _check_writable(option: str, path: Path, folder: Path) -> None:
    """Check the nearest folder that exists: those below it can be made if it is writable."""
    while not os.path.lexists(folder):
        folder = folder.parent
    require(folder.is_dir(), f"{option} {path}: {folder} is not a folder: name another path")
    require(
        os.access(folder, os.W_OK | os.X_OK),
        f"{option} {path}: {folder} is not writable: change its permissions, or name another path",
    )


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Turn what a disk does wrong while a block writes to ``path`` into a `UserError`.

    Args:
        option: that named the path, such as ``--out``.
        path: a file or a folder.
    """
    try:
        yield
    except OSError as error:
        reason = disk_trouble(error)
        raise UserError(f"{option} {path} cannot be written: {reason}") from error


def write_text(option: str, path: Path, text: str) -> None:
    """Write a file, whole or not at all, and the folders that it needs.

    Args:
        option: that named the path, such as ``--csv``.
        path: of the file.
        text: its content.

    Raises:
        UserError: it cannot be written.
    """
    with writing(option, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())
