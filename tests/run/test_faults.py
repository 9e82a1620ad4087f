"""Faults around a run: it ends with the same results, or says in one line why it cannot."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.stress.kill import comparable
from tests.run.program import ENVIRONMENT, PROGRAM, TINY, start

GIVEN = ("task=[stsb,cola]", "checkpoint.every=2", "probe.every=4", "hydra.run.dir=run")
COMMAND = (*PROGRAM, *TINY, *GIVEN)
MOUNTS = ("unshare", "--map-root-user", "--mount", "sh", "-c")
can_mount = subprocess.run(
    [*MOUNTS, "mount -t tmpfs tmpfs /mnt"], check=False, capture_output=True
).returncode
needs_mounts = pytest.mark.skipif(can_mount != 0, reason="this system lets no one mount a tmpfs")


def shell(
    folder: Path, script: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script whose arguments are ``"$@"``."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *arguments],
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("whole")
    done = shell(folder, '"$@"', *COMMAND)
    assert (done.returncode, done.stderr) == (0, "")
    return comparable(folder / "run")


def same(folder: Path, whole: dict[str, Any]) -> bool:
    found = comparable(folder / "run")
    for record in (found, whole):
        record["config"].pop("tracking", None)
    return found == whole


@needs_mounts
@pytest.mark.parametrize("size", ["40k", "260k"])
def test_a_full_disk_is_one_line_and_with_room_again_the_run_goes_on(
    tmp_path: Path, whole: dict[str, Any], size: str
) -> None:
    (tmp_path / "disk").mkdir()
    script = f"""
        mount -t tmpfs -o size={size} tmpfs disk && cd disk || exit 99
        "$@" 2> ../first; echo $? > ../code
        mount -o remount,size=64m . || exit 99
        if [ -s run/results.json ]; then {" ".join(PROGRAM)} resume=run
        else rm -rf run; "$@"; fi || exit
        cp -r run ..
    """
    done = shell(tmp_path, f"exec {' '.join(MOUNTS)} '{script}' sh \"$@\"", *COMMAND)
    assert (done.returncode, done.stderr) == (0, "")
    first = (tmp_path / "first").read_text()
    assert "No space left on device" in first
    assert first.count("\n") == 1
    assert (tmp_path / "code").read_text() == "1\n"
    assert same(tmp_path, whole)


@needs_mounts
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    script = 'mount -t tmpfs -o ro tmpfs disk && cd disk || exit 99\n "$@"'
    done = shell(tmp_path, f"exec {' '.join(MOUNTS)} '{script}' sh \"$@\"", *COMMAND)
    assert done.returncode == 1
    assert "Read-only file system" in done.stderr
    assert done.stderr.count("\n") == 1


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


@pytest.mark.parametrize(
    "script",
    ['exec "$@" >&- 2>&- <&-', '"$@" > /dev/full 2> /dev/full', '"$@" | head -n 1; test -s run'],
    ids=["closed", "full", "reader gone"],
)
def test_a_run_outlives_those_who_look_at_it(
    tmp_path: Path, whole: dict[str, Any], script: str
) -> None:
    done = shell(tmp_path, script, *COMMAND, PYTHONUNBUFFERED="1")
    assert (done.returncode, done.stderr) == (0, "")
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
    path = str(tmp_path / "library")
    done = shell(tmp_path, '"$@"', *COMMAND, "tracking=wandb", PYTHONPATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("W&B is switched off for this run") == 1
    assert same(tmp_path, whole)
