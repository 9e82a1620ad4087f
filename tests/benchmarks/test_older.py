"""Older comparisons: what stands in docs/methods.md is what the records say."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from benchmarks.lines import read_lines
from benchmarks.multirun import Machine, Multirun
from benchmarks.older.methods import NOTHING, SEARCH, Batch, MethodRun
from benchmarks.older.records import Records
from benchmarks.older.table import best_sizes, fill, many_rows
from stream.config.run import NAME

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results/houlsby26"


@pytest.fixture(scope="module")
def records() -> Records:
    return Records.of(RESULTS, ["given"])


def test_the_document_holds_the_tables_of_the_records(tmp_path: Path) -> None:
    text = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    (copy := tmp_path / "copy.md").write_text(text, encoding="utf-8")
    fill(copy, ROOT / "results")
    assert copy.read_text(encoding="utf-8") == text, "make figures"
    assert text.count("<!-- older:") == 3


def test_the_headline_is_in_the_matrices() -> None:
    rows = {line.split("|")[1].strip(): line for line in many_rows(ROOT / "results").splitlines()}
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


def test_a_size_is_chosen_by_validation_rows(records: Records) -> None:
    line = best_sizes(records)
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


def test_each_method_is_tried_as_the_file_of_its_search_says() -> None:
    noted = read_lines(ROOT / "results/methods/tune.jsonl", MethodRun)
    batches = [Batch(method, (), *grid) for method, grid in SEARCH.items() if grid is not NOTHING]
    planned = {batch.run(value) for batch in batches for value in batch.values}
    assert {(run.method, run.chosen, run.seed) for run in noted} == planned


def test_a_multirun_is_its_runs_one_by_one() -> None:
    """Hydra's own sweeper takes it apart."""
    runs = Multirun("a title: 1", ["learner=adapter", "task=[cola,rte]"], "seed", (1, 2))
    parsed = OverridesParser.create().parse_overrides(runs.overrides)
    (jobs,) = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    found = [[text for text in job if "sweep" not in text] for job in jobs]
    assert found == [["learner=adapter", "task=[cola,rte]", f"seed={seed}"] for seed in (1, 2)]
    assert NAME.fullmatch(runs.name)
    other = Multirun("a title: 1", ["learner=lora", "task=[cola,rte]"], "seed", (1, 2))
    assert other.name != runs.name  # what is in the folders is not its own


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
