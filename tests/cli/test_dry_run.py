"""A dry run against the run that it foretells: what is counted is equal, what is kept is near."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from stream.cli.command_line import CommandLine
from stream.cli.dry_run import dry_run
from stream.config.paths import conf_folder
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.run.dry_run import foretell
from stream.run.dry_run.costs import Costs, Line
from stream.run.dry_run.estimate import estimated
from stream.run.dry_run.foretell import Foreteller
from stream.run.session import run_in
from stream.run.settings import with_learner
from stream.run.setup import build_run
from tests.composed import compose_run

TINY = ["experiment=smoke", "device=cpu"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    dry_run(conf_folder(), CommandLine(["--dry-run", *TINY, *arguments]))
    return capsys.readouterr().out


def test_a_line_finds_what_times_are_made_of_whatever_disturbs_one() -> None:
    factors = [(1.0, tokens) for tokens in (100.0, 300.0, 400.0, 800.0, 1000.0)]
    seconds = [0.1 + 0.002 * tokens for _, tokens in factors]
    assert Line.through(factors, seconds).at(1, 500) == pytest.approx(1.1)
    seconds[2] *= 50  # a pause
    assert Line.through(factors, seconds).at(1, 500) == pytest.approx(1.1)
    assert Line.through([], []).at(1, 500) == 0


def made_costs(**changes: Any) -> Costs:
    """A step takes a second, and so does a score; nothing else does."""
    second = Line(np.array([1.0, 0.0]))
    values: dict[str, Any] = {
        "step": Line(np.array([1.0, 0.0, 0.0])),
        "first": 1.0,
        "ending": Line(np.zeros(0)),
        "scoring": second,
        "warm_s": 0.0,
        "fingerprint": Line(np.zeros(0)),
        "peak_bytes": 1000,
        "kept_bytes": 10.0,
        "owned_bytes": 0.0,
        "shared_bytes": 0.0,
        "moments_bytes": 0,
        "tried": 3,
        "steps": 0,
        "evaluations": 0,
    }
    return Costs(**values | changes)


def test_what_is_foretold_is_what_runs(tmp_path: Path) -> None:
    given = [*TINY, "evaluation.reuse=verify", "evaluation.unseen=true"]
    forecast = Foreteller().of(compose_run(conf_folder(), given)[0])
    assert not list(tmp_path.iterdir())
    config = with_learner(compose_run(conf_folder(), given)[0])
    folder = tmp_path / "run"
    folder.mkdir()
    run_in(folder, config, Console(quiet=True), overrides=given)
    record = RunRecord.read(folder)
    times = record.timing
    assert (forecast.plan.steps, forecast.plan.examples) == (times.steps, times.train_examples)
    untrained = len(record.baseline or [])
    cells = [cell for row in record.cells for cell in row if cell is not None]
    assert sum(forecast.plan.scored) == len(cells) + untrained
    run = build_run(config, folder, tasks=forecast.tasks)
    seconds = estimated(run, forecast.tasks, forecast.plan, made_costs(), prepare_s=5.0)
    measured = [cell for cell in cells if cell.state == "measured"]
    assert seconds.learning_s == times.steps
    assert seconds.scoring_s == len(measured) + untrained
    assert seconds.seconds == seconds.learning_s + seconds.scoring_s + 5
    kept = sum(f.stat().st_size for f in (folder / "checkpoint").rglob("*") if f.is_file())
    assert forecast.estimate.checkpoint_bytes == pytest.approx(kept, rel=0.25)
    written = sum((folder / name).stat().st_size for name in ("results.json", "rows.jsonl"))
    assert forecast.estimate.record_bytes == pytest.approx(written, rel=0.3)
    assert forecast.costs.steps > 3
    assert forecast.estimate.learning_s > 0
    assert forecast.estimate.scoring_s > 0


def test_a_table_says_it_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = told(capsys, "display=quiet", "limits.train=20")
    assert re.search(r"CF airline +20 +16 +16 +4\b", out)
    assert re.search(r"3 tasks +60 +48 +48 +12\b", out)
    for row in ("steps", "scores", "learning", "scoring", "in all", "memory", "disk"):
        assert re.search(rf"^ +{row} ", out, re.MULTILINE)
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert out.splitlines()[-1].startswith("run folder: runs/")
    assert not list(tmp_path.iterdir())


def test_jobs_of_a_kind_share_a_measurement(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def measured(run: Any, show: Any) -> Costs:
        tried.append(run.config.learner.name)
        return made_costs()

    monkeypatch.setattr(foretell, "measure", measured)
    out = told(capsys, "-m", "learner=adapter,replay", "seed=1,2", "training.min_steps=2,8")
    assert tried == ["adapter", "replay"]
    jobs = re.findall(r"^ +\d +(\d+) +0:(\d\d) .* learner=(\w+), seed=", out, re.MULTILINE)
    assert [learner for *_, learner in jobs] == ["adapter"] * 4 + ["replay"] * 4
    assert {job[:2] for job in jobs} == {("18", "18"), ("24", "24")}
    assert re.search(r"^all +168 +2:48 ", out, re.MULTILINE)
    assert "8 jobs one after another" in out


def test_flags_stand_for_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    line = CommandLine(["--quiet", "-m", "--dry-run", "seed=1,2"])
    assert line.value("display") == "quiet"
    assert line.dry_run
    assert line.multirun
    assert "--dry-run" not in line.for_hydra()
    assert line.without(["seed"]).dry_run
    assert not CommandLine(["seed=1"]).dry_run
    with pytest.raises(UserError, match=r"--dryrun.*--dry-run"):
        CommandLine(["--dryrun"])
    with pytest.raises(UserError, match="exclude each other"):
        CommandLine(["--dry-run", "--cfg", "job"]).check_flags()
    with pytest.raises(UserError, match="leave resume= out"):
        told(capsys, "resume=auto")
