"""Tables of searches: what was chosen, and what each task would have chosen; what figures show."""

from pathlib import Path

from analysis.runs.comparable import largest_comparable
from benchmarks.evidence.figures import FIGURES, drawn_runs
from benchmarks.evidence.records import Records
from benchmarks.evidence.search_tables import per_task_choice, searches
from benchmarks.evidence.searches import SEARCHES, KeptSearch
from stream.record.selection import CandidateRecord, SelectionRecord
from stream.tuning.record import LearnerRecord, TrialRecord
from tests.benchmarks.test_evidence_verdicts import made


def write_search(
    out: Path, method: str, scores: dict[float, list[float]], name: str = "lr", **others: float
) -> None:
    """Keep a search of one setting, others are fixed; ``scores`` are those of three tasks."""
    trials = [
        TrialRecord(
            number=number,
            settings={name: rate, **others},
            origin="grid",
            status="complete",
            reason="",
            score=sum(by_task) / 3,
            seconds=1.0,
            steps=1,
            runs=[],
        )
        for number, (rate, by_task) in enumerate(scores.items())
    ]
    found = LearnerRecord(engine="grid", space={}, trials=trials, ends={"lr": "inside"})
    found.best = max(trials, key=lambda trial: trial.score or 0.0).number
    kept = KeptSearch(
        command="",
        tasks=["a", "b", "c"],
        found=found,
        scores={number: [*by_task] for number, by_task in enumerate(scores.values())},
    )
    kept.write(out / SEARCHES / "minilm" / f"{method}.json")


def row(table: str, name: str) -> list[str]:
    (line,) = [x for x in table.splitlines() if x.startswith(f"| {name} |")]
    return line[2:-2].split(" | ")


def test_the_best_setting_of_all_tasks_and_of_each(tmp_path: Path) -> None:
    scores = {1e-3: [0.5, 0.9, 0.1], 3e-3: [0.8, 0.6, 0.4], 1e-2: [0.8, 0.0, 0.2]}
    write_search(tmp_path, "adapter", scores)
    records = Records(tmp_path)
    assert row(searches(records), "`adapter`") == [
        "`adapter`",
        "3",
        "lr=0.003",
        "lr: inside",
        "60.0",
    ]
    # of equal scores the first: task a has 0.8 with two rates
    each = row(per_task_choice(records), "`adapter`")
    assert each[1:] == ["60.0", "70.0", "lr=0.003: 2; lr=0.001: 1"]
    assert row(searches(records), "`lora`")[1] == "not run"


def test_the_rate_of_the_heads_is_said_where_another_search_chose_it(tmp_path: Path) -> None:
    write_search(tmp_path, "ewc", {1e-5: [0.1] * 3})
    assert row(searches(Records(tmp_path)), "`ewc`")[1] == "not run"
    write_search(tmp_path, "finetune", {2e-3: [0.1] * 3}, "head_lr")
    assert row(searches(Records(tmp_path)), "`ewc`")[2] == "head_lr=0.002, lr=1e-05"


def test_what_runs_chose_for_their_tasks() -> None:
    records = Records(Path("none"))
    records.runs = made("adapter_per_task", seeds=(1, 2))
    for run in records.runs.values():
        candidates = [
            CandidateRecord(settings={"lr": rate}, restart=0, seed=1, score=score)
            for rate, score in ((1e-3, 0.2), (3e-3, 0.6))
        ]
        for place, task in enumerate(run.order):
            run.selection[task] = SelectionRecord(candidates=candidates, chosen=int(place == 0))
    each = row(per_task_choice(records), "`adapter`, chosen per task")
    mean = (0.6 + 25 * 0.2) / 26
    assert each[1:] == ["–", f"{100 * mean:.1f}", "lr=0.001: 50; lr=0.003: 2"]  # noqa: RUF001


def test_seeds_of_a_figure_repeat_a_method_though_each_draws_its_own_rows() -> None:
    records = Records(Path("none"))
    records.runs = made("adapter", "adapter_2", "adapter_per_task", "finetune", seeds=(1, 2, 3, 6))
    for name, run in records.runs.items():
        run.data.hash = name[-1] * 64
        run.data.hashes = {task: {"train": name[-1] * 64, "test": "t" * 64} for task in run.order}
        run.config["limits"] = {"train": 4000, "seed": run.seed}
    assert len(drawn_runs(records)) == 9
    runs = drawn_runs(records, FIGURES["average"])  # other sizes are not among its lines
    assert [run.path.name for run in runs[:3]] == ["adapter-s1", "adapter-s2", "adapter-s3"]
    assert len(largest_comparable(runs)[0]) == len(runs) == 6
