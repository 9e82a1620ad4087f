"""What is no file is written to, and not replaced by one."""

import os
from pathlib import Path

from stream.files.atomic import write_atomic


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As root, ``--csv /dev/stdout`` made a file of the device."""
    pipe, link, target = (tmp_path / name for name in ("pipe", "link", "target"))
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomic(pipe, b"ab", b"c")
    assert os.read(reader, 9) == b"abc"
    os.close(reader)
    assert pipe.is_fifo()
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "target"]
