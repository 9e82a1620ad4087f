"""Files that are written whole or not at all."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_durably(path: Path, data: bytes) -> None:
    """Write a file through a temporary one; after a crash it is the old one or the new one.

    What a killed process left of the temporary file is overwritten by the next one's.

    Raises:
        OSError: the disk is full or cannot be written; the old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write JSON without NaN, durably: a line a key, since indenting all takes ten times as long.

    Raises:
        OSError: as `write_durably`.
    """
    lines = (f"{json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in values.items())
    write_durably(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
