"""Which runs count: a second search may choose other settings, and no table mixes runs of both."""

from pathlib import Path

from benchmarks.evidence.again import is_kept
from benchmarks.evidence.commands import runs
from benchmarks.evidence.methods import BY_NAME, SECOND
from benchmarks.evidence.plan import MINILM, OTHER_ORDERS, Group, Job, searched
from benchmarks.evidence.records import RUNS, AtOnce, Records, keep
from benchmarks.evidence.runs import missing
from benchmarks.evidence.search_tables import per_task_choice, searches
from benchmarks.evidence.searches import chosen_for
from benchmarks.evidence.task_tables import missing as told_missing
from tests.benchmarks.made_evidence import made_run
from tests.benchmarks.test_evidence_searches import row, write_search

FIRST, THEN = {"lr": 3e-6, "head_lr": 3e-3}, {"lr": 1e-6, "head_lr": 1e-2}


def keep_made(
    out: Path, method: str, seed: int, chosen: dict[str, float], group: Group = MINILM
) -> Job:
    job = Job(group, BY_NAME[method], seed)
    record = made_run(job)
    record.overrides = [*job.settings(chosen), "data.root=there"]
    keep(record, out / RUNS / job.name, AtOnce(runs=24, gpus=2))
    return job


def write(out: Path, name: str, settings: dict[str, float], score: float) -> None:
    """Keep a search of one trial."""
    write_search(out, name, {settings["lr"]: [score] * 3}, head_lr=settings["head_lr"])


def test_the_better_of_two_searches_is_chosen_and_no_table_mixes_runs_of_both(
    tmp_path: Path,
) -> None:
    write(tmp_path, "finetune", FIRST, 0.6)
    write(tmp_path, "ewc", FIRST, 0.6)
    first = [keep_made(tmp_path, "finetune", seed, FIRST) for seed in (1, 2)]
    then = keep_made(tmp_path, "finetune", 3, THEN)
    assert [*Records(tmp_path).runs] == [job.name for job in first]
    assert [missing(tmp_path, job, []) is None for job in (*first, then)] == [True, True, False]
    write(tmp_path, "finetune-2", THEN, 0.5)  # it finds nothing better
    assert [*Records(tmp_path).runs] == [job.name for job in first]
    write(tmp_path, "finetune-2", THEN, 0.7)
    assert [missing(tmp_path, job, []) is None for job in (*first, then)] == [False, False, True]
    assert [is_kept(tmp_path, job) for job in (*first, then)] == [False, False, True]
    records = Records(tmp_path)
    assert [*records.runs] == [job.name for job in first]  # until all seeds are there
    told = told_missing(records)
    assert "- `minilm`; seeds 3 to 5: `finetune`\n" in told
    assert "in no other table: `minilm/finetune-s3`." in told
    assert "lr=1e-06, head_lr=0.01, 70.0 on validation rows instead of 60.0" in told
    assert len(runs(records).splitlines()) == 2 + 3  # every record, with its command
    assert row(searches(records), "`finetune`")[1:3] == ["1, then 1", "lr=1e-06, head_lr=0.01"]
    again = [keep_made(tmp_path, "finetune", seed, THEN) for seed in (1, 2, 3, 4, 5)]
    other = keep_made(tmp_path, "finetune", 1, FIRST, OTHER_ORDERS[0])
    records = Records(tmp_path)
    assert [*records.runs] == [job.name for job in again]
    assert other.name in records.kept
    assert not records.pending
    # what takes its rate of the heads from another has that of the first search
    ewc = chosen_for(tmp_path, MINILM, BY_NAME["ewc"])
    assert ewc is not None
    assert ewc["head_lr"] == FIRST["head_lr"]


def test_tasks_choose_among_the_trials_of_both_searches(tmp_path: Path) -> None:
    write_search(tmp_path, "topk", {1e-3: [0.5, 0.9, 0.1], 3e-3: [0.8, 0.6, 0.4]})
    write_search(tmp_path, "topk-2", {1e-4: [0.8, 0.0, 0.7]})
    cells = row(per_task_choice(Records(tmp_path)), "`topk`")
    assert cells[1:] == ["60.0", "80.0", "lr=0.0001: 1; lr=0.001: 1; lr=0.003: 1"]


def test_an_end_of_the_first_search_may_lie_inside_what_both_tried(tmp_path: Path) -> None:
    write_search(tmp_path, "topk", {1e-3: [0.5] * 3, 3e-3: [0.4] * 3})
    assert row(searches(Records(tmp_path)), "`topk`")[3] == "lr: inside"  # as it was kept
    write_search(tmp_path, "topk-2", {1e-3: [0.1] * 3})  # no rate is lower
    assert row(searches(Records(tmp_path)), "`topk`")[3] == "lr: inside"
    write_search(tmp_path, "topk-2", {1e-4: [0.1] * 3}, head_lr=1.0)  # one is, with other heads
    assert row(searches(Records(tmp_path)), "`topk`")[3] == "lr: inside"
    write_search(tmp_path, "topk-2", {1e-4: [0.1] * 3})
    assert row(searches(Records(tmp_path)), "`topk`")[3] == "yes"


def test_second_searches_are_in_the_plan_but_no_methods() -> None:
    *_, (group, methods) = searched()
    assert (group, [method.name for method in methods]) == (MINILM, ["finetune-2", "topk-2"])
    assert not {method.name for method in methods} & BY_NAME.keys()
    for name, method in SECOND.items():
        assert method.settings == BY_NAME[name].settings
        assert method.searched.keys() == BY_NAME[name].searched.keys()


def test_what_a_run_shared_its_machine_with_is_kept_beside_it(tmp_path: Path) -> None:
    job = keep_made(tmp_path, "majority", 1, {})
    records = Records(tmp_path)
    assert records.at_once(job.name) == AtOnce(runs=24, gpus=2)
    assert records.at_once("minilm/majority-s2") is None
