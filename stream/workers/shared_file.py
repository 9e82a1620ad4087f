"""A value in a file that processes of one machine map, so that its arrays are in memory once."""

import mmap
import pickle
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

ALIGNED = 64  # bytes; an array begins at a multiple


@dataclass(frozen=True, eq=False)
class SharedFile:
    """A `Shared` value. It is equal to what was made of it by pickling.

    The file is removed when the object of the process that wrote it is gone.

    Attributes:
        path: the file.
        spans: where its arrays begin and how many bytes they have.
        stream: the same of what is pickled besides.
    """

    path: str
    spans: Sequence[tuple[int, int]] = field(repr=False)
    stream: tuple[int, int] = field(repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedFile) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def get(self) -> Any:
        """Return the value; arrays are mapped, and a process that changes one has its own copy."""
        with open(self.path, "rb") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        parts = [mapped[begin : begin + size] for begin, size in self.spans]
        begin, size = self.stream
        return pickle.loads(mapped[begin : begin + size], buffers=parts)


def write_shared(value: Any, folder: Path) -> SharedFile:
    """Write a value to a new file in a folder."""
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(value, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    spans = []
    with NamedTemporaryFile(dir=folder, delete=False) as file:
        for buffer in buffers:
            with buffer.raw() as content:
                spans.append((_aligned(file), content.nbytes))
                file.write(content)
        begin = _aligned(file)
        file.write(stream)
    shared = SharedFile(file.name, spans, (begin, len(stream)))
    weakref.finalize(shared, partial(Path(file.name).unlink, missing_ok=True))
    return shared


def _aligned(file: Any) -> int:
    """Go on at the next place where an array may begin, and return it."""
    file.write(b"\0" * (-file.tell() % ALIGNED))
    place: int = file.tell()
    return place
