"""Sweeps: jobs of one sweep fail, finish and are skipped apart from each other."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.run.learned import refused
from tests.run.program import TINY, Started, run, start

pytestmark = pytest.mark.slow

SWEEP = ("-m", "sweep=s")
LONG = ("training.epochs=2000", "checkpoint.every=2")
DIVERGING = ("learner=finetune", "task=[cola]")


def needs(name: str, kind: str = "launcher") -> pytest.MarkDecorator:
    plugin = f"hydra_{name}_{kind}"
    missing = find_spec(f"hydra_plugins.{plugin}") is None
    return pytest.mark.skipif(missing, reason=f"{plugin} is not installed")


def records(folder: Path) -> list[dict[str, Any]]:
    """The results.json of every job's folder, in the order of the names."""
    return [json.loads(p.read_text()) for p in sorted(folder.glob("runs/sweeps/s/*/results.json"))]


def state(folder: Path) -> dict[Any, str]:
    """The status of every job, by its learning rate."""
    return {r["config"]["learner"]["lr"]: r["status"] for r in records(folder)}


def job_of(folder: Path, pattern: str = "adapter-s*-*") -> Path:
    """The folder of the only job like this; one that is never there before it is made."""
    return next(folder.glob(f"runs/sweeps/s/{pattern}"), folder / "not there yet")


def children(parent: int, command: str) -> list[int]:
    """The processes that a process started with a command like this."""
    asked = ["pgrep", "-P", str(parent), "-f", command]
    return [int(line) for line in subprocess.check_output(asked, text=True).split()]


