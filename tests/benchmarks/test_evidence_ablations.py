"""What docs/ablations.md says, computed again from the JSON of the records; its verdicts.

Nothing here uses how `benchmarks.evidence` computes. Tables are tested with made-up records of
every planned run, and with the records and documents of this repository.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.evidence import ablation_figures
from benchmarks.evidence.__main__ import main
from benchmarks.evidence.ablation_verdicts import CLAIMS, judged
from benchmarks.evidence.ablations import ABLATIONS, TASKS
from benchmarks.evidence.plan import ABLATED, Job, jobs
from benchmarks.evidence.records import RUNS, Records, keep
from benchmarks.evidence.runs import missing
from stream.run.settings import compose_settings
from tests.benchmarks.made_ablations import made_ablation, write_layers
from tests.benchmarks.made_evidence import write_runs
from tests.benchmarks.test_evidence_documents import Place, interval, numbers, spread

ROOT = Path(__file__).parent.parent.parent
RECORDS = ROOT / "results/evidence"
DOCUMENT = ROOT / "docs/ablations.md"
NAMES = {"MNLI-m": "mnli_matched", "CoLA": "cola", "SST-2": "sst2", "20 newsgroups": "newsgroups20"}
ORDER = [*NAMES.values()]
STDS = ("1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1", "1")
RATES = ("1e-5", "3e-5", "1e-4", "3e-4", "1e-3", "3e-3", "1e-2")
FIGURES = ["first_weights", "rates", "sizes", "layers"]
Expected = list[tuple[str, list[float], float]]


class Ablations(Place):
    """The records of the ablations, and the blocks about them."""

    @classmethod
    def at(cls, records: Path, document: Path) -> "Ablations":
        found = Place.of(records, [document])
        return cls(found.folder, found.kept, found.runs, found.blocks)

    def seeds(self, method: str, group: str = "minilm-ablations") -> dict[int, Any]:
        return super().seeds(method, group)

    def scores(self, method: str, group: str = "minilm-ablations") -> dict[int, list[float]]:
        """Scores at the end by seed, the tasks in the order of the tables."""
        return {
            seed: [run["matrix"][-1][run["order"].index(task)] for task in ORDER]
            for seed, run in self.seeds(method, group).items()
        }

    def apart(self, one: dict[int, list[float]], other: dict[int, list[float]]) -> Any:
        """Differences in points, [task, seed]."""
        both = [seed for seed in one if seed in other]
        return 100 * np.array([np.subtract(one[seed], other[seed]) for seed in both]).T

    def layers(self) -> dict[int, Any]:
        of = self.folder / "runs/minilm-ablations"
        files = {seed: of / f"adapter_default-s{seed}/layer_ranges.json" for seed in range(1, 6)}
        return {seed: json.loads(f.read_text()) for seed, f in files.items() if f.exists()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Ablations:
    folder = tmp_path_factory.mktemp("made")
    for wanted in ("minilm-ablations/", "minilm/tfidf"):
        write_runs(folder, wanted)
    for name in ("README.md", "page.md"):
        page = RECORDS / name if name == "README.md" else DOCUMENT
        (folder / name).write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["tables", "--out", str(folder), str(folder / "page.md")]) == 0
    return Ablations.at(folder, folder / "page.md")


@pytest.fixture(scope="module")
def kept() -> Ablations:
    return Ablations.at(RECORDS, DOCUMENT)


@pytest.fixture(params=["made", "kept"])
def place(request: pytest.FixtureRequest) -> Ablations:
    return request.getfixturevalue(request.param)


def of_tasks(cells: list[str], found: dict[int, list[float]]) -> Expected:
    """Cells of all tasks and of their mean, beside what they should hold."""
    columns = [*np.array([*found.values()]).T, np.array([*found.values()]).mean(axis=1)]
    near = [spread([*column]) for column in columns]
    return [(cell, values, 0.051) for cell, values in zip(cells, near, strict=True)]


def difference(cell: str, d: Any) -> Expected:
    return [(cell, interval(d)[0] if d.shape[-1] > 1 else [], 0.0051)]


def with_std(std: str) -> str:
    return "adapter_default" if std == "1e-2" else f"adapter_std_{std}"


def first_weights_row(place: Ablations, row: list[str]) -> Expected:
    found = place.scores(with_std(row[0]))
    cells = [*of_tasks(row[1:6], found), (row[7], [len(found)], 0)]
    if row[0] != "1e-2":
        cells += difference(row[6], place.apart(found, place.scores("adapter_default")))
    return cells


def with_rate(learner: str, rate: str) -> str:
    return "adapter_default" if (learner, rate) == ("adapter", "1e-3") else f"{learner}_lr_{rate}"


def rates_row(place: Ablations, row: list[str]) -> Expected:
    found = place.scores(with_rate(row[0].strip("`"), row[1]))
    return [*of_tasks(row[2:7], found), (row[7], [len(found)], 0)]


def sizes_row(place: Ablations, row: list[str]) -> Expected:
    kind, number = row[0].split()[0], (re.findall(r"\d+", row[0]) or [""])[0]
    name = {"adapters": f"adapter_{number}", "top": f"topk_{number}", "LayerNorms": "layernorm"}
    method = name.get(kind, "independent") + "_chosen"
    found, runs = place.scores(method), [*place.seeds(method).values()]
    counted = runs[0]["ledger"]["tasks"]
    parameters = float(np.mean([task["trained_parameters"] for task in counted]))
    part = 100 * float(np.mean([task["trained_fraction"] for task in counted]))
    chosen: Counter[float] = Counter()
    for run in runs:
        for one in run["selection"].values():
            chosen[one["candidates"][one["chosen"]]["settings"]["lr"]] += 1
    told = [number for rate in sorted(chosen) for number in (rate, chosen[rate])]
    cells = [*of_tasks(row[2:7], found), (row[8], told, 1e-9), (row[9], [len(found)], 0)]
    if kind != "whole":
        cells += difference(row[7], place.apart(found, place.scores("independent_chosen")))
    return [*cells, (row[1], [parameters, part], 0.51)]


def layers_row(place: Ablations, row: list[str]) -> Expected:
    found, bounds = place.layers(), [int(number) for number in re.findall(r"\d+", row[0])]
    first, last = (0, 5) if row[0] == "all" else (min(bounds, default=0), max(bounds, default=0))
    by_seed = []
    for ranges in found.values():
        tasks = [ranges[task] for task in ORDER]
        if row[0] in ("none", "the majority answer"):
            key = "full" if row[0] == "none" else "majority"
            by_seed.append([one[key] for one in tasks])
        else:
            by_seed.append([one["without_first_to_last"][first][last] for one in tasks])
    cells = [
        (cell, spread([*column]), 0.051)
        for cell, column in zip(row[1:5], np.array(by_seed).T, strict=True)
    ]
    if row[0] not in ("none", "the majority answer"):
        full = [[ranges[task]["full"] for task in ORDER] for ranges in found.values()]
        cells += difference(row[5], 100 * (np.array(full) - np.array(by_seed)).T)
    return [*cells, (row[6], [len(found)], 0)]


def chosen_of(place: Ablations, stem: str, values: list[str]) -> dict[int, list[tuple[str, float]]]:
    """By seed, the value of each task with the best validation score, and its test score."""
    runs = {value: place.seeds(f"{stem}_{value}_chosen") for value in values}
    found = {}
    for seed in [seed for seed in range(1, 6) if all(seed in of for of in runs.values())]:
        found[seed] = []
        for task in ORDER:
            judged_: list[tuple[float, int, str, float]] = []
            for rank, value in enumerate(values):
                run = runs[value][seed]
                tried = run["selection"][task]["candidates"]  # one that failed has no score
                valid = max(one["score"] for one in tried if one["score"] is not None)
                test = run["matrix"][-1][run["order"].index(task)]
                judged_.append((-valid, rank, value, test))
            found[seed].append(min(judged_)[2:])
    return found


def table_2_row(place: Ablations, row: list[str]) -> Expected:
    top = chosen_of(place, "topk", ["1", "2", "3", "4", "6"])
    sizes = chosen_of(place, "adapter", ["2", "8", "64"])
    whole = place.scores("independent_chosen")
    reached = [{s: [score for _, score in of] for s, of in found.items()} for found in (top, sizes)]
    if row[0].startswith("\u2212 full"):
        parts = zip((row[3], row[5]), reached, strict=True)
        return [each for cell, of in parts for each in difference(cell, place.apart(of, whole))]
    if row[0].startswith("trained"):
        return []  # below
    columns = place.scores("tfidf", "minilm"), whole, *reached
    cells = zip((row[1], row[2], row[3], row[5]), columns, strict=True)
    if row[0] == "mean":
        return [(c, spread([float(np.mean(v)) for v in of.values()]), 0.051) for c, of in cells]
    task = [*NAMES].index(row[0].partition(" (")[0])
    found: Expected = [(c, spread([v[task] for v in of.values()]), 0.051) for c, of in cells]
    for cell, of in ((row[4], top), (row[6], sizes)):
        chosen = Counter(int(by_task[task][0]) for by_task in of.values())
        found.append((cell, [n for value in sorted(chosen) for n in (value, chosen[value])], 0))
    return found


ROWS: dict[str, tuple[Callable[[Ablations, list[str]], Expected], int]] = {
    "first_weights": (first_weights_row, 8),
    "rates": (rates_row, 14),
    "layers": (layers_row, 13),
    "sizes": (sizes_row, 11),
    "table_2": (table_2_row, 7),
}


def test_every_row_follows_from_the_records(place: Ablations) -> None:
    for name, (of_row, number) in ROWS.items():
        rows = place.rows(name)
        if place.folder != RECORDS:
            assert len(rows) == number
            assert "not run" not in place.blocks[name]
        for row in rows:
            if row[-1] == "0" or "not run" in row[1:]:
                continue
            for cell, expected, near in of_row(place, row):
                assert numbers(cell.replace("e-0", "e-")) == pytest.approx(expected, abs=near), row


def test_what_variable_fine_tuning_trains_is_the_mean_of_what_was_chosen(place: Ablations) -> None:
    row = place.rows("table_2")[-1]
    for cell, stem, values in (
        (row[3], "topk", ["1", "2", "3", "4", "6"]),
        (row[5], "adapter", ["2", "8", "64"]),
    ):
        parts = []
        for seed, by_task in chosen_of(place, stem, values).items():
            for task, (value, _) in zip(ORDER, by_task, strict=True):
                run = place.seeds(f"{stem}_{value}_chosen")[seed]
                parts.append(run["ledger"]["tasks"][run["order"].index(task)]["trained_fraction"])
        expected = [100 * float(np.mean(parts))] if parts else []
        assert numbers(cell) == pytest.approx(expected, abs=0.051)


def test_layers_were_taken_out_of_the_very_weights_of_the_runs(place: Ablations) -> None:
    for seed, by_task in place.layers().items():
        full = [by_task[task]["full"] for task in ORDER]
        assert full == pytest.approx(place.scores("adapter_default")[seed], abs=1e-12)


def claimed(place: Ablations) -> dict[str, list[list[float]]]:
    """What each claim should say: means with bounds, recomputed."""

    def bounds(d: Any) -> list[float]:
        return interval(d)[0] if d.ndim == 2 and d.shape[-1] > 1 else []

    usual = place.scores("adapter_default")
    small = [place.scores(with_std(std)) for std in STDS[:5]]
    large = [place.scores(with_std(std)) for std in STDS[6:]]
    seeds = [seed for seed in usual if all(seed in of for of in small)]
    of_task = []
    for task in range(4):
        d = [np.mean([of[s][task] for of in small]) - usual[s][task] for s in seeds]
        mean, half = spread([float(x) for x in d]) if len(d) > 1 else (0.0, 0.0)
        of_task += [[mean, mean - half, mean + half]] if len(d) > 1 else []
    found = [[ranges[task] for task in ORDER] for ranges in place.layers().values()]

    def loss(first: int, last: int) -> Any:
        lost = [[t["full"] - t["without_first_to_last"][first][last] for t in of] for of in found]
        return 100 * np.array(lost).T

    pairs = (((0, 2), (3, 5)), ((0, 1), (4, 5)))
    enough = len(found) > 1
    at = [
        [place.scores(with_rate(learner, rate)) for rate in RATES]
        for learner in ("adapter", "independent")
    ]
    both = [seed for seed in range(1, 6) if all(seed in of for of in (*at[0], *at[1]))]
    near = [
        np.array([[_close([of[seed][t] for of in found]) for seed in both] for t in range(4)])
        for found in at
    ]
    rates = bounds(near[0] - near[1])
    top = place.scores("topk_1_chosen")
    few = [place.scores(f"adapter_{size}_chosen") for size in ("2", "8", "64")]
    return {
        "Scores do": [*(bounds(place.apart(of, usual)) for of in small), *of_task],
        "Scores are": [bounds(place.apart(of, usual)) for of in large],
        "Removing": [bounds(loss(n, n)) for n in range(6)] if enough else [[]],
        "Adapters of": [bounds(loss(*a) - loss(*b)) for a, b in pairs] if enough else [[]],
        "Adapters work": [[float(near[0].mean()), float(near[1].mean()), *rates]]
        if rates
        else [[]],
        "With few": [bounds(place.apart(of, top)) for of in few],
    }


def _close(scores: list[float]) -> int:
    return sum(score >= max(scores) - 0.03 for score in scores)


def test_claims_have_the_numbers_of_the_records(place: Ablations) -> None:
    rows = place.rows("ablation_claims")
    assert [row[0] for row in rows] == [*CLAIMS]
    expected = claimed(place)
    for row in rows:
        (parts,) = [parts for begin, parts in expected.items() if row[0].startswith(begin)]
        told = row[1].split("; ")
        assert len(told) == len(parts)
        for text, values in zip(told, parts, strict=True):
            said = (
                re.sub(r" \(\d seeds\)$", "", text)
                .replace(" of 7 rates:", "")
                .rpartition(": ")[2]
                .partition(", p ")[0]
            )
            near = 0.051 if row[0].startswith("Adapters work") else 0.0051
            assert numbers(said) == pytest.approx(values, abs=near), text


def test_p_values_are_corrected_within_their_line(place: Ablations) -> None:
    rows = {row[0]: row[1] for row in place.rows("ablation_claims")}
    usual, top = place.scores("adapter_default"), place.scores("topk_1_chosen")
    large = [(place.scores(with_std(std)), usual) for std in ("1e-1", "1")]
    few = [(place.scores(f"adapter_{size}_chosen"), top) for size in ("2", "8", "64")]
    for begin, pairs in (("Scores are", large), ("With few", few)):
        (told,) = [text for claim, text in rows.items() if claim.startswith(begin)]
        differences = [place.apart(*pair) for pair in pairs]
        if any(d.shape[-1] < 2 for d in differences):
            continue
        p = sorted(float(interval(d)[1]) for d in differences)
        raised = [min(1.0, (len(p) - rank) * value) for rank, value in enumerate(p)]
        corrected = np.maximum.accumulate(raised)
        shown = [float(text) for text in re.findall(r"p [=<] ([\d.]+)", told)]
        expected = [0.001 if value < 0.001 else round(value, 3) for value in corrected]
        assert sorted(shown) == pytest.approx(expected, abs=1e-9)


def as_told(job: Job, verdict: str) -> float:
    """What a method's tasks reach where every claim of the paper has this verdict."""
    name, value = job.method.name, job.method.name.rpartition("_")[2]
    is_small = name.startswith("adapter_std") and float(value) < 1e-2
    if verdict == "open":
        return 0.49 if name == "adapter_std_1e-7" else 0.5  # one is at the bound
    if name == "adapter_default":
        return 0.5
    agrees = verdict == "agrees"
    if name.startswith("adapter_std"):
        return (0.5 if is_small else 0.4) if agrees else (0.4 if is_small else 0.6)
    if "_lr_" in name:
        works = 1e-4 <= float(value) <= 3e-3 if name.startswith("adapter") else value == "1e-4"
        return 0.5 if works == agrees else 0.4
    return 0.5 if name.startswith("adapter") == agrees else 0.4


