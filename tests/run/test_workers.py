"""Runs with workers end as without: digests, records, files; also stopped, and with candidates."""

import os
import shutil
import signal
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.in_process import composed
from benchmarks.stress.kill import comparable
from stream.config.run import EvaluationConfig, ProbeConfig, RunConfig
from stream.config.workers import WorkersConfig
from stream.errors import TrainingDivergedError, UserError
from stream.files.run_folder import FILE_NAME
from stream.learners import LEARNERS
from stream.run import runner
from stream.run.ahead import Ahead
from stream.run.interrupt import Interrupted
from stream.run.session import run_in
from stream.training.loop import fit
from stream.workers.processes import Processes
from tests.builders import SHORT
from tests.workers.in_process import InProcess

TINY = ["task=[stsb,cola,rte]", "backbone=tiny", "device=cpu", "data.train=24"]
TINY += ["data.validation=12", "data.test=8", "training.epochs=1", "training.min_steps=3"]
TINY += ["training.batch_size=8", "tracking=none", "checkpoint.every=2"]
CHANGES = ["learner.size=4", "evaluation.unseen=true", "evaluation.reuse=verify"]
RUNS = {
    "all": CHANGES,
    "no_encoder": ["learner=tfidf", "task=[cola,rte]"],
    "chooses": ["select={lr: [1e30,3e-2], size: [2,4]}", "task=[cola,rte]", "evaluation.reuse=on"],
}


def settings(*given: str) -> list[str]:
    names = {text.partition("=")[0] for text in given}
    kept = [t for t in TINY if t.partition("=")[0] not in names]
    steps = not any("tfidf" in text for text in given)
    return [*(t for t in kept if steps or not t.startswith(("training", "checkpoint"))), *given]


def run(folder: Path, config: RunConfig, workers: int = 1) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    resume = (folder / FILE_NAME).exists()
    chosen = replace(deepcopy(config), workers=WorkersConfig(workers))
    run_in(folder, chosen, Console(quiet=True), overrides=TINY, resume=resume)
    return found(folder)


def found(folder: Path) -> dict[str, Any]:
    results = comparable(folder)
    results["config"].pop("workers")
    for of in results["selection"].values():
        for tried in of["candidates"]:
            tried.update(train_s=0, score_s=0)
    return results


def hire(monkeypatch: pytest.MonkeyPatch, slots: int, before: Callable[[str], None]) -> InProcess:
    engine = InProcess(slots, before)
    chosen = lambda config: engine if config.workers.used else None  # noqa: E731
    monkeypatch.setattr(runner, "engine_of", chosen)
    monkeypatch.setattr("stream.run.coordinator.WAIT_S", 0.001)
    return engine


def nothing(job: str) -> None:
    del job


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """What a run without workers has, each made once."""
    known: dict[str, dict[str, Any]] = {}

    def of(name: str) -> dict[str, Any]:
        if name not in known:
            folder = tmp_path_factory.mktemp(name) / "run"
            known[name] = run(folder, composed(settings(*RUNS[name])))
        return known[name]

    return of


