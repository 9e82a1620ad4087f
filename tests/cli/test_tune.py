"""``task-stream tune``: trials are runs on validation rows; it goes on; its preset is usable."""

import os
import signal
import time
from concurrent.futures import Future
from dataclasses import fields, replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from stream.cli.main import main
from stream.cli.outcomes import outcomes
from stream.cli.trial_runs import TrialSweep, run_trial
from stream.cli.tune_line import read_line
from stream.config.compose import searched_too
from stream.errors import UserError
from stream.files.run_folder import FILE_NAME
from stream.record.run_record import RunRecord
from stream.run.settings import compose_settings
from stream.tuning.options import TuneOptions
from stream.tuning.record import TuneRecord
from stream.tuning.space import Interval
from stream.workers.engine import WorkerLostError

ONE = ("backbone=tiny", "device=cpu", "data.train=16", "data.validation=8", "data.test=8")
ONE += ("training.epochs=1", "training.min_steps=2", "training.batch_size=8")
ONE += ("evaluation.baseline=false", "checkpoint.enabled=false")
TWO = ("tune", "learner=adapter,bitfit", "adapter.lr=1e30,1e-3", "adapter.size=4")
TWO += ("bitfit.lr=1e-3,2e-3", "tune.trials=2", "tune.seeds=2", "tune.out=found", *ONE)
TWO += ("task=[stsb,cola]", "tune.tasks=1")


def refuse_to_train(*arguments: Any, **named: Any) -> None:
    raise AssertionError("a finished trial was run again")


def stop_at(call: int, patch: pytest.MonkeyPatch) -> None:
    """Have a signal come while the data of a run are read."""
    from stream.run import setup

    original, calls = setup.load_encoder, iter(range(1, 100))

    def load(*arguments: Any, **named: Any) -> Any:
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGHUP)
        return original(*arguments, **named)

    patch.setattr(setup, "load_encoder", load)


