"""The splits of a task that several files of one folder or archive are, by their names."""

import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from stream.config.paths import from_home
from stream.config.source import SPLITS
from stream.data.prepare.splits import ALL
from stream.data.sources.finding import FOLDER_DATA
from stream.errors import UserError

NAMES = {
    "train": ("train", "training", "trn"),
    "validation": ("validation", "valid", "val", "dev", "devel", "development"),
    "test": ("test", "testing", "tst"),
}
SPLIT_OF = {name: split for split, names in NAMES.items() for name in names}
DATA = {*FOLDER_DATA, ".txt"}
PACKED = (".gz", ".bz2", ".zst", ".xz")


@dataclass(frozen=True)
class Parts:
    """Where the rows of a task are.

    Attributes:
        folder: the folder that the patterns are relative to.
        patterns: a pattern for each split, or one for ``all``.
        beside: splits that lie beside a file that is one itself.
    """

    folder: Path
    patterns: Mapping[str, str]
    beside: tuple[str, ...] = ()


def parts_of(path: Path) -> Parts:
    """Return the splits that a folder or archive holds; of a file, the file.

    Splits are told by a word of the name that differs, as in ``train.csv`` and ``test.csv``, or
    ``a-train-0.parquet``, ``a-train-1.parquet`` and ``a-dev-0.parquet``; folders, too. Without a
    split besides train, all of it is one source.

    Raises:
        UserError: the names tell the splits of several tasks.
    """
    folder, pattern = split_path(path)
    whole = folder / pattern
    if whole.is_dir():
        names = [entry.name for entry in whole.iterdir()]
        splits = _splits(
            [name for name in names if _is_data(name) or (whole / name).is_dir()], path
        )
        if splits:
            return Parts(whole, splits)
    elif whole.suffix.lower() == ".zip" and whole.is_file() and zipfile.is_zipfile(whole):
        with zipfile.ZipFile(whole) as archive:
            splits = _splits(filter(_is_data, archive.namelist()), path)
        if splits:
            return Parts(folder, {split: f"{pattern}/{name}" for split, name in splits.items()})
    elif whole.is_file() and _split_word(whole.name):
        others = [entry.name for entry in whole.parent.iterdir() if _is_data(entry.name)]
        template = _template(whole.name)
        beside = sorted(
            name for name in others if _template(name) == template and name != whole.name
        )
        return Parts(folder, {ALL: pattern}, tuple(beside))
    return Parts(folder, {ALL: pattern})


def split_path(path: Path) -> tuple[Path, str]:
    """Return the nearest folder above a path, and the rest of the path."""
    whole = Path(os.path.abspath(from_home(path)))  # links are not followed: names matter
    folder = next(parent for parent in whole.parents if parent.is_dir())
    return folder, whole.relative_to(folder).as_posix()


def _is_data(name: str) -> bool:
    """Return whether a file's name is that of data; hidden files are none."""
    path = PurePosixPath(name)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    return suffixes[-1:] != [] and suffixes[-1] in DATA and path.name[0] not in "._"


def _split_word(name: str) -> re.Match[str] | None:
    """Return the first word of a file's name that names a split."""
    stem = PurePosixPath(name).name
    words = re.finditer(r"[A-Za-z]+", stem)
    return next((word for word in words if word[0].lower() in SPLIT_OF), None)


def _template(name: str) -> str:
    """Return a path with its split and its numbers left open: equal for the parts of one task."""
    word = _split_word(name)
    if word is None:
        return ""
    folder, file = str(PurePosixPath(name).parent), PurePosixPath(name).name
    open_ = f"{file[: word.start()]}\0{file[word.end() :]}"
    return f"{folder}/{re.sub(r'[0-9]+', '#', open_)}"


def _splits(names: Iterable[str], path: Path) -> dict[str, str]:
    """Return a pattern for each split; none if the names tell no split besides train.

    Raises:
        UserError: the names tell the splits of several tasks.
    """
    found: dict[str, dict[str, list[str]]] = {}
    there = sorted(names)
    for name in there:
        word = _split_word(name)
        if word:
            split = SPLIT_OF[word[0].lower()]
            found.setdefault(_template(name), {}).setdefault(split, []).append(name)
    tasks = {t: splits for t, splits in found.items() if len(splits) > 1 and "train" in splits}
    if len(tasks) > 1:
        shown = ", ".join(splits["train"][0] for splits in tasks.values())
        raise UserError(
            f"{path}: its files are splits of {len(tasks)} tasks ({shown}); inspect one, or "
            "move each task's files to a folder of their own"
        )
    for splits in tasks.values():
        patterns = {split: _pattern(splits[split], there) for split in SPLITS if split in splits}
        if all(patterns.values()):
            return patterns
    return {}


def _pattern(names: list[str], there: Iterable[str]) -> str:
    """Return a pattern that matches these names only, of all that are there; ``""`` if none."""
    if len(names) == 1:
        return names[0]
    pattern = re.sub(r"[0-9]+", "*", names[0])
    return pattern if [n for n in there if fnmatchcase(n, pattern)] == names else ""
