"""The cache of whole streams: encoded tasks with their accounts, by everything that decides them.

The name of an entry is a hash of the settings, the tokenizer, the code of the pipeline, and the
content of every file that is read. So an entry is never out of date: where a file has changed, the
name is another one. Only what follows from the rows and these settings is in it; what differs from
run to run (order, heads) is not.
"""

import hashlib
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from stream.config.paths import cache_folder
from stream.config.run import RunConfig
from stream.config.task import TaskSpec
from stream.data.cache.arrays import ArrayWriter, MappedArrays, Place
from stream.data.cache.contents import Contents
from stream.data.loading import files_read
from stream.data.prepare.leakage import Leak
from stream.data.sources.finding import Found
from stream.data.spans.answers import Answers
from stream.data.table import Account
from stream.data.task import Split, Task
from stream.errors import UserError
from stream.files.concurrent import WRITING, folder_at_once
from stream.version import installed_version

LOG = logging.getLogger(__name__)
FORMAT = 1  # raise it when the files of an entry change
FACTS = "tasks.json"
NOTE = ".json"
MOST_ENTRIES = 32
MOST_BYTES = 4 << 30  # of all entries but the last one used
UNUSED_S = 7 * 86400.0
"""How long ago what is removed was last used.

A run on another machine may have mapped it: where the cache is on a shared disk, what is removed
there would be gone here.
"""
PACKAGES = ("numpy", "pyarrow", "tokenizers", "transformers", "python-calamine")
OWN = ("data/**/*.py", "config/*.py", "*.py")
"""The code that decides what becomes of rows, below the package."""


class Prepared(msgspec.Struct):
    """What became of the rows of a stream.

    Attributes:
        tasks: in the order of the settings.
        leaks: held-out texts that were found in training rows.
        short: which tasks have classes with fewer rows than were asked for, in words.
    """

    tasks: list[Task]
    leaks: list[Leak]
    short: list[str]


class _Split(msgspec.Struct):
    """An encoded split; the names of its arrays are those of `Split`."""

    truncated: int
    arrays: dict[str, Place]
    contexts: list[str] = []
    references: list[list[str]] = []


class _Task(msgspec.Struct):
    """A task without what the settings say of it."""

    splits: dict[str, _Split]
    hashes: dict[str, str]
    accounts: dict[str, Account]


class _Facts(msgspec.Struct):
    """All of an entry but its arrays."""

    tasks: dict[str, _Task]
    leaks: list[Leak]
    short: list[str]


class TaskCache:
    """The entry of a run's tasks.

    Args:
        config: the run's configuration.
        tokenizer: a hash of all that decides the tokens of a text (`TextEncoder.key`).
    """

    def __init__(self, config: RunConfig, tokenizer: str):
        self._config = config
        self._root = cache_folder(config.cache) / "tasks"
        settings = _settings(config, tokenizer)
        self._settings = hashlib.sha256(settings.encode()).hexdigest()
        self._contents = Contents(self._root / f"{self._settings}{NOTE}")
        self._files = self._find()
        self._folder = self._entry()

    def _find(self) -> list[Found] | None:
        """Return what is read; None where that does not decide the rows or is not there."""
        try:
            return files_read(self._config.data, self._config.task)
        except (UserError, OSError):  # said where it is read
            return None

    def _entry(self) -> Path | None:
        """Return the folder of the entry; None where there can be none."""
        state = [self._settings]
        try:
            for found in self._files or ():
                contents = [(str(path), self._contents.sha256(path)) for path in found.files]
                state.append(json.dumps([contents, found.member, str(found.classes), found.others]))
        except OSError:  # said where it is read
            return None
        name = hashlib.sha256("\n".join(state).encode()).hexdigest()
        return None if self._files is None else self._root / name

    def read(self) -> Prepared | None:
        """Return what became of the rows before; None if that is not known."""
        if self._folder is None:
            return None
        try:
            written = json.loads((self._folder / FACTS).read_text())
            facts = msgspec.convert(written, _Facts)
            arrays = MappedArrays(self._folder)
            specs = self._config.task
            tasks = [_task(name, specs[name], facts.tasks[name], arrays) for name in specs]
        except (OSError, ValueError, KeyError):  # not there, or damaged; ValidationError is one
            return None
        with suppress(OSError):  # a cache that is only read works as well
            self._contents.save()
            os.utime(self._folder)
        return Prepared(tasks, facts.leaks, facts.short)

    def write(self, prepared: Prepared) -> None:
        """Keep what became of the rows, unless a file changed while they were read."""
        if self._folder is None or self._find() != self._files or not self._contents.unchanged():
            return
        try:
            shutil.rmtree(self._folder, ignore_errors=True)  # damaged, else it had been read
            with folder_at_once(self._folder, sync=True) as temporary:
                _write(prepared, temporary)
            self._contents.save()
            _prune(self._root, self._folder)
        except OSError as error:  # the run needs no cache
            LOG.info("the encoded tasks are not kept for other runs: %s", error)


