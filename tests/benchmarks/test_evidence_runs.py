"""Runs of the plan that are made one after another in this process."""

from pathlib import Path

import pytest

from benchmarks.evidence import runs
from benchmarks.evidence.plan import Job
from benchmarks.evidence.records import Records
from stream.config.workers import WorkersConfig
from stream.run.settings import register_groups

NAME = "minilm-ablations/adapter_std_1e-7-s1"
SMALL = (
    *("data=generated", "backbone=tiny", "task=[sst2,rte]", "limits.train=8", "limits.eval=8"),
    *("training.epochs=1", "training.min_steps=1", "workers=2", "workers.threads=1"),
)


@pytest.mark.slow
def test_a_run_made_alone_may_have_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine's own processes may start none."""
    monkeypatch.setattr(runs, "SCRATCH", tmp_path / "scratch")
    register_groups()
    out = tmp_path / "out"

    def made(*more: str) -> list[str]:
        return runs.run_missing(out, [*SMALL, *more], WorkersConfig(count=1), is_wanted)

    (line,) = made("learner.size=0")
    assert line.startswith(f"{NAME}: UserError: ")
    assert "learner.size" in line
    assert not Records(out).kept
    assert made() == []
    kept = Records(out)
    assert kept.kept[NAME].config["workers"]["count"] == 2
    at_once = kept.at_once(NAME)
    assert at_once is not None
    assert at_once.runs == 1
    before = (out / "runs" / NAME / "results.json").stat().st_mtime_ns
    assert made() == []
    assert (out / "runs" / NAME / "results.json").stat().st_mtime_ns == before


def is_wanted(job: Job) -> bool:
    return job.name == NAME
