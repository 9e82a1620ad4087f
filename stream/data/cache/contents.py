"""The SHA-256 of files; a file is not read again if its state proves that it is as it was.

The state is device, inode, size, and the times of the last change of content and of inode, in
nanoseconds. A program can set the former time, but not the latter. Where the state is another one,
or where a file was hashed so soon after its last change that a later one could have left the same
times, its content counts.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stream.files.concurrent import write_once

SETTLED_S = 60.0
"""How long ago a file must have changed last for its times to tell a later change.

Clocks of file systems are coarse (2 s on FAT), those of servers are not this machine's, and what a
program writes through a memory map gets its time within some 35 s.
"""


class State(NamedTuple):
    """What is known of a file without reading it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class Contents:
    """The SHA-256 of some files, with a note on disk of those that need not be read again.

    Args:
        note: the file of the note; it may be missing, or damaged.
    """

    def __init__(self, note: Path):
        self._note = note
        self._known = _read(note)
        self._hashed: dict[Path, tuple[State, str, bool]] = {}

    def sha256(self, path: Path) -> str:
        """Return the SHA-256 of a file.

        Raises:
            OSError: it is not there, or cannot be read.
        """
        if path not in self._hashed:
            self._hashed[path] = self._looked_up(path)
        return self._hashed[path][1]

    def _looked_up(self, path: Path) -> tuple[State, str, bool]:
        """Return a file's state, its SHA-256, and whether the state will tell a later change."""
        with path.open("rb") as file:  # a network file system looks anew when a file is opened
            now_ns, state = time.time_ns(), _state(file.fileno())  # files have times of that clock
            known = self._known.get(os.path.abspath(path))
            if known is not None and known[0] == state:
                return state, known[1], True
            content = hashlib.file_digest(file, "sha256").hexdigest()
        last_ns = max(state.modified_ns, state.changed_ns)
        return state, content, last_ns < now_ns - SETTLED_S * 1e9

    def unchanged(self) -> bool:
        """Whether every file still has the content whose SHA-256 was returned."""
        try:
            return all(self._is_unchanged(path) for path in self._hashed)
        except OSError:
            return False

    def _is_unchanged(self, path: Path) -> bool:
        before, content, settled = self._hashed[path]
        with path.open("rb") as file:
            if _state(file.fileno()) != before:
                return False
            return settled or hashlib.file_digest(file, "sha256").hexdigest() == content

    def save(self) -> None:
        """Write down which files need not be read again, unless that is written already.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        settled = {
            os.path.abspath(path): (state, content)
            for path, (state, content, settled) in self._hashed.items()
            if settled
        }
        if settled != self._known:
            write_once(self._note, json.dumps(settled).encode())


def _state(descriptor: int) -> State:
    """Return the state of an open file."""
    found = os.fstat(descriptor)
    return State(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _read(note: Path) -> Mapping[str, tuple[State, str]]:
    """Return what was written down; nothing if it is not there or damaged."""
    try:
        written = json.loads(note.read_text())
        return {path: (State(*state), str(content)) for path, (state, content) in written.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
