"""Many arrays in few files: one file for each type of number, which is mapped into memory.

Streams of thousands of tasks would otherwise need tens of thousands of files and memory maps, of
which a process may have some 65,000.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Place(NamedTuple):
    """Where an array is.

    Attributes:
        kind: the type of its numbers, such as ``int32``, which is the name of its file.
        start: its first number in that file.
        shape: its shape.
    """

    kind: str
    start: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape, dtype=np.int64))


class ArrayWriter:
    """Collects arrays and writes them."""

    def __init__(self) -> None:
        self._arrays: dict[str, list[np.ndarray]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, array: np.ndarray) -> Place:
        """Take an array; return where it will be."""
        kind = array.dtype.name
        start = self._sizes.get(kind, 0)
        self._arrays.setdefault(kind, []).append(array)
        self._sizes[kind] = start + array.size
        return Place(kind, start, array.shape)

    def write(self, folder: Path) -> None:
        """Write all arrays into a folder.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        for kind, arrays in self._arrays.items():
            with (folder / f"{kind}.npy").open("wb") as file:
                header: dict[str, Any] = {"descr": arrays[0].dtype.str, "fortran_order": False}
                header["shape"] = (self._sizes[kind],)
                np.lib.format.write_array_header_2_0(file, header)
                for array in arrays:
                    file.write(np.ascontiguousarray(array).data)


class MappedArrays:
    """The arrays of a folder as plain arrays that cannot be written to.

    Pickled, an array is its numbers, without the map.

    Raises:
        OSError: a file is missing or damaged.
        ValueError: a file is damaged.
    """

    def __init__(self, folder: Path):
        maps = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
        self._flat: Mapping[str, np.ndarray] = {k: np.asarray(flat) for k, flat in maps.items()}

    def __getitem__(self, place: Place) -> np.ndarray:
        """Return an array.

        Raises:
            KeyError: there is no such file.
            ValueError: the file ends before the array does.
        """
        flat = self._flat[place.kind]
        return flat[place.start : place.start + place.size].reshape(place.shape)
