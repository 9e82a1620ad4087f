"""What documents say of the comparison, computed again from the JSON of its records.

Nothing here uses how `benchmarks.evidence` computes. Everything is tested with made-up records of
every planned run, and with the records and documents of this repository.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from scipy import stats

from benchmarks.evidence.__main__ import main
from benchmarks.evidence.methods import METHODS
from benchmarks.evidence.plan import ELSEWHERE, ORDERS, ROWS, TEN_SEEDS, WITH_MPNET, jobs
from benchmarks.evidence.records import Records
from benchmarks.evidence.task_tables import shortly
from benchmarks.evidence.tradeoff import tradeoff_figure
from stream.run.settings import compose_settings
from tests.benchmarks.made_evidence import write_runs

ROOT = Path(__file__).parent.parent.parent
RECORDS = ROOT / "results/evidence"
DOCUMENTS = ("README.md", "docs/paper.md", "docs/protocol.md", "docs/ablations.md")
NUMBER = re.compile(r"[+\u2212-]?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
RATE = (3e-5, 3e-3)
SHOWN = re.compile(r"<!-- evidence:(\w+) -->\n(.*?)<!-- end -->", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """Records as JSON by ``GROUP/METHOD-sSEED``, and the blocks of the documents about them.

    ``runs`` are those of ``kept`` that have the settings that are chosen now.
    """

    folder: Path
    kept: dict[str, Any]
    runs: dict[str, Any]
    blocks: dict[str, str]

    @classmethod
    def of(cls, records: Path, documents: list[Path]) -> "Place":
        files = sorted((records / "runs").glob("*/*/results.json"))
        runs = {f"{f.parent.parent.name}/{f.parent.name}": json.loads(f.read_text()) for f in files}
        text = "\n".join(document.read_text(encoding="utf-8") for document in documents)
        now = {name: run for name, run in runs.items() if is_chosen(records, runs, name)}
        return cls(records, runs, now, dict(SHOWN.findall(text)))

    def seeds(self, method: str, group: str = "minilm") -> dict[int, Any]:
        found = {seed: self.runs.get(f"{group}/{method}-s{seed}") for seed in range(1, 6)}
        return {seed: run for seed, run in found.items() if run is not None}

    def rows(self, block: str) -> list[list[str]]:
        lines = [x for x in self.blocks[block].splitlines() if x.startswith("| ")][2:]
        return [[cell.strip() for cell in line[2:-2].split(" | ")] for line in lines]


def is_chosen(records: Path, runs: dict[str, Any], name: str) -> bool:
    """Whether a run has the settings of the best trial of its method's searches, if any is kept.

    Those of a second search count when all seeds in the given order have them.
    """
    group, _, method = name.rpartition("-s")[0].partition("/")
    folder = records / "searches" / (group if (records / "searches" / group).exists() else "minilm")
    files = [folder / f"{method}{number}.json" for number in ("", "-2")]
    found = [json.loads(file.read_text())["found"] for file in files if file.exists()]
    best = sorted((one["trials"][one["best"]] for one in found), key=lambda trial: -trial["score"])
    if not best:
        return True

    def has(run: Any, trial: Any) -> bool:
        told = {f"learner.{key}={value}" for key, value in trial["settings"].items()}
        return run is not None and told <= set(run["overrides"])

    all_there = all(has(runs.get(f"minilm/{method}-s{seed}"), best[0]) for seed in range(1, 6))
    first = found[0]["trials"][found[0]["best"]]
    return has(runs[name], best[0] if len(files) > 1 and all_there else first)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("made")
    write_runs(folder)
    documents = [folder / f"{number}.md" for number in range(len(DOCUMENTS))]
    for name, document in zip(DOCUMENTS, documents, strict=True):
        document.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "README.md").write_text((RECORDS / "README.md").read_text(encoding="utf-8"))
    assert main(["tables", "--out", str(folder), *map(str, documents)]) == 0
    return Place.of(folder, documents)


@pytest.fixture(scope="module")
def kept() -> Place:
    return Place.of(RECORDS, [ROOT / name for name in DOCUMENTS])


@pytest.fixture(params=["made", "kept"])
def place(request: pytest.FixtureRequest) -> Place:
    return request.getfixturevalue(request.param)


def numbers(text: str) -> list[float]:
    return [float(x.replace(",", "").replace("\u2212", "-")) for x in NUMBER.findall(text)]


def last(run: Any) -> dict[str, float]:
    return dict(zip(run["order"], run["matrix"][-1], strict=True))


def lost(run: Any) -> dict[str, float]:
    matrix = np.array(run["matrix"], dtype=float)
    places = range(len(matrix) - 1)
    return {run["order"][j]: max(matrix[j:-1, j]) - matrix[-1, j] for j in places}


def spread(values: list[float]) -> list[float]:
    """Mean and half of the t interval, in points."""
    found = 100 * np.array(values)
    if len(found) == 1:
        return [found[0]]
    return [found.mean(), stats.t.ppf(0.975, len(found) - 1) * stats.sem(found)]


def crossed(
    place: Place,
    quantity: Callable[[Any], dict[str, float]],
    names: list[str],
    group: str = "minilm",
) -> Any:
    """Differences in points as [task, seed]."""
    found = [place.seeds(name, group) for name in names]
    seeds = [seed for seed in found[0] if all(seed in runs for runs in found)]
    values = [[quantity(runs[seed]) for seed in seeds] for runs in found]
    tasks = values[0][0].keys()
    arrays = [np.array([[by[task] for by in one] for task in tasks]) for one in values]
    return 100 * (arrays[0] - (arrays[1] if len(arrays) > 1 else 0.0))


def interval(d: Any) -> tuple[list[float], float]:
    """Mean and bounds over tasks and seeds by sums of squares; and the p value."""
    (tasks, seeds), mean = d.shape, d.sum() / d.size
    of_task, of_seed = d.sum(1) / seeds, d.sum(0) / tasks
    squares = [seeds * ((of_task - mean) ** 2).sum(), tasks * ((of_seed - mean) ** 2).sum()]
    left = ((d - mean) ** 2).sum() - sum(squares)
    degrees = [tasks - 1, seeds - 1]
    rest = left / (degrees[0] * degrees[1])
    parts = [(square / n, n) for square, n in zip(squares, degrees, strict=True)]
    parts = [(of_mean, n) for of_mean, n in parts if of_mean > rest]
    terms = [*parts, (-rest, degrees[0] * degrees[1])] if len(parts) == 2 else parts
    terms = terms or [(rest, degrees[0] * degrees[1])]
    total = sum(term for term, _ in terms)
    freedom = max(total**2 / sum(term**2 / n for term, n in terms), min(degrees))
    error = (total / d.size) ** 0.5
    half = stats.t.ppf(0.975, freedom) * error
    return [mean, mean - half, mean + half], 2 * stats.t.sf(abs(mean) / error, freedom)


def method_of(cell: str) -> str:
    learner = re.match(r"`(\w+)`", cell).group(1)  # type: ignore[union-attr]
    return f"{learner}_per_task" if "chosen per task" in cell else learner


def normalized(place: Place, method: str, group: str = "minilm") -> list[float]:
    found, whole = place.seeds(method, group), place.seeds("independent", group)
    values = []
    for seed in [seed for seed in found if seed in whole]:
        nothing = sum(found[seed]["majority"])
        reached, most = (sum(last(runs[seed]).values()) for runs in (found, whole))
        values.append((reached - nothing) / (most - nothing))
    return [number / 100 for number in spread(values)] if values else []


def method_row(place: Place, row: list[str], header: str) -> list[tuple[str, list[float], float]]:
    """Cells of a row with the numbers that should be there, and how exactly."""
    runs = [*place.seeds(method_of(row[0])).values()]
    matrices = [np.array(run["matrix"], dtype=float) for run in runs]
    times, tasks = [run["timing"] for run in runs], runs[0]["ledger"]["tasks"]
    counted = operations(place, method_of(row[0]))
    learning = [time["train_s"] + time["select_s"] for time in times]
    expected = {
        "score at the end": (spread([matrix[-1].mean() for matrix in matrices]), 0.051),
        "normalized": (normalized(place, method_of(row[0])), 0.0051),
        "right after learning": (spread([m.diagonal().mean() for m in matrices]), 0.051),
        "forgetting": (spread([forgets(run) for run in runs]), 0.051),
        "bit-identical": ([*sorted({same_logits(run) for run in runs}), 25], 0),
        "stored (encoders)": ([runs[0]["ledger"]["total_multiple"] or 0.0], 0.0051),
        "trained a task": ([float(np.mean([t["trained_parameters"] for t in tasks]))], 0.51),
        "steps": ([float(np.median([time["steps"] for time in times]))], 0.51),
        "operations": (counted, 0.051 * max(counted, default=0.0)),
        "learning (s)": ([float(np.mean(learning))], 0.51),
        "seeds": ([len(runs)], 0),
    }
    names = [name.strip() for name in header[2:-2].split(" | ")][1:]
    return [(cell, *expected[name]) for name, cell in zip(names, row[1:], strict=True)]


def tradeoff_row(place: Place, row: list[str]) -> list[tuple[str, list[float], float]]:
    method = method_of(row[0])
    tasks = place.seeds(method)[1]["ledger"]["tasks"]
    cells = [
        (row[1], [float(np.mean([t["trained_parameters"] for t in tasks]))], 0.51),
        (row[2], [100 * float(np.mean([t["trained_fraction"] for t in tasks]))], 0.0051),
    ]
    if method == "independent":
        return [*cells, ("".join(row[3:7]), [], 0)]
    d = crossed(place, last, [method, "independent"])
    expected = [*np.percentile(d.mean(1), [20, 50, 80]), d.mean()]
    own = zip(row[3:7], expected, strict=True)
    return [*cells, *((cell, [value], 0.0051) for cell, value in own), (row[7], [d.shape[1]], 0)]


def elsewhere_row(place: Place, row: list[str], group: str) -> list[tuple[str, list[float], float]]:
    method = method_of(row[0])
    runs = [*place.seeds(method, group).values()]
    main = [ends(run) for run in place.seeds(method).values()]
    times = [run["timing"]["train_s"] + run["timing"]["select_s"] for run in runs]
    given = [text.partition("=") for text in runs[0]["overrides"] if text.startswith("learner.")]
    return [
        (row[1], spread([ends(run) for run in runs]), 0.051),
        (row[2], spread(main) if main else [], 0.051),
        (row[3], normalized(place, method, group), 0.0051),
        (row[4], spread([learns(run) for run in runs]), 0.051),
        (row[5], spread([forgets(run) for run in runs]), 0.051),
        (row[6], [*sorted({same_logits(run) for run in runs}), 25], 0),
        (row[7], [runs[0]["ledger"]["total_multiple"]], 0.0051),
        (row[8], [float(np.mean(times))], 0.51),
        (row[9], [float(value) for _, _, value in given], 0),
        (row[10], [len(runs)], 0),
    ]


def inferred_runs(place: Place) -> list[Any]:
    return [*place.seeds("adapter", "minilm-inferred").values()]


def inferred_row(place: Place, row: list[str]) -> list[tuple[str, list[float], float]]:
    runs = inferred_runs(place)
    at = runs[0]["titles"].index(row[0])
    found = [run["cells"][-1][at]["routed"] for run in runs]
    known, served = [run["matrix"][-1][at] for run in runs], [one["score"] for one in found]
    counts = np.sum([one["counts"] for one in found], axis=0) / np.sum([o["counts"] for o in found])
    others = {title: counts[n] for n, title in enumerate(runs[0]["titles"]) if n != at}
    most = max(others, key=lambda title: others[title])
    assert row[5].startswith(most)
    return [
        (row[1], spread(known), 0.051),
        (row[2], spread(served), 0.051),
        (row[3], [100 * float(np.mean(known) - np.mean(served))], 0.0051),
        (row[4], spread([one["accuracy"] for one in found]), 0.051),
        (row[5].removeprefix(most), [100 * others[most]], 0.051),
    ]


def longer_runs(place: Place, method: str) -> list[tuple[Any, Any]]:
    """Both runs of each seed: with three epochs, and with twenty."""
    short, long = (place.seeds(f"{method}_per_task", g) for g in ("minilm", "minilm-longer"))
    return [(short[seed], long[seed]) for seed in sorted({*short} & {*long})]


def longer_row(place: Place, row: list[str]) -> list[tuple[str, list[float], float]]:
    some = longer_runs(place, "adapter")[0][1]
    task = some["order"][some["titles"].index(row[0])]
    found = [
        [last(pair[epochs])[task] for pair in longer_runs(place, method)]
        for method in ("independent", "adapter")
        for epochs in (0, 1)
    ]
    cells = [(cell, spread(one), 0.051) for cell, one in zip(row[1:5], found, strict=True)]
    lost = [100 * float(np.mean(found[2 + e]) - np.mean(found[e])) for e in (0, 1)]
    return [*cells, (row[5], lost[:1], 0.0051), (row[6], lost[1:], 0.0051)]


def same_logits(run: Any) -> int:
    """How many earlier tasks have the digest at the end that they had first."""
    places = range(len(run["order"]) - 1)
    return sum(run["cells"][i][i]["digest"] == run["cells"][-1][i]["digest"] for i in places)


def operations(place: Place, method: str) -> list[float]:
    """By task: those of the short stream for one example, times the examples."""
    short = place.runs.get(f"minilm-operations/{method}-s1")
    if short is None:
        return []
    run = next(iter(place.seeds(method).values()))
    spent = dict(zip(short["order"], short["flops"]["train"], strict=True))
    own = dict(zip(run["order"], run["timing"]["by_task"]["train_examples"], strict=True))
    examples = dict(zip(short["order"], short["timing"]["by_task"]["train_examples"], strict=True))
    return [sum(spent[task] / n * own[task] for task, n in examples.items() if n)]


def differences_row(place: Place, row: list[str]) -> list[tuple[str, list[float], float]]:
    quantity = lost if row[0] == "forgetting" else last
    d = crossed(place, quantity, [method_of(cell) for cell in row[1:3] if cell != "nothing"])
    mean, half = spread([*d.mean(0) / 100])
    return [
        (row[3], interval(d)[0], 0.0051),
        (row[4], [mean - half, mean + half], 0.0051),
        (row[6], [d.shape[1]], 0),
    ]


def against_finetune_row(place: Place, row: list[str]) -> list[tuple[str, list[float], float]]:
    methods = [method_of(row[0]), "finetune"]
    ends, forgotten = (crossed(place, quantity, methods) for quantity in (last, lost))
    mean, half = spread([*ends.mean(0) / 100])
    return [
        (row[1], interval(ends)[0], 0.0051),
        (row[2], [mean - half, mean + half], 0.0051),
        (row[3], interval(forgotten)[0], 0.0051),
        (row[4], [ends.shape[1]], 0),
    ]


def orders_row(place: Place, row: list[str]) -> list[tuple[str, list[float], float]]:
    method = method_of(row[0])
    groups = ["minilm", *(f"minilm-{order}" for order in ORDERS)]
    found = [place.runs.get(f"{group}/{method}-s1") for group in groups]
    ends = [100 * np.mean([*last(run).values()]) if run else None for run in found]
    cells = [
        (row[1 + i], [end], 0.051) if end is not None else (row[1 + i], [], 0)
        for i, end in enumerate(ends)
    ]
    if None not in ends:
        cells.append((row[6], [max(ends) - min(ends)], 0.051))  # type: ignore[operator]
    return cells


def tasks_row(place: Place, row: list[str]) -> list[tuple[str, list[float], float]]:
    some = next(run for run in place.runs.values())
    task = some["order"][some["titles"].index(row[0])]
    methods = ("independent", "adapter", "independent_per_task", "adapter_per_task")
    cells = []
    for cell, method in zip(row[3:9], (*methods, "frozen", "finetune"), strict=True):
        values = [last(run)[task] for run in place.seeds(method).values()]
        cells.append((cell, spread(values) if values else [], 0.051))
    return cells


ROWS_OF: dict[str, Callable[..., list[tuple[str, list[float], float]]]] = {
    "main": method_row,
    "brief": method_row,
    "differences": differences_row,
    "against_finetune": against_finetune_row,
    "orders": orders_row,
    "tasks": tasks_row,
    "tradeoff": tradeoff_row,
    "mpnet": lambda place, row: elsewhere_row(place, row, "mpnet"),
    "more_rows": lambda place, row: elsewhere_row(place, row, "minilm-20000"),
    "inferred": inferred_row,
    "longer": longer_row,
}


def test_every_row_of_the_tables_follows_from_the_records(place: Place) -> None:
    there = [
        (name, row)
        for name in ROWS_OF
        for row in place.rows(name)
        if set(row[3:]) != {"not run"} and set(row[1:]) != {"not run"}
    ]
    if place.runs:
        assert len(there) >= 10
    for name, row in there:
        header = place.blocks[name].splitlines()[0]  # of those tables that begin with it
        more = [header] if ROWS_OF[name] is method_row else []
        for cell, expected, near in ROWS_OF[name](place, row, *more):
            assert numbers(cell) == pytest.approx(expected, abs=near), (name, row, cell)


def test_p_values_are_corrected_for_all_differences(place: Place) -> None:
    rows = place.rows("differences")
    found = {}
    for at, row in enumerate(rows):
        if row[3] != "not run":
            names = [method_of(cell) for cell in row[1:3] if cell != "nothing"]
            found[at] = interval(crossed(place, lost if row[0] == "forgetting" else last, names))[1]
    worst = 0.0
    for rank, at in enumerate(sorted(found, key=found.__getitem__)):
        worst = max(worst, min(1.0, (len(rows) - rank) * found[at]))
        shown = rows[at][5]
        assert shown == ("< 0.001" if worst < 0.001 else f"{worst:.3f}"), rows[at]


def test_claims_have_the_numbers_of_their_differences(place: Place) -> None:
    rows = {row[0]: row for row in place.rows("claims")}
    assert len(rows) == 11
    for words, names in (
        ("Adapters, chosen per task", ["adapter_per_task", "independent_per_task"]),
        ("One fixed setting", ["adapter", "independent"]),
    ):
        claim = next(row for name, row in rows.items() if name.startswith(words))
        points = float(re.search(r"within ([\d.]+) points", claim[0]).group(1))  # type: ignore[union-attr]
        if claim[1] == "not run":
            assert claim[2] == "**open**"
            continue
        mean, low, high = interval(crossed(place, last, names))[0]
        assert numbers(claim[1]) == pytest.approx([mean, low, high], abs=0.0051)
        verdict = "agrees" if low > -points else "contradicted" if high < -points else "open"
        assert claim[2] == f"**{verdict}**"
    verdicts = [row[2].strip("*") for row in rows.values()]
    told = numbers(place.blocks["verdicts"])
    assert told == [11, *(verdicts.count(v) for v in ("agrees", "contradicted", "open"))]


def mean_of(place: Place, method: str, what: Callable[[Any], float]) -> float:
    return 100 * float(np.mean([what(run) for run in place.seeds(method).values()]))


def ends(run: Any) -> float:
    return float(np.mean(run["matrix"][-1]))


def forgets(run: Any) -> float:
    return float(np.mean([*lost(run).values()]))


def loses(place: Place, method: str) -> list[float]:
    return [mean_of(place, method, forgets), mean_of(place, method, ends)]


def apart(place: Place, names: list[str], said: list[str]) -> list[float]:
    """How far apart two methods are; the word for the direction is checked here."""
    mean, low, high = interval(crossed(place, last, names))[0]
    assert said == ["below" if mean < 0 else "above"]
    return [abs(mean), 95, low, high]


def stored(place: Place, method: str) -> float:
    return place.seeds(method)[1]["ledger"]["total_multiple"]


def verdict_of(found: list[float], bound: float) -> str:
    *_, low, high = found
    return "holds" if low > bound else "does not hold" if high < bound else "is open"


def one_setting(place: Place, sentence: str) -> list[float]:
    found = apart(place, ["adapter", "independent"], re.findall("below|above", sentence))
    assert f"within 0.8 points {verdict_of(found, -0.8)}." in sentence
    return [*found, 0.8, stored(place, "adapter"), stored(place, "independent")]


def memory(place: Place, sentence: str) -> list[float]:
    names = re.compile(r".*/adapter(_per_task|_\d+)?-s\d+")
    runs = [run for name, run in place.runs.items() if names.fullmatch(name)]
    runs = [run for run in runs if len(run["order"]) == 26]
    perfect = 0
    for run in runs:
        same = [run["cells"][i][i]["digest"] == run["cells"][-1][i]["digest"] for i in range(26)]
        perfect += all(same) and forgets(run) == 0
    assert "nothing is forgotten" in sentence
    return [perfect, len(runs), 25]


def bounds(place: Place, _: str) -> list[float]:
    nothing = mean_of(place, "adapter", lambda run: float(np.mean(run["majority"])))
    words = [mean_of(place, "tfidf", ends)] if place.seeds("tfidf") else []
    return [nothing, mean_of(place, "frozen", ends), *words]


def second_search(place: Place, sentence: str) -> list[float]:
    """Return the best validation scores of both searches, from their JSON."""
    (method,) = re.findall(r"`(\w+)`", sentence)
    folder = place.folder / "searches/minilm"
    both = [json.loads((folder / f"{method}{n}.json").read_text()) for n in ("-2", "")]
    return [100 * max(t["score"] or 0 for t in of["found"]["trials"]) for of in both]


def inferring(place: Place, _: str) -> list[float]:
    runs = inferred_runs(place)
    served = [np.mean([cell["routed"]["score"] for cell in run["cells"][-1]]) for run in runs]
    return [100 * float(np.mean(served)), 100 * float(np.mean([run["matrix"][-1] for run in runs]))]


def learns(run: Any) -> float:
    return float(np.diag(run["matrix"]).mean())


def sequential(place: Place, _: str) -> list[float]:
    forgotten, at_end = loses(place, "finetune")
    learned = [mean_of(place, name, learns) for name in ("finetune", "independent")]
    return [*learned, at_end, forgotten]


def chosen(place: Place, sentence: str) -> list[float]:
    names = ["adapter_per_task", "independent_per_task"]
    first, *second = re.findall("below|above", sentence)
    found = apart(place, names, [first])
    assert f"within 0.4 points {verdict_of(found, -0.4)}." in sentence
    pairs = {method: longer_runs(place, method) for method in ("adapter", "independent")}
    if not all(pairs.values()):
        assert second == []
        return [*found, 0.4]
    adapters, whole = ([better(*pair) for pair in pairs[m]] for m in ("adapter", "independent"))
    mean, low, high = interval(100 * (np.array(adapters) - np.array(whole)).T)[0]
    assert second == ["below" if mean < 0 else "above"]
    return [*found, 0.4, 20, 3, abs(mean), 95, low, high]


def sizes(place: Place, sentence: str) -> list[float]:
    found, words = [2.0], []
    for method in ("adapter_2", "topk"):
        tasks = place.seeds(method)[1]["ledger"]["tasks"]
        part = 100 * np.mean([task["trained_fraction"] for task in tasks])
        mean, low, high = interval(crossed(place, last, [method, "independent"]))[0]
        words.append("below" if mean < 0 else "above")
        found += [round(float(part), 2), abs(mean), 95, low, high]
    assert re.findall("below|above", sentence) == words
    return found


def other_encoder(place: Place, _: str) -> list[float]:
    mean, low, high = interval(crossed(place, last, ["adapter", "independent"], "mpnet"))[0]
    found = [abs(mean), 95, low, high, *failed_of(place, ["adapter", "independent"])]
    names = ["adapter_per_task", "independent_per_task"]
    if all(len(place.seeds(name, "mpnet")) > 1 for name in names):
        mean, low, high = interval(crossed(place, last, names, "mpnet"))[0]
        found += [abs(mean), 95, low, high, *failed_of(place, names)]
    return found


def failed_of(place: Place, names: list[str]) -> list[int]:
    each = [failed_trainings(place, "mpnet", name) for name in names]
    return [n for seeds, failed in each for n in (len(failed), 26 * len(seeds))]


SENTENCES: dict[str, Callable[[Place, str], list[float]]] = {
    "With one setting": one_setting,
    "In ": memory,
    "With rate and start": chosen,
    "Adapters of 2": sizes,
    "With MPNet": other_encoder,
    "Always": bounds,
    "One encoder": sequential,
    "Replay": lambda place, _: loses(place, "replay"),
    "EWC": lambda place, _: loses(place, "ewc"),
    "One set of adapters": lambda place, _: loses(place, "shared_adapter"),
    "Where the task": inferring,
    "A second search": second_search,
}


def test_every_sentence_about_the_table_is_true(place: Place) -> None:
    sentences = place.blocks["headline"].strip().splitlines()
    if not place.runs:
        assert sentences == ["Not run yet."]
        return
    assert all(sentence.startswith("- ") for sentence in sentences)
    for sentence in (line.removeprefix("- ") for line in sentences):
        (numbers_of,) = [f for begin, f in SENTENCES.items() if sentence.startswith(begin)]
        assert numbers(sentence) == pytest.approx(numbers_of(place, sentence), abs=0.051), sentence


def test_where_adapters_lose_most_is_true(place: Place) -> None:
    names = ["adapter_per_task", "independent_per_task"]
    if not all(map(place.seeds, names)):
        assert place.blocks["lag"] == "Not run yet.\n"
        return
    by_task = crossed(place, last, names).mean(axis=1)
    titles = place.seeds(names[0])[1]["titles"]
    worst = np.argsort(by_task)[:4]
    text = place.blocks["lag"]
    assert [title for title in titles if f"{title} (" in text] == [titles[i] for i in sorted(worst)]
    for title in titles:  # some have numbers
        text = text.replace(f"{title} (", "(")
    part, whole, half = by_task[worst].sum() / 26, by_task.mean(), np.median(by_task)
    expected = [*by_task[worst], 4, part, whole, half]
    assert numbers(text) == pytest.approx(expected, abs=0.051)


def test_sentences_of_other_groups_are_true(place: Place) -> None:
    for block, group in (("mpnet", "mpnet"), ("more_rows", "minilm-20000")):
        text, runs = place.blocks[block], place.seeds("adapter", group)
        sentences = re.findall(r"Adapters end .+?\)[^.]*\.", text)
        for ending, of in (").", ""), ("chosen per task.", "_per_task"):
            names = [f"adapter{of}", f"independent{of}"]
            if all(len(place.seeds(name, group)) > 1 for name in names):
                mean, low, high = interval(crossed(place, last, names, group))[0]
                (told,) = [sentence for sentence in sentences if sentence.endswith(ending)]
                assert numbers(told) == pytest.approx([abs(mean), 95, low, high], abs=0.051)
                assert ("below" if mean < 0 else "above") in told
                sentences.remove(told)
        assert not sentences
        planned = WITH_MPNET if group == "mpnet" else ELSEWHERE
        lacking = [name for name in planned if not place.seeds(name, group)]
        said = re.search(r"^Not run in `\S+`: (.*)\.$", text, re.M)
        assert (re.findall(r"`(\w+)`", said.group(1)) if said else []) == lacking
        assert len(place.rows(block)) == len(planned) - len(lacking), runs


def failed_trainings(place: Place, group: str, name: str) -> tuple[list[int], set[Any]]:
    """The seeds, and (task, seed) within a point of its majority answer.

    Where the mean of whole models is 5 points above that.
    """
    seeds = [s for s in range(1, 11) if f"{group}/{name}-s{s}" in place.runs]
    whole = [r for n, r in place.runs.items() if n.startswith(f"{group}/independent-s")]
    found = set()
    for seed in seeds:
        run = place.runs[f"{group}/{name}-s{seed}"]
        nothing, learned = np.array(run["majority"]), np.mean([r["matrix"][-1] for r in whole], 0)
        low = np.array(run["matrix"][-1]) <= nothing + 0.01
        places = np.flatnonzero(low & (learned >= nothing + 0.05))
        found |= {(run["order"][at], seed) for at in places}
    return seeds, found


def test_the_difference_without_failed_pairs_is_true(place: Place) -> None:
    names = ("adapter", "independent")
    runs = [place.seeds(name, "mpnet") for name in names]
    lost = set().union(*(failed_trainings(place, "mpnet", name)[1] for name in names))
    kept = [
        last(runs[0][seed])[task] - last(runs[1][seed])[task]
        for seed in runs[0].keys() & runs[1].keys()
        for task in runs[0][seed]["order"]
        if (task, seed) not in lost
    ]
    told = [line for line in place.blocks["mpnet"].splitlines() if line.startswith("In the ")]
    expected = [len(kept), 100 * np.mean(kept)] if kept else []
    assert [n for line in told for n in numbers(line)] == pytest.approx(expected, abs=0.0051)


def test_failed_tasks_are_counted(place: Place) -> None:
    numbers_of_adapters = []
    for encoder, method, tried, failed, which in place.rows("failures"):
        group, name = {"MiniLM": "minilm", "MPNet": "mpnet"}[encoder], method_of(method)
        seeds, found = failed_trainings(place, group, name)
        if tried == "not run":
            assert not seeds
            continue
        assert numbers(tried) == [len(seeds), 26]
        assert int(failed) == len(found)
        told = re.findall(r"(\w+) \(seeds? (\d+)(?: to (\d+)|([\d, ]*))\)", which)
        assert {
            (task, int(seed))
            for task, first, end, more in told
            for seed in (range(int(first), int(end) + 1) if end else f"{first}{more}".split(","))
        } == found
        if name == "adapter":
            numbers_of_adapters += [len(found), 26 * len(seeds)]
    claim = next(row for row in place.rows("claims") if row[0].startswith("No task fails"))
    assert numbers(claim[1]) == numbers_of_adapters


def test_what_keeps_training_from_failing_is_true(place: Place) -> None:
    runs: dict[str, dict[int, Any]] = {}
    for name, run in place.runs.items():
        group, _, seed = name.rpartition("-s")
        if group.startswith("mpnet-failing/"):
            runs.setdefault(group.partition("/")[2], {})[int(seed)] = run
    if not runs:
        assert place.blocks["failing"].startswith("Not run in `mpnet-failing`: ")
        return
    whole = [last(run) for run in place.seeds("independent", "mpnet").values()]
    lost = {
        name: {
            (task, seed)
            for seed, run in of.items()
            for task, nothing in zip(run["order"], run["majority"], strict=True)
            if np.mean([one[task] for one in whole]) >= nothing + 0.05
            if last(run)[task] <= nothing + 0.01
        }
        for name, of in runs.items()
    }
    rows = place.rows("failing")
    changed = {"nothing": "as_chosen", "half": "half_rate", "warm-up": "long_warmup"}
    for text, failed, ends, apart in rows:
        name = f"adapter_{changed.get(text.split()[0].strip(':'), 'mean_of_tokens')}"
        of = runs.pop(name)
        assert numbers(failed) == [len(lost[name]), 8 * len(of)]
        means = [100 * np.mean([*last(run).values()]) for run in of.values()]
        assert numbers(ends)[0] == pytest.approx(np.mean(means), abs=0.051)
        if name == "adapter_as_chosen":
            first = of
            continue
        kept = [
            last(run)[task] - last(first[seed])[task]
            for seed, run in of.items()
            for task in run["order"]
            if (task, seed) not in lost[name] | lost["adapter_as_chosen"]
        ]
        assert numbers(apart) == pytest.approx([100 * np.mean(kept), len(kept)], abs=0.0051)
    assert not runs


def test_choices_that_repeat_one_setting_are_counted(place: Place) -> None:
    for encoder, named, same in place.rows("chosen_again"):
        group, learner = {"MiniLM": "minilm", "MPNet": "mpnet"}[encoder], named.strip("`")
        fixed, found = place.seeds(learner, group), []
        for seed, run in place.seeds(f"{learner}_per_task", group).items():
            if seed not in fixed:
                continue
            settings = fixed[seed]["config"]["learner"]
            for at, task in enumerate(run["order"]):
                chosen = run["selection"][task]["candidates"][run["selection"][task]["chosen"]]
                if chosen["restart"] == 0 and all(
                    chosen["settings"].get(key, run["config"]["learner"].get(key)) == value
                    for key, value in settings.items()
                ):
                    first = fixed[seed]["order"].index(task)
                    ends = run["cells"][-1][at], fixed[seed]["cells"][-1][first]
                    learned = run["cells"][at][at], fixed[seed]["cells"][first][first]
                    found.append(all(a["digest"] == b["digest"] for a, b in (ends, learned)))
        assert numbers(same) == [sum(found), len(found)]


def test_what_was_learned_again_is_counted(place: Place) -> None:
    rows = place.rows("repeats")
    assert {row[1].strip("`") for row in rows} >= {"minilm-reversed", "minilm-inferred"}
    for names, (seeds, equal, others, largest) in ((row[:2], row[2:]) for row in rows):
        method, group = (name.strip("`") for name in names)
        pairs = [
            (first, again)
            for name, again in place.runs.items()
            for first in [place.runs.get(f"minilm/{method}-s{again['seed']}")]
            if name.startswith(f"{group}/") and not re.search(r"_(chosen|per_task)-s", name)
            if first is not None
            if again["learner"] == first["learner"]
            if again["config"]["learner"] == first["config"]["learner"]
        ]
        same, apart = {}, [0.0]
        for one, again in pairs:
            for task in again["order"]:
                at = [run["order"].index(task) for run in (one, again)]
                found = [
                    (run["cells"][i][i]["digest"], run["cells"][-1][i]["digest"])
                    for run, i in zip((one, again), at, strict=True)
                ]
                same[again["seed"], task] = found[0] == found[1]
                apart.append(abs(last(one)[task] - last(again)[task]))
        assert numbers(seeds) == [len(pairs)]
        assert numbers(equal) == [sum(same.values()), len(same)]
        assert numbers(largest) == pytest.approx([100 * max(apart)], abs=0.051)
        differing = sorted({task for (_, task), is_same in same.items() if not is_same})
        assert others == (", ".join(differing) or "none")


def test_what_replaced_others_is_summed_up(kept: Place) -> None:
    lines = [json.loads(x) for x in (kept.folder / "replaced.jsonl").read_text().splitlines()]
    for learner, stream, runs, same, _, *moves in kept.rows("replaced"):
        groups = "minilm-ablations" if stream == "four tasks" else "minilm(-reversed|-random.)?"
        wanted = re.compile(rf"{groups}/{method_of(learner)}(_|-)")
        mine = [line for line in lines if wanted.match(line["run"])]
        moved = [100 * line["moved"] for line in mine]
        largest = max(abs(x) for x in moved), 100 * max(line["largest"] for line in mine)
        equal = sum(line["identical"] == line["tasks"] for line in mine)
        assert (int(runs), int(same)) == (len(mine), equal)
        found = [numbers(text)[0] for text in moves]
        assert found == pytest.approx([float(np.mean(moved)), *largest], abs=0.0051)
        lines = [line for line in lines if line not in mine]
    assert lines == []


def better(short: Any, long: Any) -> list[float]:
    """The scores of a run, with those of a longer one where validation rows prefer it."""

    def judged(run: Any, task: str) -> float:
        found = run["selection"][task]
        return found["candidates"][found["chosen"]]["score"]

    longer = [task for task in long["order"] if judged(long, task) > judged(short, task)]
    return [*{**last(short), **{task: last(long)[task] for task in longer}}.values()]


def test_what_more_epochs_change_is_true(place: Place) -> None:
    pairs = {method: longer_runs(place, method) for method in ("adapter", "independent")}
    if not all(pairs.values()):
        assert place.blocks["longer"].startswith("Not run in `minilm-longer`: ")
        return
    tasks = pairs["adapter"][0][1]["order"]
    expected: list[float] = []
    few, many = (
        {m: [[last(pair[e])[t] for t in tasks] for pair in found] for m, found in pairs.items()}
        for e in (0, 1)
    )
    chosen = {m: [better(*pair) for pair in found] for m, found in pairs.items()}
    for scores, more in ((few, [3]), (many, [20]), (chosen, [26])):
        d = 100 * (np.array(scores["adapter"]) - np.array(scores["independent"])).T
        mean, low, high = interval(d)[0]
        expected += [abs(mean), 95, low, high, *more]
    told = place.blocks["longer"].splitlines()
    (sentences,) = [line for line in told if line.startswith("On these tasks")]
    assert numbers(sentences) == pytest.approx(expected, abs=0.051)
    assert len(re.findall("below whole|above whole", sentences)) == 3


def test_what_inferring_costs_is_true(place: Place) -> None:
    runs, text = inferred_runs(place), place.blocks["inferred"]
    if not runs:
        assert text == "Not run in `minilm-inferred`: `adapter`.\n"
        return
    served = [[cell["routed"]["score"] for cell in run["cells"][-1]] for run in runs]
    known = [run["matrix"][-1] for run in runs]
    first, second = (line for line in text.splitlines() if line.startswith("With the task"))
    right = [np.mean([cell["routed"]["accuracy"] for cell in run["cells"][-1]]) for run in runs]
    mean, low, high = interval(100 * (np.array(served) - np.array(known)).T)[0]
    means = [spread([float(np.mean(row)) for row in rows]) for rows in (served, known)]
    expected = [-mean, 95, low, high, *means[0], *means[1], *spread([float(r) for r in right])]
    assert numbers(first) == pytest.approx(expected, abs=0.051)
    assert "below" in first
    main = place.seeds("adapter")
    pairs = [(run, main[run["seed"]]) for run in runs if run["seed"] in main]
    same = [
        own["digest"] == other["digest"]
        for run, known_run in pairs
        for own, other in zip(run["cells"][-1], known_run["cells"][-1], strict=True)
    ]
    assert numbers(second) == [sum(same), len(same)]


def test_one_rate_beside_the_chosen_ones(kept: Place) -> None:
    rows = kept.rows("at_one_rate")
    methods = [method_of(row[0]) for row in rows]
    assert methods == ["finetune", "replay", "ewc", "lwf", "derpp", "si"]
    for row in rows:
        files = (kept.folder / "searches/minilm").glob(f"{method_of(row[0])}*.json")
        trials = [t for f in files for t in json.loads(f.read_text())["found"]["trials"]]
        at = [t["score"] for t in trials if (t["settings"]["lr"], t["settings"]["head_lr"]) == RATE]
        best = max(trials, key=lambda trial: trial["score"])
        assert numbers(row[1]) == pytest.approx([100 * max(at)], abs=0.051)
        assert numbers(row[2]) == [*best["settings"].values()]
        assert numbers(row[3]) == pytest.approx([100 * best["score"]], abs=0.051)


def test_the_figure_of_the_tradeoff_has_the_points_of_its_table(made: Place) -> None:
    figure = tradeoff_figure(Records(made.folder))
    assert figure is not None
    drawn = {
        container.get_label(): 100 * np.asarray(container.lines[0].get_ydata(), dtype=float)
        for container in figure.axes[0].containers
        if isinstance(container, ErrorbarContainer)
    }
    shown = {method_of(row[0]): numbers(row[4]) for row in made.rows("tradeoff")}
    for learner in ("frozen", "layernorm"):
        assert drawn[learner] == pytest.approx(shown[learner], abs=0.0051)
    names = ["adapter", "adapter_2", "adapter_8", "adapter_256", "adapter_512"]
    medians = sorted(shown[name][0] for name in names)
    assert sorted(drawn["adapter"]) == pytest.approx(medians, abs=0.0051)


def test_runs_are_counted_by_what_made_them(place: Place) -> None:
    counted = Counter[tuple[str, int | None]]()
    for name, run in place.runs.items():
        file = place.folder / "runs" / name / "at_once.json"
        together = json.loads(file.read_text())["runs"] if file.exists() else None
        counted[run.get("gpu") or run["device"], together] += 1
    told = place.blocks["machines"].removeprefix("All groups together: ").rstrip(".\n").split("; ")
    where = {"cpu": "a CPU", "cuda": "a GPU that the record does not name"}
    for (device, together), number in counted.items():
        name = where.get(device, device)
        end = name if together is None else f"{name}, at most {together} of a command at once"
        assert sum(int(line.split()[0]) for line in told if line.endswith(end)) == number, told


def test_made_up_records_give_every_sentence_and_every_row(made: Place) -> None:
    assert len(made.blocks["headline"].strip().splitlines()) == len(SENTENCES) - 1  # none waits
    shown = "".join(made.blocks[name] for name in (*ROWS_OF, "claims"))
    assert "not run" not in shown.lower()
    assert made.blocks["missing"].strip() == "Every planned run is there."


def test_documents_hold_the_blocks_of_the_records(tmp_path: Path) -> None:
    names = (*DOCUMENTS, "results/evidence/README.md")
    copies = [tmp_path / str(number) for number in range(len(names))]
    for name, copy in zip(names, copies, strict=True):
        copy.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["tables", "--out", str(RECORDS), *map(str, copies)]) == 0
    for name, copy in zip(names, copies, strict=True):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert copy.read_text(encoding="utf-8") == text, f"{name}: make figures"


def test_the_protocol_has_the_methods_of_the_plan(kept: Place) -> None:
    rows = {row[0].strip("`"): row for row in kept.rows("methods")}
    assert list(rows) == [method.name for method in METHODS]
    for method in METHODS:
        _, settings, begun, seeds = rows[method.name]
        assert settings.strip("`") == " ".join(method.settings[: 1 if method.choice else None])
        for key, values in method.searched.items():
            told = re.search(rf"(?:^|; ){key} ([^;]+)", begun)
            assert told is not None
            assert tuple(map(float, told.group(1).split(", "))) == values
        assert method.choice in begun
        assert seeds == ("1 to 10" if method.name in TEN_SEEDS else "1 to 5")
    protocol = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    for setting in ROWS:
        assert f"`{setting}`" in protocol


def test_every_planned_run_is_a_run() -> None:
    planned = list(jobs())
    assert len({job.name for job in planned}) == len(planned)
    by_group = {job.group.name: job for job in planned}  # the last one of each
    for name in ("minilm-random1", "minilm-operations"):
        job = by_group[name]
        values = dict.fromkeys(job.method.searched, 1e-3)
        short = [s for s in job.settings(values) if not s.startswith(("stream=", "order"))]
        config, _ = compose_settings([*short, "task=[cola,rte]", "data.root=here"])
        assert config.seed == config.limits.seed == 1


def test_every_record_has_its_command(kept: Place) -> None:
    page = (RECORDS / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| (\S+/\S+-s\d+) \|.* `(task-stream run .*)` \|$", page, re.M))
    assert listed.keys() == kept.kept.keys()
    for name, command in listed.items():
        given = shlex.split(command)[2:]
        own = [text for text in kept.kept[name]["overrides"] if not text.startswith("data.root=")]
        assert given == [*own, "data.root=DIR"]


def test_seeds_in_words() -> None:
    words = [shortly(seeds) for seeds in ([1, 2, 3], [1, 3], [6], [1, 2, 4])]
    assert words == ["seeds 1 to 3", "seeds 1, 3", "seed 6", "seeds 1, 2, 4"]
