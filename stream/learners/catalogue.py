"""The methods by name. Each is imported when it is asked for; the rest is known from a cache.

What all methods are was found out once, by importing them (`stream.learners.discovery`), and is
written to a file in the user's cache folder with what it was found out from: files, entry points,
versions. Where any of that has changed, all are imported and the file is written anew. Where no
file can be written or read, all are imported every time.
"""

import hashlib
import os
import pkgutil
import re
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from stream.config.paths import cache_folder
from stream.config.setting import Settings
from stream.files.concurrent import write_once
from stream.learners.description import LearnerDescription
from stream.learners.outline import Outline, no_learner, stand_in
from stream.version import installed_version

if TYPE_CHECKING:
    from stream.learners.base import Learner

Stat = tuple[int, int]
"""Of a file: when it was changed, in nanoseconds, and its size."""


class Basis(msgspec.Struct, frozen=True):
    """What the methods were found in, besides their files."""

    versions: tuple[str, ...]
    modules: tuple[str, ...]
    entries: tuple[tuple[str, str], ...]
    installed: dict[str, int]
    """The folders of installed packages, and when something was last put there or removed."""


class Known(msgspec.Struct):
    """What was found out about the methods."""

    basis: Basis
    files: dict[str, Stat]
    outlines: dict[str, Outline]
    broken: dict[str, str]


class Catalogue(Mapping[str, "type[Learner]"]):
    """The methods of a package and of the entry points of a group, by name.

    Args:
        package: its modules define at most one method each.
        group: the group of entry points.
    """

    def __init__(self, package: ModuleType, group: str):
        self._package, self._group = package, group
        self._imported: dict[str, type[Learner]] = {}

    def __getitem__(self, name: str) -> "type[Learner]":
        """Return a method; it is imported.

        Raises:
            UserError: the name is unknown, or what has it is broken.
        """
        if name not in self._imported:
            if name not in self._known.outlines:
                raise no_learner(name, self, self.broken)
            self._import(name)
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known.outlines)

    def __len__(self) -> int:
        return len(self._known.outlines)

    def __contains__(self, name: object) -> bool:
        return name in self._known.outlines

    @property
    def broken(self) -> Mapping[str, str]:
        """The names that are taken by what is no method, and why it is none."""
        return self._known.broken

    def description(self, name: str) -> LearnerDescription:
        """Return what people are told of a method; it is not imported.

        Raises:
            UserError: the name is unknown, or what has it is broken.
        """
        if name not in self._known.outlines:
            raise no_learner(name, self, self.broken)
        return self._known.outlines[name].description

    @cached_property
    def settings(self) -> Mapping[str, type[Settings]]:
        """The dataclass of each method's settings: one that stands for it, or the method itself.

        The latter where its fields are of a kind that the cache cannot hold.
        """
        return {
            name: self[name] if of.fields is None else stand_in(of, partial(self.__getitem__, name))
            for name, of in self._known.outlines.items()
        }

    def _import(self, name: str) -> None:
        """Import a method.

        Raises:
            UserError: it cannot be.
        """
        from stream.learners.discovery import Learners

        found = Learners()
        found.add(name, self._known.outlines[name].target)
        self._imported[name] = found[name]

    @cached_property
    def _known(self) -> Known:
        """What is known of the methods: from the cache, or because all are imported now."""
        entries = tuple(entry_points(group=self._group))
        basis = _basis(self._package, entries)
        path = _path(self._package)
        known = _read(path, basis)
        return self._found(basis, entries, path) if known is None else known

    def _found(self, basis: Basis, entries: Iterable[EntryPoint], path: Path) -> Known:
        """Import all methods and write down what they are."""
        from stream.learners.discovery import find_learners

        began = time.time_ns()
        found = find_learners(self._package, entries)
        outlines = found.outlines()
        self._imported = dict(found)
        known = Known(basis, _own_files(self._package, basis, found.blamed), outlines, found.broken)
        if all(changed < began for changed, _ in known.files.values()):  # else it may be of before
            _write(path, known)
        return known


def _basis(package: ModuleType, entries: Iterable[EntryPoint]) -> Basis:
    """Return what there is now to find methods in."""
    folders = {p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")}
    return Basis(
        (installed_version(), sys.version, msgspec.__version__),
        tuple(info.name for info in pkgutil.iter_modules(package.__path__)),
        tuple((entry.name, entry.value) for entry in entries),
        {path: os.stat(path).st_mtime_ns for path in sorted(folders) if os.path.isdir(path)},
    )


def _own_files(package: ModuleType, basis: Basis, blamed: Iterable[str]) -> dict[str, Stat]:
    """Return the files that decide what the methods are, and in which state they are.

    Every module that is imported now, wherever it is, but Python's own and installed packages
    without methods; and the files that a broken method failed in.
    """
    own = {package.__name__.partition(".")[0], *(re.split(r"\W", v)[0] for _, v in basis.entries)}
    foreign = (sysconfig.get_path("stdlib"), *basis.installed)
    found = set(blamed)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        is_own = name.partition(".")[0] in own
        if file and name != "__main__" and (is_own or not file.startswith(foreign)):
            found.add(file)
    return {file: stat for file in sorted(found) if (stat := _stat(file)) is not None}


def _stat(path: str) -> Stat | None:
    """Return the state of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _path(package: ModuleType) -> Path:
    """Return the cache file, which every clone and every environment has of its own."""
    whose = f"{list(package.__path__)} {sys.prefix} {sys.version}"
    name = hashlib.sha256(whose.encode()).hexdigest()[:16]
    return cache_folder(None) / "learners" / f"{name}.json"


def _read(path: Path, basis: Basis) -> Known | None:
    """Return what is written in the cache; None if there is nothing, or it no longer holds."""
    try:
        known = msgspec.json.decode(path.read_bytes(), type=Known)
    except (OSError, ValueError):  # not there, not ours to read, damaged, of another version
        return None
    same = known.basis == basis and all(_stat(f) == stat for f, stat in known.files.items())
    return known if same else None


def _write(path: Path, known: Known) -> None:
    """Write the cache, as a whole or not at all; without one, all works but is slower to start."""
    with suppress(OSError, OverflowError):  # the latter: a default that JSON has no number for
        written = msgspec.json.encode(known, enc_hook=str)  # of other defaults, what people see
        write_once(path, written)
