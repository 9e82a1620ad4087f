"""The file names in a run folder, shared by the program and by the analysis."""

from pathlib import Path

from stream.errors import require
from stream.files.writable import RUN, Place, check_writable

FILE_NAME = "results.json"
ROWS_NAME = "rows.jsonl"
SCHEMA = 2  # of results.json; raise it when readers must handle a change
LOCK, LOG_NAME = "lock", "run.log"  # all files of a run killed before its first record


def run_folder_of(path: Path) -> Path:
    """Return the run folder that a path names: itself, or that of the ``results.json`` it names."""
    return path.parent if path.name == FILE_NAME and path.is_file() else path


def check_folder_of_runs(folder: Path, place: Place) -> None:
    """Check that a folder in which runs get theirs can be written to, and is none of a run.

    Below a run folder no runs are looked for.

    Raises:
        UserError: what is in the way, and the setting that chooses another folder.
    """
    check_writable(folder, place)
    is_run = (folder / FILE_NAME).exists()
    require(not is_run, f"{place.setting}={folder} is a run folder; choose another")


def refuse_used_folder(folder: Path) -> None:
    """Check that a run folder can be written to, and holds no more than a run killed at its start.

    Raises:
        UserError: names what is in the way.
    """
    check_writable(folder, RUN)
    paths = folder.iterdir() if folder.is_dir() else ()
    used = sorted(path.name for path in paths if path.name not in (LOCK, LOG_NAME))
    require(
        not used,
        f"the run folder {folder} is not empty: it holds {', '.join(used[:5])}; choose another",
    )
