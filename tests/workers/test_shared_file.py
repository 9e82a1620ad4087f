"""Values that processes share through a file."""

import pickle
from pathlib import Path

import numpy as np

from stream.workers.shared_file import write_shared


def test_a_value_is_read_as_it_was_and_its_file_goes_with_it(tmp_path: Path) -> None:
    numbers = np.arange(1000, dtype=np.int32)
    np.save(tmp_path / "saved.npy", numbers)
    saved = np.load(tmp_path / "saved.npy", mmap_mode="r")
    value = {"mapped": saved, "plain": numbers[::2].copy(), "none": np.empty(0), "text": "a" * 99}
    shared = write_shared(value, tmp_path)
    assert (tmp_path / shared.path).stat().st_size > 6000
    assert sum(size for _, size in shared.spans) == 6000  # no array is in the stream
    there = pickle.loads(pickle.dumps(shared))
    assert there == shared
    found = there.get()
    assert {key: np.array_equal(found[key], value[key]) for key in value} == dict.fromkeys(
        value, True
    )
    found["plain"][:] = 0  # a copy of its own
    assert np.array_equal(shared.get()["plain"], value["plain"])
    del there, found
    assert Path(shared.path).exists()
    path = Path(shared.path)
    del shared
    assert not path.exists()
