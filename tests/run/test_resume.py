"""Going on with a run: equal to an unbroken one, and only with what cannot change results."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.kill import comparable
from stream.checkpoint import CheckpointStore
from tests.run.program import ENVIRONMENT, ROOT, run, run_plain, start


def test_killed_at_every_kind_of_moment_it_ends_as_if_it_had_not(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.kill", "--kills", "10", "--learners", "replay"]
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "equal" in done.stdout


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