def _settings(config: RunConfig, tokenizer: str) -> str:
    """Return what decides what becomes of given files, as text."""
    values: list[Any] = [type(config.data).__name__, config.data, list(config.task.items())]
    values += [config.limits, config.leaks, tokenizer, _pipeline()]
    return json.dumps(msgspec.to_builtins(values))


@cache
def _pipeline() -> list[str]:
    """Return the versions of all code that rows go through; of the program's own, its hash."""
    package = Path(__file__).parents[2]
    state = hashlib.sha256()
    for path in sorted(path for pattern in OWN for path in package.glob(pattern)):
        state.update(f"{path.relative_to(package)} {path.stat().st_size}\n".encode())
        state.update(path.read_bytes())
    found = {**dict.fromkeys(PACKAGES, ""), **dict(_installed())}
    return [
        str(FORMAT),
        installed_version(),
        sys.version,
        state.hexdigest(),
        *map(" ".join, found.items()),
    ]


def _installed() -> Iterator[tuple[str, str]]:
    """Yield the versions of packages that are there."""
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def _write(prepared: Prepared, folder: Path) -> None:
    """Write an entry's files."""
    arrays = ArrayWriter()
    tasks = {}
    for task in prepared.tasks:
        splits = {name: _split(split, arrays) for name, split in task.splits.items()}
        accounts = dict(task.accounts)
        tasks[task.name] = _Task(splits, dict(task.hashes), accounts)
    arrays.write(folder)
    facts = msgspec.to_builtins(_Facts(tasks, prepared.leaks, prepared.short))
    (folder / FACTS).write_text(json.dumps(facts))  # ASCII: a text may hold half a character


def _split(split: Split, arrays: ArrayWriter) -> _Split:
    """Return an encoded split without the numbers of its arrays, which are taken."""
    places = {name: arrays.add(getattr(split, name)) for name in ARRAYS}
    stored = _Split(split.truncated, places)
    if split.answers is not None:
        places["char_spans"] = arrays.add(split.answers.char_spans)
        stored.contexts = list(split.answers.contexts)
        stored.references = [list(right) for right in split.answers.references]
    return stored


ARRAYS = ("token_ids", "offsets", "first_lengths", "labels")


def _task(name: str, spec: TaskSpec, stored: _Task, arrays: MappedArrays) -> Task:
    """Return a task as it was written; the arrays of its tokens are mapped."""
    splits = {}
    for split, of in stored.splits.items():
        found = {key: arrays[place] for key, place in of.arrays.items()}
        found["labels"] = labels = found["labels"].copy()
        answers = None
        if "char_spans" in found:
            contexts, references = tuple(of.contexts), tuple(map(tuple, of.references))
            rows = found["offsets"][:-1]
            answers = Answers(contexts, references, found.pop("char_spans"), rows, labels[:, 2:])
        splits[split] = Split(**found, truncated=of.truncated, answers=answers)
    return Task(name, spec, splits, stored.hashes, stored.accounts)


def _prune(root: Path, newest: Path) -> None:
    """Remove what has long been unused: entries beyond the most, and what was never completed.

    Args:
        root: the folder of all entries.
        newest: the entry that stays.
    """
    removable = [path for path in root.glob(f"{WRITING}*") if _age(path) > UNUSED_S]
    entries = sorted((path for path in root.glob("[!.]*") if path.is_dir()), key=_age)
    number, size = 1, 0
    for path in entries:
        if path != newest:
            number, size = number + 1, size + sum(file.stat().st_size for file in path.glob("*"))
            if (number > MOST_ENTRIES or size > MOST_BYTES) and _age(path) > UNUSED_S:
                removable.append(path)
    for path in removable:
        shutil.rmtree(path, ignore_errors=True)
    for path in sorted(root.glob(f"*{NOTE}"), key=_age)[2 * MOST_ENTRIES :]:
        path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """Return how long ago something was used, in seconds; what is gone was never used."""
    try:
        return (time.time_ns() - path.stat().st_mtime_ns) / 1e9
    except OSError:
        return float("inf")
