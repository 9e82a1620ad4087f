"""Faults around a run: it ends with the same results, or says in one line why it cannot."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.stress.kill import comparable
from tests.run.program import ENVIRONMENT, PROGRAM, TINY, Started, run, start

pytestmark = pytest.mark.slow

GIVEN = ("task=[stsb,cola]", "checkpoint.every=2", "probe.every=4", "hydra.run.dir=run")
MOUNTS = ("unshare", "--map-root-user", "--mount", "sh")
can_mount = subprocess.run(
    [*MOUNTS, "-c", "mount -t tmpfs tmpfs /mnt"], check=False, capture_output=True
).returncode
needs_mounts = pytest.mark.skipif(can_mount != 0, reason="this system lets no one mount a tmpfs")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("whole")
    code, _, err = run(folder, *GIVEN)
    assert (code, err) == (0, "")
    return comparable(folder / "run")


def same(folder: Path, whole: dict[str, Any]) -> bool:
    found = comparable(folder / "run")
    for record in (found, whole):
        record["config"].pop("tracking", None)
    return found == whole


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[tuple[int, Callable[[str], None]]]:
    """A process that sees mounts of its own, and a way to have it run shell commands."""
    (tmp_path / "disk").mkdir()
    with subprocess.Popen(
        MOUNTS, cwd=tmp_path, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        stdin, stdout = shell.stdin, shell.stdout

        def call(command: str) -> None:
            stdin.write(f"{command}; echo $?\n")
            stdin.flush()
            assert stdout.readline() == "0\n"

        yield shell.pid, call


@needs_mounts
@pytest.mark.parametrize("size", ["40k", "260k"])
def test_a_full_disk_is_one_line_and_with_room_again_the_run_goes_on(
    mounts: tuple[int, Callable[[str], None]], tmp_path: Path, whole: dict[str, Any], size: str
) -> None:
    pid, call = mounts

    def program(*arguments: str) -> tuple[int, str, str]:
        return Started(tmp_path / "disk", "run_stream", *arguments, mounts_of=pid).result()

    call(f"mount -t tmpfs -o size={size} tmpfs disk")
    code, _, err = program(*TINY, *GIVEN)
    assert code == 1
    assert "No space left on device; make room there" in err
    assert err.count("\n") == 1
    call("mount -o remount,size=64m disk; cp -r disk before")
    if (record := tmp_path / "before/run/results.json").exists() and record.stat().st_size:
        code, _, err = program("resume=run", GIVEN[0])
    else:
        call("rm -rf disk/run")
        code, _, err = program(*TINY, *GIVEN)
    assert (code, err) == (0, "")
    call("cp -r disk/run .")
    assert same(tmp_path, whole)


@needs_mounts
def test_a_folder_that_cannot_be_written_is_one_line(
    mounts: tuple[int, Callable[[str], None]], tmp_path: Path
) -> None:
    pid, call = mounts
    call("mount -t tmpfs -o ro tmpfs disk")
    started = Started(tmp_path / "disk", "run_stream", *TINY, *GIVEN, mounts_of=pid)
    code, _, err = started.result()
    assert code == 2
    assert "run folder run: nothing can be written there" in err
    assert "Read-only file system" in err
    assert "choose another with hydra.run.dir=FOLDER" in err
    assert err.count("\n") == 1


def test_a_run_folder_that_vanishes_is_one_line(tmp_path: Path) -> None:
    process = start(tmp_path, *GIVEN, "training.min_steps=100000")
    deadline = time.monotonic() + 60
    while not (tmp_path / "run/checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    (tmp_path / "run").rename(tmp_path / "moved")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "No such file or directory" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_run_outlives_closed_streams(tmp_path: Path) -> None:
    """In a process of its own: Python looks at the streams when it starts.

    It also has an order of sets of its own, which changes nothing.
    """
    given = (*TINY, *GIVEN, "scenario=inferred")
    (tmp_path / "copy").mkdir()
    assert Started(tmp_path / "copy", "run_stream", *given).wait() == 0
    script = 'exec "$@" >&- 2>&- <&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *PROGRAM, *given],
        cwd=tmp_path,
        env=ENVIRONMENT | {"PYTHONUNBUFFERED": "1"},
        check=False,
    )
    assert done.returncode == 0
    assert same(tmp_path, comparable(tmp_path / "copy/run"))
    drawn = {path.stem: path.read_text() for path in tmp_path.glob("run/figures/*.svg")}
    assert sorted(drawn) == ["forgetting", "matrix", "parameters", "scores"]
    assert all("adapter on" in text for text in drawn.values())  # those of other tests are blank


def test_a_run_outlives_a_full_terminal(tmp_path: Path, whole: dict[str, Any]) -> None:
    full = Path("/dev/full")
    started = Started(tmp_path, "run_stream", *TINY, *GIVEN, out=full, err=full)
    assert started.wait() == 0
    assert same(tmp_path, whole)


def test_a_run_outlives_its_reader(tmp_path: Path, whole: dict[str, Any]) -> None:
    pipe, lines = tmp_path / "pipe", []
    os.mkfifo(pipe)

    def read_one() -> None:
        with pipe.open() as reader:
            lines.append(reader.readline())

    reader = threading.Thread(target=read_one)
    reader.start()
    started = Started(tmp_path, "run_stream", *TINY, *GIVEN, out=pipe)
    _, err = started.communicate()
    reader.join()
    assert (started.returncode, err) == (0, "")
    assert lines[0].strip()
    assert same(tmp_path, whole)


BROKEN = """
def __getattr__(name):
    def fail(*arguments, **named):
        raise RuntimeError(f"wandb.{name} is broken")
    return fail
"""


@pytest.mark.parametrize("module", [BROKEN, 'raise ImportError("no wandb")'])
def test_a_broken_wandb_changes_nothing(tmp_path: Path, whole: dict[str, Any], module: str) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library/wandb.py").write_text(module)
    given = (*TINY, *GIVEN, "tracking=wandb")
    code, out, err = Started(tmp_path, "run_stream", *given, path=tmp_path / "library").result()
    assert (code, err) == (0, "")
    assert out.count("W&B is switched off for this run") == 1
    assert same(tmp_path, whole)