def read_trials(folder: Path) -> TuneRecord:
    return msgspec.json.decode((folder / "trials.json").read_bytes(), type=TuneRecord)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a search was stopped in its third run and then went on."""
    root = tmp_path_factory.mktemp("tune")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        with pytest.MonkeyPatch.context() as stopped:
            stop_at(3, stopped)
            assert main(TWO) == 128 + signal.SIGHUP
        assert read_trials(root / "found").status == "partial"
        assert main(TWO) == 0
    return root / "found"


@pytest.fixture(scope="module")
def record(folder: Path) -> TuneRecord:
    return read_trials(folder)


def test_every_trial_is_a_run_on_validation_rows(folder: Path, record: TuneRecord) -> None:
    assert (record.status, record.split, record.tasks) == ("complete", "validation", ["stsb"])
    assert (record.seeds, record.most_trials) == ([0, 1], 2)
    for name, found in record.learners.items():
        for trial in found.trials:
            for run in trial.runs:
                one = RunRecord.read(folder / "trials" / run.folder)
                settings = {key: one.config["learner"][key] for key in trial.settings}
                assert (one.learner, one.seed, settings) == (name, run.seed, trial.settings)
                assert (one.split, one.order) == ("validation", ["stsb"])
                assert not (folder / "trials" / run.folder / "figures").exists()
                if run.score is not None:
                    assert run.score == one.metrics["average_score"] == one.matrix[0][0]
                    assert run.steps == one.timing.steps == 2


def test_the_best_of_each_learner_and_its_failed_trial(record: TuneRecord) -> None:
    adapter, bitfit = record.learners["adapter"], record.learners["bitfit"]
    first, second = adapter.trials
    assert (first.status, first.score) == ("failed", None)
    assert "try a smaller learner.lr" in first.reason
    assert (second.settings, second.status) == ({"size": 4, "lr": 1e-3}, "complete")
    assert adapter.ends["lr"].startswith("at an end: learner.lr must be")  # 1e-36
    assert len(bitfit.trials) == record.most_trials
    for found in (adapter, bitfit):
        scores = {t.number: t.score for t in found.trials if t.score is not None}
        assert found.best == max(scores, key=lambda number: (scores[number], -number))
        means = [sum(r.score or 0 for r in t.runs) / 2 for t in found.trials]
        assert all(means[n] == pytest.approx(s) for n, s in scores.items())


def test_the_same_command_runs_nothing_again(
    folder: Path, record: TuneRecord, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(folder.parent)
    done = [t for found in record.learners.values() for t in found.trials if t.status == "complete"]
    again = [run.folder for trial in done for run in trial.runs]
    before = {name: (folder / "trials" / name / FILE_NAME).stat().st_mtime_ns for name in again}
    arguments = [text for text in TWO if not text.startswith(("adapter.", "learner="))]
    monkeypatch.setattr("stream.run.runner.learn", refuse_to_train)
    assert main([*arguments, "learner=bitfit", "--quiet"]) == 0
    assert before == {n: (folder / "trials" / n / FILE_NAME).stat().st_mtime_ns for n in before}
    assert read_trials(folder).learners["bitfit"] == record.learners["bitfit"]
    shown = capsys.readouterr().out
    assert "skipped" not in shown
    assert shown.count("best of bitfit") == 1


class Copies:
    """An engine whose workers are copies of this process, one for each job."""

    def __init__(self, stop: Path):
        self._stop = stop
        self.first = 0  # jobs that it got before the search knew of one that it was done

    def __enter__(self) -> "Copies":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def stop(self) -> None:
        self._stop.touch()

    def submit(self, job: str, function: Any, *arguments: Any) -> Future[None]:
        worker = SimpleNamespace(kept={}, stopping=self._stop.exists)
        copy = os.fork()
        if copy == 0:
            code = 1
            try:
                function(worker, *arguments)
                code = 0
            finally:
                os._exit(code)
        future: Future[None] = Future()
        self.first += not Path("found/trials.json").exists()
        Thread(target=lambda: self._wait(job, copy, future)).start()
        return future

    def _wait(self, job: str, copy: int, future: Future[None]) -> None:
        if os.waitpid(copy, 0)[1] == 0:
            future.set_result(None)
        else:
            future.set_exception(WorkerLostError(job))


def on_copies(patch: pytest.MonkeyPatch, stop: Path) -> Copies:
    engine = Copies(stop)
    patch.setattr("stream.run.engines.engine_for", lambda workers, device: engine)
    return engine


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_workers_do_the_runs_of_a_search_and_nothing_changes(
    record: TuneRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    engine = on_copies(monkeypatch, tmp_path / "stop")
    monkeypatch.chdir(tmp_path)
    assert main([*TWO, "workers=2"]) == 0
    assert engine.first == 8, "both learners have their two trials of two runs at once"
    assert apart_from_seconds(read_trials(tmp_path / "found")) == apart_from_seconds(record)
    shown = capsys.readouterr().out
    assert shown.count("trial 1 of") == shown.count("trial 2 of") == 2


def apart_from_seconds(record: TuneRecord) -> TuneRecord:
    """Return a record as it would be if nothing took time, and without what was typed."""
    own = msgspec.convert(msgspec.to_builtins(record), TuneRecord)
    own.command = []
    for found in own.learners.values():
        for trial in found.trials:
            trial.seconds = 0.0
            for run in trial.runs:
                run.seconds = 0.0
    return own


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_run_on_a_worker_saves_when_the_workers_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = on_copies(monkeypatch, tmp_path / "stop")
    monkeypatch.chdir(tmp_path)
    given = [*ONE[:-1], "task=[stsb]", "tracking=none", "training.epochs=2000"]
    sweep = TrialSweep((*given, "hydra.sweep.dir=s"), "start")
    long = [*given, "learner=adapter", "checkpoint.every=20"]
    run = engine.submit("long", run_trial, sweep, long, 0)
    while not list(tmp_path.glob("s/*/checkpoint/manifest*")) and not run.done():
        time.sleep(0.02)
    engine.stop()
    run.result(60)
    (ended,) = outcomes(tmp_path / "s", "start")
    assert (ended.outcome, ended.reason) == ("stopped", "by SIGUSR1")


def test_a_preset_is_a_learner_with_what_was_chosen(folder: Path, record: TuneRecord) -> None:
    for name, found in record.learners.items():
        best = found.trials[found.best or 0].settings
        given = ["task=[rte]", f"learner={found.preset}", searched_too(folder)]
        config = compose_settings(given)[0]
        assert config.learner.name == name
        assert {key: getattr(config.learner, key) for key in best} == best
        text = (folder / "learner" / f"{name}_tuned.yaml").read_text()
        assert text.startswith(f"# {name}, tuned (grid, {len(found.trials)} trials of at most 2).")


LINES = [
    ("tune.trails=3", "unknown setting of tune 'trails'. Did you mean 'trials'?"),
    ("learner.lr=1e-3", "learner.lr=1e-3 leaves nothing to search: give several values"),
    ("tune.trials=0", "tune.trials must be at least 1, got 0"),
    ("evaluation.split=test", "evaluation.split=test is not for tune: a search is judged on"),
    ("training.epochs=1,2", "training.epochs=1,2: tune searches settings of learners"),
    ("seed=1,2", "seed=1,2: tune searches settings of learners (learner.NAME=A,B); tune.seeds=3"),
    ("seed=x", "seed must be a whole number, got x"),
    ("seed=-1", "seed must be at least 0, got -1"),
    ("learner.sise=1,2", "unknown setting of learner adapter 'sise'. Did you mean 'size'?"),
    ("learner.size=0,2", "learner.size must be at least 1, got 0"),
    ("learner=adapter,adapter", "learner=adapter,adapter names a learner twice"),
    ("tune.objective=acc", "unknown tune.objective 'acc'"),
    ("tune.seeds=1,2", "tune.seeds=1,2: a search has one tune.seeds; give it one value"),
    ("tune.objective=bwt", "tune.objective=bwt has no value in these runs of k = 1: it has none"),
    ("tune.at_once=2", "tune.at_once=2 has no effect on a grid"),
    ("tune.tasks=3", "tune.tasks=3 are more than the 1 tasks of the stream"),
    ("workers.cout=2", "unknown setting of workers 'cout'. Did you mean 'count'?"),
    ("workers.threads=2", "workers.threads=2 has no effect without workers=2 or more"),
    ("--cfg=job", "task-stream tune takes --config-dir and --quiet alone"),
]


@pytest.mark.parametrize(("given", "told"), LINES, ids=[given for given, _ in LINES])
def test_a_mistake_is_one_line(given: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        read_line([*ONE, "task=[stsb]", given])
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_a_mistake_leaves_folders_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / FILE_NAME).write_text("a record")
    given = ["tune", *ONE, "task=[stsb]", "learner.lr=1e-3,2e-3"]
    assert main([*given, "tune.out=run"]) == 2
    assert "tune.out=run is a run folder" in capsys.readouterr().err
    assert main([*given, "tune.out=new", "tune.trials=1"]) == 2
    assert sorted(path.name for path in tmp_path.rglob("*")) == [FILE_NAME, "run"]


def test_what_is_searched_as_it_was_typed() -> None:
    given = ["learner=adapter,lora", "learner.lr=1e-4,1e-3", "lora.lr=tag(log,interval(1e-5,1))"]
    line = read_line([*ONE, "task=[stsb]", *given, "adapter.size=range(4,7)", "seed=3"])
    assert [searched.space for searched in line.learners] == [
        {"lr": (1e-4, 1e-3), "size": (4, 5, 6)},
        {"lr": Interval(1e-5, 1.0, log=True)},
    ]
    assert line.seeds == [3]
    more = replace(line, options=TuneOptions(trials=40))
    assert more.folder == line.folder, "more trials go on in the same folder"
    assert replace(line, seeds=[4]).folder != line.folder


def test_workers_are_no_part_of_what_is_searched() -> None:
    given = [*ONE, "task=[stsb]", "learner=finetune"]  # whose tasks no workers could learn
    line, alone = read_line([*given, "workers=4", "workers.engine=ray"]), read_line(given)
    assert (line.workers.count, line.workers.engine) == (4, "ray")
    assert (line.folder, line.fixed) == (alone.folder, alone.fixed)
    with pytest.raises(UserError, match="workers=4 and hydra/launcher=joblib both run several"):
        read_line([*given, "workers=4", "hydra/launcher=joblib"])


def test_help_names_every_option(capsys: Any) -> None:
    assert main(["tune", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"tune.{field.name}=" in shown for field in fields(TuneOptions))
