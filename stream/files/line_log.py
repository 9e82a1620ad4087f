"""Files that only grow, line by line: what a killed process left of a line does no harm."""

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from stream.files.atomic import naming_errors, sync_folder


class Extent(NamedTuple):
    """A beginning of a file that only grows: its lines and bytes, and their SHA-256."""

    lines: int
    size: int
    sha256: str


class LineLog:
    """A file that only grows, line by line; it has one writer.

    The writer knows how far the file is good. What a killed process left behind that, such as half
    a line, is written over by the next `append`.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: Path):
        """Begin with no good line; nothing is read or written yet."""
        self.path = path
        self._lines, self._size, self._hash = 0, 0, sha256()

    @property
    def extent(self) -> Extent:
        """How far the file is good."""
        return Extent(self._lines, self._size, self._hash.hexdigest())

    def append(self, lines: Iterable[bytes]) -> None:
        """Append lines, and have the disk keep them.

        Args:
            lines: without their ends.

        Raises:
            OSError: the disk is full or cannot be written, or the file is not what it was.
        """
        new = [line + b"\n" for line in lines]
        is_new = self._size == 0
        with naming_errors(self.path), self.path.open("wb" if is_new else "r+b") as file:
            if file.seek(0, os.SEEK_END) < self._size:
                raise FileNotFoundError(f"lines of {self.path} have vanished")
            file.truncate(self._size)
            file.seek(self._size)
            file.writelines(new)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(self.path.parent)
        self._note(new)

    def go_on(self, lines: Iterable[bytes]) -> None:
        """Take these lines, which the file begins with, as what is good; without their ends."""
        self._lines, self._size, self._hash = 0, 0, sha256()
        self._note([line + b"\n" for line in lines])

    def cut(self) -> None:
        """Take off what stands behind the good lines; no file is left where there is none."""
        if self._size:
            self.append(())
        else:
            self.path.unlink(missing_ok=True)

    def _note(self, new: Iterable[bytes]) -> None:
        """Count lines that are good."""
        for line in new:
            self._hash.update(line)
            self._lines += 1
            self._size += len(line)


def read_extent(path: Path, extent: Extent) -> list[bytes] | None:
    """Return the lines of the beginning of a file, without their ends; None if it is another.

    Raises:
        OSError: it cannot be read.
    """
    if not extent.size:
        return []
    with path.open("rb") as file:
        content = file.read(extent.size)
    lines = content.split(b"\n")[:-1]
    if sha256(content).hexdigest() != extent.sha256 or len(lines) != extent.lines:
        return None
    return lines


def whole_lines(path: Path) -> list[bytes]:
    """Return the lines of a file that only grows, without a last one that has no end.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
