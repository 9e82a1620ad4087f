"""The evidence: what stands in the documents is what the records say."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from benchmarks.paper.evidence import best_rates, is_kept, run, tune
from benchmarks.paper.methods import NOTHING, SEARCH, Batch
from benchmarks.paper.multirun import Machine, Multirun
from benchmarks.paper.plan import GRIDS, Job, jobs, settings, trial_settings, trials
from benchmarks.paper.records import Records
from benchmarks.paper.table import best_sizes, fill, headline
from benchmarks.paper.trials import MethodRun, Trial, append_line, read_lines
from stream.config.run import NAME

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results/houlsby26"


@pytest.fixture(scope="module")
def records() -> Records:
    return Records.of(RESULTS)


@pytest.mark.parametrize(("name", "table"), [("README.md", "brief"), ("docs/paper.md", "headline")])
def test_documents_hold_the_tables_of_the_records(
    name: str, table: str, records: Records, tmp_path: Path
) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    (copy := tmp_path / "copy.md").write_text(text, encoding="utf-8")
    fill(copy, records)
    assert copy.read_text(encoding="utf-8") == text, "make figures"
    assert f"evidence:{table}" in text


def test_the_headline_is_in_the_matrices(records: Records) -> None:
    rows = {line.split("|")[1].strip(): line for line in headline(records).splitlines()}
    for name, learner in (("`finetune`", "finetune"), ("`adapter`, size 64", "adapter64")):
        files = sorted(RESULTS.glob(f"given/{learner}-s*/results.json"))
        found = [json.loads(file.read_text(encoding="utf-8"))["matrix"] for file in files]
        matrices = np.array(found, dtype=float)
        ends = 100 * matrices[:, -1].mean(1)
        best = np.nanmax(matrices[:, :-1, :-1], axis=1)
        lost = 100 * (best - matrices[:, -1, :-1]).mean(1)
        for values in (ends, lost):
            half_width = 4.3027 * values.std(ddof=1) / 3**0.5  # t(0.975, 2) from a table
            assert f"| {values.mean():.1f} ± {half_width:.1f} |" in rows[name]


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


@pytest.fixture
def given(tmp_path: Path) -> argparse.Namespace:
    """The command line of a fresh folder whose search has tried two rates of everything."""
    everything = [*trials()]
    tried = [
        Trial(
            search=search,
            learner=learner,
            rate=rate,
            average_score=-rate,
            learning_score=0.5,
            settings="",
            wall_s=1.0,
        )
        for search, learner, rate in everything
    ]
    for trial in tried:
        append_line(tmp_path / "tune.jsonl", trial)
    return argparse.Namespace(
        out=tmp_path, mpnet=Path("/mpnet"), only=re.compile(""), settings=["data.root=/data"]
    )


def same(overrides: Iterable[str]) -> list[str]:
    """Return settings in one order and spelling (Hydra writes False for false)."""
    return sorted(text.replace("=False", "=false") for text in overrides)


class Planned:
    """A machine that notes what it is told to run, and that completes nothing."""

    def __init__(self) -> None:
        self.runs: list[Multirun] = []

    def multirun(self, runs: Multirun) -> dict[float, Any]:
        self.runs.append(runs)
        return {}

    def run_all(self, work: Sequence[Callable[[], str]]) -> None:
        for piece in work:
            piece()

    def commands(self) -> list[list[str]]:
        """Return each job's settings, as Hydra's own sweeper would take the multiruns apart."""
        found = []
        for runs in self.runs:
            parsed = OverridesParser.create().parse_overrides(runs.overrides)
            (jobs,) = BasicSweeper.split_arguments(parsed, max_batch_size=None)
            found += [same(s for s in job if "sweep" not in s) for job in jobs]
        return found


def test_multiruns_are_the_plan_run_by_run(given: argparse.Namespace) -> None:
    run(given, machine := Planned())  # type: ignore[arg-type]
    rates = best_rates(given.out / "tune.jsonl")
    mpnet = ["backbone=mpnet_base", "backbone.origin=folder", "backbone.location=/mpnet"]
    planned = [
        same(
            [*settings(job, rates.get((job.search, job.learner))), "data.root=/data"]
            + (mpnet if job.search != "minilm" else [])
        )
        for job in jobs()
    ]
    assert machine.commands() == planned
    names = [runs.name for runs in machine.runs]
    assert len(names) == len(set(names))
    assert all(NAME.fullmatch(name) for name in names)
    given.settings = ["data.root=/other"]  # other settings: what is in the folders is not theirs
    run(given, other := Planned())  # type: ignore[arg-type]
    assert not {runs.name for runs in other.runs} & set(names)


def test_trials_that_are_noted_are_not_tried_again(given: argparse.Namespace) -> None:
    tune(given, machine := Planned())  # type: ignore[arg-type]
    assert machine.runs == []
    path = given.out / "tune.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    tune(given, machine)  # type: ignore[arg-type]
    *_, (search, learner, one), (_, _, other) = trials()
    assert search == "minilm"
    assert machine.commands() == [
        same([*trial_settings(search, learner, rate), "data.root=/data"]) for rate in (one, other)
    ]


def test_each_method_is_tried_as_the_file_of_its_search_says() -> None:
    noted = read_lines(ROOT / "results/methods/tune.jsonl", MethodRun)
    batches = [Batch(method, (), *grid) for method, grid in SEARCH.items() if grid is not NOTHING]
    planned = {batch.run(value) for batch in batches for value in batch.values}
    assert {(run.method, run.chosen, run.seed) for run in noted} == planned


def test_commands_at_once_share_the_gpus(tmp_path: Path) -> None:
    machine = Machine(workers=4, gpus=2)
    code = "import os, time; time.sleep(1); print(os.environ['CUDA_VISIBLE_DEVICES'])"
    logs = [tmp_path / str(number) for number in range(4)]

    def piece(log: Path) -> str:
        assert machine.run([sys.executable, "-c", code], log) == 0
        return log.name

    machine.run_all([lambda log=log: piece(log) for log in logs])
    assert sorted(log.read_text().strip() for log in logs) == ["0", "0", "1", "1"]
    assert machine.run([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "failed") == 3
