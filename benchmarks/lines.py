"""Files that grow by a line of JSON for each finished run."""

from pathlib import Path
from typing import TypeVar

import msgspec

Line = TypeVar("Line", bound=msgspec.Struct)


def read_lines(path: Path, kind: type[Line]) -> list[Line]:
    """Return the lines of a file; none where there is no file."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=kind) for line in lines]


def append_line(path: Path, line: msgspec.Struct) -> None:
    """Add a line to a file, which may not exist yet."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