def wandb_states(folder: Path) -> dict[str, dict[str, Any]]:
    """What W&B's own tool says about the offline runs, by job."""
    found = {}
    for path in folder.glob("runs/sweeps/s/*/wandb/offline-run-*/run-*.wandb"):
        tool = str(Path(sys.executable).parent / "wandb")
        command = [tool, "leet", "inspect", "--json", str(path)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        records = [json.loads(line) for line in lines.splitlines() if line.strip()]
        results = json.loads((path.parents[2] / "results.json").read_text())
        found[results["config"]["learner"]["lr"]] = records[-1]["exit"]
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
    assert state(folder) == {0.001: "complete", 1e30: "partial", 0.002: "complete"}
    *table, closing, failure = out.splitlines()[-6:]
    assert closing == "sweep in runs/sweeps/s: 2 finished, 0 skipped, 1 failed"
    failed = job_of(folder, "finetune-s0-lr_1e_30-*").name
    assert failure.startswith(f"  failed: {failed}: loss nan while learning task 'cola'")
    rows = [line.split() for line in table]
    assert [row[:2] for row in rows[1:]] == [["1", "finished"], ["2", "failed"], ["3", "finished"]]
    assert [row[-1] for row in rows[1:]] == [f"learner.lr={v}" for v in ("0.001", "1e+30", "0.002")]
    averages = {
        r["config"]["learner"]["lr"]: r["metrics"].get("average_score") for r in records(folder)
    }
    assert rows[1][2] == f"{100 * averages[0.001]:.1f}"
    assert [line for line in out.splitlines() if line.startswith("job 2 of 3: learner.lr=1e+30 (")]
    assert "Traceback" not in out


def test_every_job_has_its_own_wandb_run_and_a_failed_one_says_so(swept) -> None:
    found = wandb_states(swept[0])
    assert {rate: exit_.get("exit_code", 0) for rate, exit_ in found.items()} == {
        0.001: 0,
        1e30: 1,
        0.002: 0,
    }


def test_a_second_start_skips_finished_jobs_and_keeps_unfinished_ones_aside(swept) -> None:
    folder = swept[0]
    finished = job_of(folder, "finetune-s0-lr_0.001-*")
    # As an older version named it.
    numbered = finished.rename(finished.with_name("0-finetune-s0"))
    before = (numbered / "results.json").read_bytes()
    failed = job_of(folder, "finetune-s0-lr_1e_30-*")
    code, out, _ = run(folder, "-m", *DIVERGING, "learner.lr=2e-3,1e30,1e-3", "sweep=s")
    assert code == 1
    assert "sweep in runs/sweeps/s: 0 finished, 2 skipped, 1 failed" in out
    assert (numbered / "results.json").read_bytes() == before
    aside = folder / "runs/sweeps/s/unfinished" / f"{failed.name}-1"
    assert (aside / "unfinished-results.json").is_file()
    assert (aside / "run.log").is_file()
    assert sorted(state(folder)) == [0.001, 0.002, 1e30]
    assert len(records(folder)) == 3


def test_two_sweeps_of_the_same_second_get_two_folders(tmp_path: Path) -> None:
    processes = [start(tmp_path, "-m", "seed=1", "task=[stsb]") for _ in range(2)]
    outs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    folders = {out.splitlines()[-1] for out in outs}
    assert len(folders) == 2
    assert len(list(tmp_path.glob("runs/*/*-sweep-*/adapter-s1-*/results.json"))) == 2


@needs("submitit")
def test_a_job_of_submitit_is_warned_put_back_and_goes_on(tmp_path: Path) -> None:
    """Its processes are copies, which import nothing; submitit does not know."""
    given = ("task=[stsb]", "training.epochs=50", "checkpoint.every=5")
    given += ("hydra/launcher=submitit_local",)
    program = ("tests.cli.submitit_copies", "run_stream")
    process = Started(tmp_path, *program, *TINY, *SWEEP, *given)
    deadline = time.monotonic() + 240
    while not job_of(tmp_path, "adapter-s0-*/checkpoint/manifest*").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    job = int((tmp_path / "copies/submitit.core._submit").read_text())
    os.kill(job, signal.SIGUSR2)  # as Slurm warns of the end of a job's time
    out, err = process.communicate(timeout=240)
    assert (process.returncode, err) == (0, "")
    assert "sweep in runs/sweeps/s: 1 finished, 0 skipped, 0 failed" in out
    (record,) = records(tmp_path)
    assert record["status"] == "complete"
    log = (job_of(tmp_path, "adapter-s0-*") / "run.log").read_text()
    assert log.count("100 training steps") == 2
    assert "stopped" in log


@needs("optuna", "sweeper")
def test_a_search_goes_on_with_its_study_and_outlives_failed_trials(tmp_path: Path) -> None:
    """The commands of the documentation."""
    search = ("hydra/sweeper=optuna", "hydra.sweeper.direction=maximize", *SWEEP)
    study = ("hydra.sweeper.n_trials=3", "hydra.sweeper.storage=sqlite:///study.db")
    study += ("hydra.sweeper.study_name=rates", "hydra.sweeper.sampler.seed=1")
    rates = ("task=[stsb]", "learner=finetune", "learner.lr=tag(log,interval(1e-3,1e29))")
    for _ in range(2):
        code, out, err = run(tmp_path, *search, *study, *rates)
        assert "Traceback" not in err
        assert out.count("best: job ") == 1
        assert code == int(" 0 failed" not in out)
    with sqlite3.connect(tmp_path / "study.db") as database:
        trials = database.execute("select state, count(*) from trials group by state").fetchall()
    assert sum(count for _, count in trials) == 6
    assert {state for state, _ in trials} == {"COMPLETE", "FAIL"}
    code, out, err = run(
        tmp_path, *search, "hydra/sweeper/sampler=grid", "learner.lr=interval(1,2)"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "error: Hydra cannot run this sweep, with hydra/sweeper=optuna" in err


@needs("joblib")
def test_a_killed_process_of_a_sweep_is_one_line(tmp_path: Path) -> None:
    """With one job, so that the other process imports nothing; this one dies as it begins."""
    given = ("task=[stsb]", "seed=1", *LONG, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    process = start(tmp_path, *SWEEP, *given)
    try:
        deadline = time.monotonic() + 120
        while not job_of(tmp_path, "adapter-s1-*").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        for worker in children(process.pid, "loky.backend.popen"):
            os.kill(worker, signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 1
    assert "Traceback" not in err
    (told,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert "a process of the sweep was killed" in told
    assert "the next start goes on from here" in told


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install '.[ray]'")
def test_jobs_on_ray_outlive_their_process_and_save_when_they_are_stopped(tmp_path: Path) -> None:
    given = ("task=[stsb]", "seed=1,2", *LONG, "hydra/launcher=ray")
    process = start(tmp_path, *SWEEP, *given)
    deadline = time.monotonic() + 240

    def wait_for(pattern: str, text: str = "", times: int = 0) -> Path:
        while time.monotonic() < deadline:
            found = job_of(tmp_path, f"adapter-s1-*/{pattern}")
            if found.exists() and (not text or found.read_text().count(text) >= times):
                return found
            time.sleep(0.1)
        raise TimeoutError(pattern)

    try:
        wait_for("checkpoint/manifest*")
        (raylet,) = children(process.pid, "raylet/raylet")
        for job in children(raylet, "ray::run_one"):
            os.kill(job, signal.SIGKILL)
        log = wait_for("run.log", "4,000 training steps", times=2)  # Ray has started it again
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == "error: stopped by SIGINT; the next start goes on from here\n"
    assert out.startswith("starting Ray on this machine\njob ")
    assert f"{log.parent.name} stopped: by SIGINT" in out.splitlines()
    assert "Traceback" not in out


def test_an_unexpected_error_leaves_its_traceback_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "runs/sweeps/s/0/figures").mkdir(parents=True)
    (tmp_path / "runs/sweeps/s/unfinished").write_text("a file where a folder should be")
    code, out, _ = run(tmp_path, *SWEEP, "task=[stsb]", "hydra.sweep.subdir='0'")
    assert code == 1
    assert "0 failed: " in out
    assert "Traceback" not in out
    assert "FileExistsError" in (tmp_path / "runs/sweeps/s/0/run.log").read_text()


def test_ctrl_c_ends_the_whole_sweep(tmp_path: Path) -> None:
    process = start(tmp_path, *SWEEP, "seed=1,2,3", *LONG, "task=[stsb]")
    deadline = time.monotonic() + 120
    while (
        not (job_of(tmp_path, "adapter-s1-*") / "checkpoint").exists()
        and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err == "error: stopped by SIGINT; the next start goes on from here\n"
    assert "Traceback" not in err
    assert not job_of(tmp_path, "adapter-s2-*").exists()


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
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused(tmp_path, *TINY, *arguments)
    assert capsys.readouterr().out == ""
    assert not list(tmp_path.iterdir())


def test_a_second_start_leaves_a_running_job_alone(tmp_path: Path) -> None:
    given = (*SWEEP, "task=[stsb]", "training.min_steps=100000", "checkpoint.every=1000000")
    first = start(tmp_path, *given)
    deadline = time.monotonic() + 120
    while not (job_of(tmp_path) / "results.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    job = job_of(tmp_path)
    inode, aside = job.stat().st_ino, job.parent / "unfinished"
    first.send_signal(signal.SIGSTOP)  # it need not compute meanwhile
    second = start(tmp_path, *given)
    try:
        while second.poll() is None and not aside.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not aside.exists()
        assert first.poll() is None
        assert second.poll() == 1
    finally:
        first.send_signal(signal.SIGCONT)
        for process in (first, second):
            process.send_signal(signal.SIGINT)
        outs = [process.communicate(timeout=120)[0] for process in (first, second)]
    assert f"{job.name} failed: another process is writing to" in outs[1]
    assert job.stat().st_ino == inode
