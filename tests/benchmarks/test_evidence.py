"""The evidence: what stands in the documents is what the records say."""

import argparse
import json
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper.evidence import Machine, best_rates, is_kept
from benchmarks.paper.plan import GRIDS, Job, jobs, settings, trials
from benchmarks.paper.records import Records
from benchmarks.paper.table import best_sizes, fill, headline

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results/houlsby26"


@pytest.fixture(scope="module")
def records() -> Records:
    return Records.of(RESULTS)


@pytest.mark.parametrize("name", ["README.md", "docs/paper.md"])
def test_documents_hold_the_tables_of_the_records(
    name: str, records: Records, tmp_path: Path
) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    (copy := tmp_path / "copy.md").write_text(text, encoding="utf-8")
    fill(copy, records)
    assert copy.read_text(encoding="utf-8") == text, "make figures"
    assert "evidence:headline" in text


def test_the_headline_is_in_the_matrices(records: Records) -> None:
    rows = {line.split("|")[1].strip(): line for line in headline(records).splitlines()}
    for name, learner in (("`finetune`", "finetune"), ("`adapter`, size 64", "adapter64")):
        files = sorted(RESULTS.glob(f"given/{learner}-s*/results.json"))
        found = [json.loads(file.read_text(encoding="utf-8"))["matrix"] for file in files]
        matrices = np.array(found, dtype=float)
        ends = 100 * matrices[:, -1].mean(1)
        best = np.nanmax(matrices[:, :-1, :-1], axis=1)
        lost = 100 * (best - matrices[:, -1, :-1]).mean(1)
        assert f"| {ends.mean():.1f} ± {ends.std(ddof=1):.1f} |" in rows[name]
        assert f"| {lost.mean():.1f} ± {lost.std(ddof=1):.1f} |" in rows[name]


def test_memory_is_in_the_digests() -> None:
    for file in RESULTS.glob("*/adapter*/results.json"):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        last = [cell["digest"] for cell in cells[-1]]
        assert last == [row[i]["digest"] for i, row in enumerate(cells)], file


@pytest.mark.parametrize(
    "names",
    [
        ("given/frozen-s1", "again/frozen-s1"),
        ("given/adapter64-s1", "random/adapter64-s1"),
        ("given/adapter64-s3", "random/adapter64-s3"),
    ],
)
def test_the_same_run_again_or_in_another_order_has_the_same_logits(names: tuple[str, str]) -> None:
    found = []
    for name in names:
        record = json.loads((RESULTS / name / "results.json").read_text(encoding="utf-8"))
        digests = (cell["digest"] for cell in record["cells"][-1])
        found.append(dict(zip(record["order"], digests, strict=True)))
    assert len(found[0]) == 26
    assert found[0] == found[1]


def test_a_size_is_chosen_by_validation_rows(records: Records) -> None:
    line = best_sizes(records)
    assert line is not None
    means = []
    for seed in (1, 2, 3):
        folders = [RESULTS / f"given/adapter{size}-s{seed}" for size in (8, 64, 256)]
        if not all((folder / "validation.json").exists() for folder in folders):
            continue
        runs = [json.loads((folder / "results.json").read_text()) for folder in folders]
        chosen = [json.loads((folder / "validation.json").read_text()) for folder in folders]
        scores = []
        for place, task in enumerate(runs[0]["order"]):
            choices = [
                (validation[task], run["matrix"][-1][place])
                for validation, run in zip(chosen, runs, strict=True)
            ]
            scores.append(max(choices, key=lambda pair: pair[0])[1])
        means.append(np.mean(scores))
    assert line[-1] == str(len(means))
    assert line[1].split()[0] == f"{100 * np.mean(means):.1f}"


def test_every_run_says_how_it_was_made() -> None:
    for file in RESULTS.glob("*/*/results.json"):
        facts = json.loads((file.parent / "run.json").read_text(encoding="utf-8"))
        results = json.loads(file.read_text(encoding="utf-8"))
        assert facts["command"].startswith("python run_stream.py learner="), file
        assert re.search(r"learner=(\w+)", facts["command"]).group(1) == results["learner"]  # type: ignore[union-attr]
        assert f"seed={results['seed']}" in facts["command"]
        assert results["status"] == "complete"
        assert facts["wall_s"]


def test_the_plan_has_every_run_once() -> None:
    names = [(job.group, job.name) for job in jobs()]
    assert len(names) == len(set(names))
    assert len(set(trials())) == len(list(trials()))
    assert "learner.lr=0.5" in settings(Job("given", "finetune", 1), 0.5)


def test_the_best_rate_is_that_of_the_highest_validation_score() -> None:
    lines = [json.loads(line) for line in (RESULTS / "tune.jsonl").read_text().splitlines()]
    for learner in GRIDS:
        mine = [line for line in lines if (line["search"], line["learner"]) == ("minilm", learner)]
        best = max(mine, key=lambda line: line["average_score"])
        assert best_rates(RESULTS / "tune.jsonl")["minilm", learner] == best["rate"]


def test_every_record_is_of_the_best_rate() -> None:
    rates = best_rates(RESULTS / "tune.jsonl")
    found = {str(file.parent.relative_to(RESULTS)) for file in RESULTS.glob("*/*/run.json")}
    planned = {f"{job.group}/{job.name}": job for job in jobs()}
    assert found <= planned.keys()
    for name in found:
        job = planned[name]
        assert is_kept(RESULTS, job, rates.get((job.search, job.learner))), name
        if job.learner in GRIDS:
            assert not is_kept(RESULTS, job, 0.123), name


def test_a_command_is_stopped_when_time_is_up(tmp_path: Path) -> None:
    machine = Machine(argparse.Namespace(until=1.0, workers=1, threads=1, gpus=0))
    sleeps = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"]
    code, wall = machine.run(sleeps, tmp_path / "log")
    assert code == -signal.SIGTERM
    assert wall < 30
    assert machine.run(sleeps, tmp_path / "log") == (-signal.SIGTERM, 0.0)