WORTH = {
    "agrees": [0.001, 0.001, 0.001, 0.01, 0.01, 0.01],
    "contradicted": [0.05, 0.05, 0.05, 0.01, 0.01, 0.01],
    "open": [0.02] * 6,
}


@pytest.mark.parametrize("verdict", WORTH)
def test_every_claim_can_have_every_verdict(tmp_path: Path, verdict: str) -> None:
    for job in jobs():
        if job.group == ABLATED and job.seed <= 3:
            record, folder = made_ablation(job, as_told(job, verdict)), tmp_path / RUNS / job.name
            keep(record, folder)
            if job.loses_layers:
                write_layers(folder, record, WORTH[verdict])
    found = {one.claim: str(one.verdict) for one in judged(Records(tmp_path))}
    assert found == dict.fromkeys(CLAIMS, verdict)


def test_nothing_is_claimed_without_runs(tmp_path: Path) -> None:
    assert {str(one.verdict) for one in judged(Records(tmp_path))} == {"open"}


def test_the_protocol_has_the_plan() -> None:
    text = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    section = text.partition("\n## The paper's ablations")[2].partition("\n## ")[0]
    lines = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    names = [f"`{method.name}`" for method in ABLATIONS]
    assert lines == ["method", "---", *names, "claim", *CLAIMS]
    for setting in ABLATED.settings:
        assert f"`{setting}`" in section or setting == "backbone=minilm"
    assert ", ".join(RATES) in section


