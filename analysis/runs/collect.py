"""Finds runs on disk and reads their records."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.files.run_folder import FILE_NAME


@dataclass(frozen=True)
class RecordedRun:
    """A run folder and the record in it."""

    path: Path
    record: RunRecord


def collect(paths: Iterable[Path]) -> tuple[list[RecordedRun], list[str]]:
    """Read every run at or below the paths, each once.

    Args:
        paths: run folders, folders of runs, or results.json files.

    Returns:
        The runs in the order of the paths, and one line for each path or file without use.
    """
    runs: dict[Path, RecordedRun] = {}
    problems: list[str] = []
    for path in paths:
        files = find(path)
        if not files:
            what = f"no {FILE_NAME} in or below it" if path.is_dir() else "no such folder"
            problems.append(f"{path}: {what}")
        for file in files:
            try:
                runs.setdefault(file.resolve(), RecordedRun(file.parent, RunRecord.read(file)))
            except UserError as error:
                problems.append(" ".join(str(error).split()))
    return list(runs.values()), problems


def find(path: Path) -> list[Path]:
    """The results.json files at or below a path, sorted; none inside another run's folder."""
    if path.is_file():
        return [path]
    found, folders = list[Path](), set[Path]()
    for file in sorted(path.rglob(FILE_NAME), key=lambda file: (len(file.parts), file)):
        if folders.isdisjoint(file.parents):
            found.append(file)
            folders.add(file.parent)
    return sorted(found)
