"""Going on with a run: equal to an unbroken one, and only with what cannot change results."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stream.checkpoint import CheckpointStore
from tests.run.test_command_line import ENVIRONMENT, ROOT, run, start

LONG = ("task=[stsb,cola]", "training.epochs=12", "checkpoint.every=3", "probe.every=4")
# Runs the program and kills its own process, without any clean-up, at the N-th call of a function.
KILLER = """
import importlib, os, runpy, signal, sys
sys.path.insert(0, os.path.dirname(sys.argv[3]))
module, _, name = sys.argv[1].rpartition(":")
owner = importlib.import_module(module)
*path, last = name.split(".")
for part in path:
    owner = getattr(owner, part)
original, left = getattr(owner, last), [int(sys.argv[2])]
def call(*args, **kwargs):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **kwargs)
setattr(owner, last, call)
sys.argv = [sys.argv[3], *sys.argv[4:]]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# Start-up, mid-step, within and after writing a checkpoint, in evaluation, within results.json.
MOMENTS = (
    ("stream.assembly:load_encoder", 1),
    ("stream.attempt:Attempt.note", 8),
    ("stream.checkpoint:os.fsync", 3),
    ("stream.checkpoint:CheckpointStore._collect_garbage", 1),
    ("stream.orchestrator:evaluate", 1),
    ("stream.results:json.dump", 2),
    ("stream.attempt:Attempt.note", 5),
)


def comparable(folder: Path) -> dict[str, Any]:
    """results.json without times, and the digests of what was learned."""
    results = json.loads((folder / "results.json").read_text())
    results.pop("timing")
    results["config"].pop("resume")
    results["probe"].pop("seconds")
    for cell in (cell for row in results["cells"] for cell in row if cell):
        cell.pop("seconds")
    groups = CheckpointStore(folder).latest()
    assert groups is not None
    return {**results, "groups": groups.groups}


def killed(folder: Path, function: str, calls: int, *arguments: str) -> int:
    """Run the program until it kills itself; return its exit code."""
    program = [sys.executable, "-c", KILLER, function, str(calls)]
    command = [*program, str(ROOT / "run_stream.py"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, check=False, capture_output=True
    ).returncode


@pytest.mark.parametrize(("learner", "moments"), [("adapter", MOMENTS), ("replay", MOMENTS[1:4])])
def test_killed_at_every_kind_of_moment_it_ends_as_if_it_had_not(
    tmp_path: Path, learner: str, moments: tuple[tuple[str, int], ...]
) -> None:
    given = (f"learner={learner}", *LONG)
    assert run(tmp_path, *given, "hydra.run.dir=whole")[0] == 0
    base = ("experiment=smoke", "device=cpu", *given, "hydra.run.dir=broken")
    for function, calls in moments:
        begun = (tmp_path / "broken/results.json").exists()
        if not begun:  # killed before the first record: there is nothing to go on from
            shutil.rmtree(tmp_path / "broken", ignore_errors=True)
        arguments = ("resume=broken",) if begun else base
        code = killed(tmp_path, function, calls, *arguments)
        assert code == -signal.SIGKILL, (function, calls)
    code, _, err = run_plain(tmp_path, "resume=broken")
    assert (code, err) == (0, "")
    assert comparable(tmp_path / "broken") == comparable(tmp_path / "whole")


def run_plain(folder: Path, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, str(ROOT / "run_stream.py"), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, check=False, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """A run that SIGTERM stopped, in the folder ``run``."""
    folder = tmp_path_factory.mktemp("stopped")
    given = ("task=[stsb,cola]", "training.epochs=3000", "checkpoint.every=2")
    process = start(folder, *given, "hydra.run.dir=run")
    deadline = time.monotonic() + 120
    while not (folder / "run/checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    return folder, process.returncode, err


def test_sigterm_saves_and_exits_143(stopped: tuple[Path, int, str]) -> None:
    folder, code, err = stopped
    assert code == 143
    assert err.startswith("error: stopped by SIGTERM; go on with: resume=")
    found = CheckpointStore(folder / "run").latest()
    assert found is not None
    assert found.state["training"]["batch"] >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("seed=3",), "seed was 0, now 3 "),
        (("learner=finetune",), "learner.name was adapter, now finetune"),
        (("task=[cola,stsb]",), "the tasks of a run can only be extended"),
        (("resume=nowhere",), "no run at nowhere"),
    ],
)
def test_what_would_change_results_is_refused_with_the_difference(
    stopped: tuple[Path, int, str], arguments: tuple[str, ...], message: str
) -> None:
    chosen = arguments if arguments[0].startswith("resume") else ("resume=run", *arguments)
    code, _, err = run_plain(stopped[0], *chosen)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_two_processes_cannot_write_to_one_folder(tmp_path: Path) -> None:
    given = ("task=[stsb]", "training.epochs=4000", "checkpoint.every=2", "hydra.run.dir=run")
    process = start(tmp_path, *given)
    deadline = time.monotonic() + 120
    while not (tmp_path / "run/checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        code, _, err = run_plain(tmp_path, "resume=run")
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert code == 2
    assert "another process is writing to" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("learner", ["adapter", "finetune"])
def test_a_finished_stream_grows_as_if_it_had_been_longer(tmp_path: Path, learner: str) -> None:
    given = (f"learner={learner}", "probe.every=4")
    assert run(tmp_path, *given, "task=[stsb,cola]", "hydra.run.dir=grown")[0] == 0
    code, _, err = run_plain(tmp_path, "resume=grown")
    assert code == 2
    assert "is complete; it can only go on with more tasks" in err
    longer = "task=[stsb,cola,crowdflower_airline]"
    code, _, err = run_plain(tmp_path, "resume=grown", longer)
    assert (code, err) == (0, "")
    assert run(tmp_path, *given, longer, "hydra.run.dir=whole")[0] == 0
    assert comparable(tmp_path / "grown") == comparable(tmp_path / "whole")