def test_every_planned_run_is_a_run_of_these_tasks() -> None:
    planned = {job.method.name: job for job in jobs() if job.group == ABLATED}
    assert len(planned) == len(ABLATIONS)
    for name in ("adapter_std_1", "topk_6_chosen"):
        config, _ = compose_settings([*planned[name].settings({}), "data.root=here"])
        metrics = ("accuracy", "Matthews", "accuracy", "accuracy")
        titles = [task.title for task in config.task.values()]
        assert [*TASKS] == [*config.task] == ORDER
        assert titles == [*NAMES]
        assert [*TASKS.values()] == [f"{t}, {m}" for t, m in zip(titles, metrics, strict=True)]


def test_a_run_without_its_ranges_of_layers_is_made_again(tmp_path: Path) -> None:
    job = next(job for job in jobs() if job.loses_layers)
    record, folder = made_ablation(job), tmp_path / RUNS / job.name
    keep(record, folder)
    assert missing(tmp_path, job, []) == job.settings({})
    assert "checkpoint.enabled=false" not in job.settings({})
    write_layers(folder, record)
    assert missing(tmp_path, job, []) is None


def test_a_page_shows_the_figures_that_are_drawn(place: Ablations) -> None:
    shown = {name: place.blocks[f"{name}_figure"] for name in FIGURES}
    drawn = {name: f"(evidence/{name}.png)" in text for name, text in shown.items()}
    if place.folder != RECORDS:
        assert all(drawn.values())
    for name, is_drawn in drawn.items():
        assert is_drawn or shown[name] == "No figure yet.\n"
        if place.folder == RECORDS:
            assert (DOCUMENT.parent / f"evidence/{name}.png").exists() == is_drawn


def test_figures_show_means_over_seeds(made: Ablations, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {}
    monkeypatch.setattr(
        ablation_figures, "save", lambda of, _, name, __: figures.update({name: of})
    )
    ablation_figures.draw_ablations(Records(made.folder), made.folder)
    assert [*figures] == FIGURES
    panel = figures["first_weights"].axes[1]
    x, y = panel.containers[0][0].get_data(orig=False)
    assert [*x] == [float(std) for std in STDS]
    scores = [np.mean([by[1] for by in made.scores(with_std(std)).values()]) for std in STDS]
    np.testing.assert_allclose(y, scores)
    assert panel.get_ylabel() == "matthews correlation (%)"
    labels = [text.get_text() for text in figures["rates"].legends[0].get_texts()]
    assert labels == ["adapter", "independent"]
    assert len(figures["sizes"].axes[0].containers) == 3
    shown = figures["layers"].axes[0].images[0].get_array()
    cells = [made.layers()[s]["mnli_matched"]["without_first_to_last"][1][4] for s in range(1, 6)]
    assert shown[1, 4] == pytest.approx(np.mean(cells))
    assert "mean of 5 seeds" in figures["layers"].get_suptitle()
