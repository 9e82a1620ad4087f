"""Sweeps: jobs of one sweep fail, finish and are skipped apart from each other."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.run.program import run, run_alone, start

pytestmark = pytest.mark.slow

SWEEP = ("-m", "sweep=s")
LONG = ("training.epochs=2000", "checkpoint.every=2")
DIVERGING = ("learner=finetune", "task=[cola]")


def needs(launcher: str) -> pytest.MarkDecorator:
    plugin = f"hydra_{launcher}_launcher"
    missing = find_spec(f"hydra_plugins.{plugin}") is None
    return pytest.mark.skipif(missing, reason=f"{plugin} is not installed")


def state(folder: Path) -> dict[str, str]:
    """The status of every job's results.json, by the name of its folder."""
    paths = folder.glob("runs/sweeps/s/*/results.json")
    return {p.parent.name: json.loads(p.read_text())["status"] for p in sorted(paths)}


def workers_of(parent: int) -> list[int]:
    """The processes in which joblib runs the jobs of a sweep."""
    asked = ["pgrep", "-P", str(parent), "-f", "loky.backend.popen"]
    return [int(line) for line in subprocess.check_output(asked, text=True).split()]


def wandb_states(folder: Path) -> dict[str, dict[str, Any]]:
    """What W&B's own tool says about the offline runs, by job."""
    found = {}
    for path in folder.glob("runs/sweeps/s/*/wandb/offline-run-*/run-*.wandb"):
        tool = str(Path(sys.executable).parent / "wandb")
        command = [tool, "leet", "inspect", "--json", str(path)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        records = [json.loads(line) for line in lines.splitlines() if line.strip()]
        found[path.parents[2].name] = {"records": records, "exit": records[-1]["exit"]}
    return found


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    """Three jobs, of which the second fails; each with its W&B run."""
    folder = tmp_path_factory.mktemp("swept")
    values = "learner.lr=1e-3,1e30,2e-3"
    return folder, *run(folder, *SWEEP, *DIVERGING, values, "tracking=wandb")


def test_a_failed_job_stops_no_other_and_is_named_at_the_end(swept) -> None:
    folder, code, out, err = swept
    assert (code, err) == (1, "")
    assert state(folder) == {
        "0-finetune-s0": "complete",
        "1-finetune-s0": "partial",
        "2-finetune-s0": "complete",
    }
    closing = out.splitlines()[-2:]
    assert closing[0] == "sweep in runs/sweeps/s: 2 finished, 0 skipped, 1 failed"
    assert closing[1].startswith("  failed: 1-finetune-s0: loss nan while learning task 'cola'")
    assert "Traceback" not in out


def test_every_job_has_its_own_wandb_run_and_a_failed_one_says_so(swept) -> None:
    found = wandb_states(swept[0])
    exits = {name: values["exit"].get("exit_code", 0) for name, values in found.items()}
    assert exits == {"0-finetune-s0": 0, "1-finetune-s0": 1, "2-finetune-s0": 0}


def test_a_second_start_skips_finished_jobs_and_keeps_unfinished_ones_aside(swept) -> None:
    folder = swept[0]
    finished = folder / "runs/sweeps/s/0-finetune-s0/results.json"
    before = finished.read_bytes()
    code, out, _ = run(folder, *SWEEP, *DIVERGING, "learner.lr=1e-3,1e30,2e-3")
    assert code == 1
    assert "sweep in runs/sweeps/s: 0 finished, 2 skipped, 1 failed" in out
    assert finished.read_bytes() == before
    aside = folder / "runs/sweeps/s/unfinished/1-finetune-s0-1"
    assert (aside / "unfinished-results.json").is_file()
    assert (aside / "run.log").is_file()
    code, out, _ = run(folder, *SWEEP, *DIVERGING, "learner.lr=1e-3,3e-3")
    assert code == 1
    assert "learner.lr was 1e+30, now 0.003" in out
    assert finished.read_bytes() == before


def test_two_sweeps_of_the_same_second_get_two_folders(tmp_path: Path) -> None:
    processes = [start(tmp_path, "-m", "seed=1", "task=[stsb]") for _ in range(2)]
    outs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    folders = {out.splitlines()[-1] for out in outs}
    assert len(folders) == 2
    assert len(list(tmp_path.glob("runs/*/*-sweep-*/0-adapter-s1/results.json"))) == 2


@needs("joblib")
def test_jobs_in_other_processes(tmp_path: Path) -> None:
    """From a process of its own, as `python run_stream.py` hands its jobs on."""
    given = ("task=[stsb]", "learner.lr=1e-3,1e30", "hydra/launcher=joblib")
    code, out, _ = run_alone(tmp_path, *SWEEP, *given)
    assert code == 1
    assert "sweep in runs/sweeps/s: 1 finished, 0 skipped, 1 failed" in out
    assert state(tmp_path) == {"0-adapter-s0": "complete", "1-adapter-s0": "partial"}


@needs("submitit")
def test_a_job_that_submitit_starts(tmp_path: Path) -> None:
    given = ("task=[stsb]", "learner.lr=1e30", "hydra/launcher=submitit_local")
    code, out, _ = run(tmp_path, *SWEEP, *given)
    assert code == 1
    assert "sweep in runs/sweeps/s: 0 finished, 0 skipped, 1 failed" in out
    assert state(tmp_path) == {"0-adapter-s0": "partial"}


@needs("joblib")
def test_a_killed_process_of_a_sweep_is_one_line(tmp_path: Path) -> None:
    given = ("task=[stsb]", "seed=1,2", *LONG, "hydra/launcher=joblib")
    process = start(tmp_path, *SWEEP, *given)
    try:
        begun = tmp_path / "runs/sweeps/s/0-adapter-s1/checkpoint"
        deadline = time.monotonic() + 120
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        for worker in workers_of(process.pid):
            os.kill(worker, signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 1
    assert "Traceback" not in err
    (told,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert "a process of the sweep was killed" in told
    assert "the next start goes on from here" in told


def test_an_unexpected_error_leaves_its_traceback_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "runs/sweeps/s/0-adapter-s0/figures").mkdir(parents=True)
    (tmp_path / "runs/sweeps/s/unfinished").write_text("a file where a folder should be")
    code, out, _ = run(tmp_path, *SWEEP, "task=[stsb]")
    assert code == 1
    assert "0-adapter-s0 failed: " in out
    assert "Traceback" not in out
    assert "FileExistsError" in (tmp_path / "runs/sweeps/s/0-adapter-s0/run.log").read_text()


def test_ctrl_c_ends_the_whole_sweep(tmp_path: Path) -> None:
    process = start(tmp_path, *SWEEP, "seed=1,2,3", *LONG, "task=[stsb]")
    begun = tmp_path / "runs/sweeps/s/0-adapter-s1/checkpoint"
    deadline = time.monotonic() + 120
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err == "error: stopped by SIGINT; the next start goes on from here\n"
    assert "Traceback" not in err
    assert not (tmp_path / "runs/sweeps/s/1-adapter-s2").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-m", "sweep=../x"), "sweep"),
        (("sweep=x",), "sweep=x has no effect without -m"),
        (("-m", "seed=1,2", "learner.sise=3"), "learner.size"),
        (("-m", "learner=adapter,adaptor"), "adapter"),
    ],
)
def test_mistakes_are_one_line_before_anything_is_written(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run(tmp_path, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_second_start_leaves_a_running_job_alone(tmp_path: Path) -> None:
    given = (*SWEEP, "task=[stsb]", "training.min_steps=100000", "checkpoint.every=1000000")
    first = start(tmp_path, *given)
    job = tmp_path / "runs/sweeps/s/0-adapter-s0"
    deadline = time.monotonic() + 120
    while not (job / "results.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    inode, aside = job.stat().st_ino, job.parent / "unfinished"
    second = start(tmp_path, *given)
    try:
        while second.poll() is None and not aside.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not aside.exists()
        assert first.poll() is None
        assert second.poll() == 1
    finally:
        for process in (first, second):
            process.send_signal(signal.SIGINT)
        outs = [process.communicate(timeout=120)[0] for process in (first, second)]
    assert "0-adapter-s0 failed: another process is writing to" in outs[1]
    assert job.stat().st_ino == inode
