"""Which files a pattern of a task's YAML names; what is found and what is read are the same."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from stream.data.sources.class_folders import files_of_classes
from stream.data.sources.parts import parts_below
from stream.data.sources.sheets import WORKBOOKS
from stream.errors import UserError, require

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
JSON = (".jsonl", ".ndjson", ".json")
TEXT = (".csv", ".tsv", ".tab", ".txt", ".psv")
DATA = (*PARQUET, *ARROW, *JSON, *TEXT, *WORKBOOKS)
FOLDER_DATA = tuple({*DATA} - {".txt"})  # a .txt may be one row's text
CONTAINERS = (".zip", *WORKBOOKS)  # files that may hold several tables


@dataclass(frozen=True)
class Found:
    """The files that a pattern names: everything that is read for one table.

    Attributes:
        files: in the order in which they are read.
        member: which table of the only file is meant; None for all of it.
        classes: the folder with a folder for each class, if the files are one row each.
        others: how many files lie beside them that are no data.
    """

    files: tuple[Path, ...]
    member: str | None = None
    classes: Path | None = None
    others: int = 0


def find_files(root: Path, pattern: str) -> Found:
    """Return the files that ``pattern`` names below ``root``; none of them is opened.

    Args:
        root: the folder to look in, or an archive or workbook.
        pattern: a path relative to it, a glob pattern, a folder with one folder per class, a folder
            with the parts of one table, ``archive.zip/member`` or ``book.xlsx/sheet``.

    Raises:
        UserError: nothing matches.
    """
    parts = PurePosixPath(pattern).parts
    is_below = bool(parts) and ".." not in parts and not Path(pattern).is_absolute()
    require(is_below, f"files: {pattern!r} is not a path or pattern below {root}")
    if root.suffix.lower() in CONTAINERS and root.is_file():
        return Found((root,), member=pattern)
    require(root.is_dir(), f"files: {root} is not a folder (looking for {pattern!r})")
    for depth in range(1, len(parts)):
        archive = root.joinpath(*parts[:depth])
        if archive.suffix.lower() in CONTAINERS and archive.is_file():
            return Found((archive,), member="/".join(parts[depth:]))
    exact = root / pattern
    matches = [exact] if exact.exists() else sorted(root.glob(pattern))
    matches = [path for path in matches if path == exact or not path.name.startswith(".")]
    files, others = [path for path in matches if path.is_file()], 0
    if len(matches) == 1 and not files:
        (only,) = matches
        require(only.is_dir(), f"files: {only} is a pipe or a device, neither a file nor a folder")
        files, others = parts_below(only, FOLDER_DATA)
        if not files:
            files, others = files_of_classes(only)
            return Found(tuple(files), classes=only, others=others)
    if not files:
        there = ", ".join(sorted(path.name for path in root.iterdir())[:10]) or "nothing"
        what = "only folders match" if matches else "nothing matches"
        raise UserError(f"files: {what} {pattern!r} in {root}; it holds {there}")
    return Found(tuple(files), others=others)
