"""The lock of a run folder, also where the file system has none."""

import errno
import logging
import os
from pathlib import Path

import pytest

from stream.errors import UserError
from stream.run import lock
from stream.run.lock import exclusive_writer


def failing(number: int):
    def flock(file: object, how: int) -> None:
        raise OSError(number, os.strerror(number))

    return flock


@pytest.mark.parametrize("name", ["ENOLCK", "ENOTSUP", "ENOSYS", "EOPNOTSUPP", "EINVAL", "EIO"])
def test_a_file_system_without_locks_is_said_and_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    monkeypatch.setattr(lock, "flock", failing(getattr(errno, name)))
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
    monkeypatch.setattr(lock, "flock", failing(errno.EAGAIN))
    with refused, exclusive_writer(tmp_path):
        pytest.fail("two writers")
