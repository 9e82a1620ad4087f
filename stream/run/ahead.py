"""What workers had learned ahead of the rows when a run was stopped, and where the others stood.

``checkpoint/ahead/`` in the run folder holds a file for each unit of learning: a line with the
SHA-256 of what follows, a line of JSON, and tensors as safetensors. What a unit learns depends on
names, data and seed alone, which a run that goes on has checked, so the next run takes it over.
A file that is torn or was changed counts as none: the unit is learned again.
"""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from stream.files.atomic import write_atomic
from stream.run.checkpoint import FOLDER as CHECKPOINT
from stream.run.packed import PackedPosition
from stream.run.worker import Learned, Position, Result, Unit

FOLDER = "ahead"


class Line(msgspec.Struct, omit_defaults=True):
    """What a file says in JSON.

    Attributes:
        learned: what came of the unit; None if it is on its way.
        numbers: where it stands besides tensors; None if it is learned.
        failed: it is learned, and has no tensors.
    """

    learned: Learned | None = None
    numbers: dict[str, Any] | None = None
    failed: bool = False


class Ahead:
    """The units of one run that are ahead of its rows."""

    def __init__(self, folder: Path, *, enabled: bool):
        """Use a run folder, unless the run keeps nothing to go on from."""
        self._folder = folder / CHECKPOINT / FOLDER
        self._enabled = enabled

    def write(self, unit: Unit, found: Result | Position) -> None:
        """Write what is known of a unit, in place of what was known before.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        if not self._enabled:
            return
        if isinstance(found, Position):
            line, tensors = Line(numbers=found.at.numbers), found.at.tensors
        else:
            line, tensors = Line(found.learned, failed=found.state is None), found.state or b""
        content = msgspec.json.encode(line) + b"\n" + tensors
        digest = hashlib.sha256(content).hexdigest().encode()
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path(unit), digest + b"\n", content)

    def read(self) -> Iterator[tuple[Unit, Result | Position]]:
        """Yield the units, and what is known of each."""
        for path in sorted(self._folder.glob("[0-9]*-*")):
            task, _, candidate = path.name.partition("-")
            digest, _, content = path.read_bytes().partition(b"\n")
            if hashlib.sha256(content).hexdigest().encode() != digest:
                continue
            text, _, tensors = content.partition(b"\n")
            line = msgspec.json.decode(text, type=Line)
            unit = Unit(int(task), int(candidate) if candidate else None)
            if line.learned is None:
                yield unit, Position(unit, PackedPosition(line.numbers or {}, tensors))
            else:
                yield unit, Result(line.learned, None if line.failed else tensors)

    def drop(self, unit: Unit) -> None:
        """Keep nothing of a unit: its row is saved."""
        self._path(unit).unlink(missing_ok=True)

    def clear(self) -> None:
        """Keep nothing at all."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, unit: Unit) -> Path:
        return self._folder / f"{unit.task}-{'' if unit.candidate is None else unit.candidate}"
