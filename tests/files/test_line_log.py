"""Files that only grow: what is behind the good lines is written over, never read."""

from hashlib import sha256
from pathlib import Path

import pytest

from stream.files.line_log import LineLog, read_extent, whole_lines


def test_a_log_knows_its_lines_bytes_and_digest(tmp_path: Path) -> None:
    log, path = LineLog(tmp_path / "log"), tmp_path / "log"
    assert log.extent == (0, 0, sha256(b"").hexdigest())
    log.append([b"one", b"two"])
    first = log.extent
    log.append([b"three"])
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert log.extent == (3, 14, sha256(b"one\ntwo\nthree\n").hexdigest())
    assert first == (2, 8, sha256(b"one\ntwo\n").hexdigest())
    assert read_extent(path, first) == [b"one", b"two"]
    assert read_extent(path, log.extent) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("content", [b"one\ntwO\n", b"one\n", b"", b"one\ntwo"])
def test_another_beginning_is_none(tmp_path: Path, content: bytes) -> None:
    log = LineLog(tmp_path / "log")
    log.append([b"one", b"two"])
    log.path.write_bytes(content)
    assert read_extent(log.path, log.extent) is None


def test_half_a_line_is_written_over_and_cut(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log")
    log.append([b"one"])
    log.path.write_bytes(b"one\nhalf a long li")
    assert whole_lines(log.path) == [b"one"]
    log.append([b"two"])
    assert log.path.read_bytes() == b"one\ntwo\n"
    again = LineLog(log.path)
    again.go_on([b"one"])
    again.cut()
    assert log.path.read_bytes() == b"one\n"
    LineLog(log.path).cut()
    assert not log.path.exists()
    assert whole_lines(log.path) == []


def test_a_new_log_replaces_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"of another run\nand more\n")
    LineLog(tmp_path / "log").append([b"one"])
    assert (tmp_path / "log").read_bytes() == b"one\n"


def test_lines_that_vanished_are_not_made_up(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log")
    log.append([b"one", b"two"])
    log.path.write_bytes(b"one\n")
    with pytest.raises(FileNotFoundError, match="vanished"):
        log.append([b"three"])
    assert log.path.read_bytes() == b"one\n"
    log.path.unlink()
    with pytest.raises(FileNotFoundError):
        log.append([b"three"])


def test_a_full_disk_names_the_file_and_keeps_the_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LineLog(tmp_path / "log")
    log.append([b"one"])
    before = log.extent

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stream.files.line_log.os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*log'"):
        log.append([b"two"])
    monkeypatch.undo()
    assert log.extent == before
    assert read_extent(log.path, before) == [b"one"]
    log.append([b"three"])
    assert log.path.read_bytes() == b"one\nthree\n"
