"""The lock of a run folder, also where the file system has none."""

import errno
import logging
import os
import sys
from pathlib import Path

import pytest

from stream.cli.main import main
from stream.errors import UserError
from stream.run.lock import exclusive_writer


def failing(number: int):
    def flock(file: object, how: int) -> None:
        raise OSError(number, os.strerror(number))

    return flock


@pytest.mark.parametrize("name", ["ENOLCK", "ENOTSUP", "ENOSYS", "EOPNOTSUPP", "EINVAL", "EIO"])
def test_a_file_system_without_locks_is_said_and_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    monkeypatch.setattr("fcntl.flock", failing(getattr(errno, name)))
    done = []
    with caplog.at_level(logging.WARNING, logger="stream"), exclusive_writer(tmp_path):
        done.append(True)
    assert done
    assert f"{tmp_path} cannot be locked (" in caplog.text


def test_another_writer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = pytest.raises(UserError, match="another process is writing to")
    with exclusive_writer(tmp_path), refused, exclusive_writer(tmp_path):
        pytest.fail("two writers")
    with exclusive_writer(tmp_path):
        pass
    monkeypatch.setattr("fcntl.flock", failing(errno.EAGAIN))
    with refused, exclusive_writer(tmp_path):
        pytest.fail("two writers")


def test_a_system_without_file_locks_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on Windows, which has no module fcntl."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "task=[cola]", "backbone=tiny"])
    error = capsys.readouterr().err
    assert error.startswith("error: runs need Linux or macOS")
    assert error.count("\n") == 1
    with pytest.raises(UserError, match="runs need Linux or macOS"), exclusive_writer(tmp_path):
        pytest.fail("a run without a lock")
    assert not [path for path in tmp_path.iterdir() if path.name != "lock"]