@pytest.mark.parametrize("name", RUNS)
def test_it_ends_as_without_workers(
    plain: Callable[[str], dict[str, Any]],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = hire(monkeypatch, 2, nothing)
    assert run(tmp_path / "run", composed(settings(*RUNS[name])), 2) == plain(name)
    learned = [job for job in engine.done if job.startswith("learning ")]
    tasks = [job.partition(" ")[2] for job in learned]
    order = [t for t in plain(name)["order"] for _ in range(tasks.count(t))]
    assert tasks != order
    assert not (tmp_path / "run" / "checkpoint" / "ahead").exists()


@pytest.mark.parametrize(("name", "at", "then"), [("all", 2, 2), ("chooses", 6, 1)])
def test_one_that_is_stopped_goes_on_with_any_number_of_workers(
    plain: Callable[[str], dict[str, Any]],
    name: str,
    at: int,
    then: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, config = tmp_path / "run", composed(settings(*RUNS[name]))
    left = [at]

    def stops(job: str) -> None:
        left[0] -= job.startswith("learning ")
        if left == [0]:
            os.kill(os.getpid(), signal.SIGHUP)

    hire(monkeypatch, 2, stops)
    with pytest.raises(Interrupted) as caught:
        run(folder, config, 2)
    assert caught.value.saved
    kept = [unit for unit, _ in Ahead(folder, enabled=True).read()]
    engine = hire(monkeypatch, 2, nothing)
    assert run(folder, config, then) == plain(name)
    assert len(kept) > 1
    learned = [job for job in engine.done if job.startswith("learning ")]
    assert len(learned) == (1 if then == 2 else 0)  # of three tasks two were learned


def test_one_that_chooses_goes_on_with_another_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its untrained score is measured before what was learned is loaded."""
    given = ["select={lr: [1e-2,3e-2]}", "training.min_steps=1", "data.train=8"]
    first, longer = (composed(settings(*given, f"task=[{t}]")) for t in ("cola", "cola,rte"))
    run(tmp_path / "alone", first)
    shutil.copytree(tmp_path / "alone", tmp_path / "run")
    hire(monkeypatch, 2, nothing)
    assert run(tmp_path / "run", longer, 2) == run(tmp_path / "alone", longer)


def test_an_error_of_a_worker_is_that_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, told = composed(settings("learner.lr=1e30")), []
    for workers in (1, 2):
        hire(monkeypatch, 2, nothing)
        with pytest.raises(TrainingDivergedError) as caught:
            run(tmp_path / f"{workers}", config, workers)
        told.append(str(caught.value))
    assert told[0] == told[1]


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return composed(settings("workers=2"))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"learner": LEARNERS["finetune"]()}, "learner=finetune, a task goes on from what others"),
        ({"learner": LEARNERS["adapterfusion"]()}, "share nothing"),
        ({"scenario": "inferred"}, "needs scenario=known"),
        ({"probe": ProbeConfig(every=2)}, "probe.every exclude"),
        ({"evaluation": EvaluationConfig(linear_probe=True)}, "linear_probe exclude"),
    ],
)
def test_what_workers_cannot_do_is_one_line(
    config: RunConfig, changed: dict[str, Any], why: str
) -> None:
    assert config.workers.count == 2
    with pytest.raises(UserError, match=why) as caught:
        replace(config, **changed)
    assert "\n" not in str(caught.value)


# What a task keeps: copies, whole encoders, sparse differences, inputs, no encoder at all.
KEEPING = ("adapter", "independent", "diff_pruning", "prompt_tuning", "tfidf")


@pytest.mark.parametrize("name", KEEPING)
def test_what_is_forgotten_leaves_no_trace(name: str, stream, three_tasks) -> None:
    run = stream(LEARNERS[name](), three_tasks[:1])
    untrained = run.digest(three_tasks[0])
    fit(run.learner, three_tasks[0], SHORT)
    first = run.digest(three_tasks[0])
    kept = {name: tensor.clone() for name, tensor in run.learner.task_state("a").items()}
    run.learner.forget(three_tasks[0])
    assert run.digest(three_tasks[0]) == untrained != first
    run.learner.load_task_state(three_tasks[0], kept)
    assert run.digest(three_tasks[0]) == first
    run.learner.forget(three_tasks[0])
    assert run.learner.learned == []
    fit(run.learner, three_tasks[0], SHORT)
    assert run.digest(three_tasks[0]) == first


@pytest.mark.slow
def test_processes_end_as_one_also_where_a_worker_is_killed(
    plain: Callable[[str], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one test that starts processes."""
    engines: list[Processes] = []
    killed: list[int] = []
    hired = runner.engine_of

    def noting(config: RunConfig) -> Any:
        engines.append(hired(config))
        return engines[-1]

    def steps(display: object, index: int, steps: int, examples: int) -> None:
        process = engines[0]._all[0]._process
        if not killed and process is not None:
            killed.append(process.pid)
            os.kill(process.pid, signal.SIGKILL)

    monkeypatch.setattr(runner, "engine_of", noting)
    monkeypatch.setattr("stream.report.progress.Display.steps", steps)
    folder = tmp_path / "run"
    assert run(folder, composed(settings(*RUNS["all"])), 2) == plain("all")
    assert killed
    assert "exit code -9" in (folder / "run.log").read_text()
    assert not Path(engines[0]._files.name).exists()
