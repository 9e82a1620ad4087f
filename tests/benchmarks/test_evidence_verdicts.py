"""Verdicts: each rule of docs/protocol.md, with records and differences that are made up."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.evidence import comparisons as c
from benchmarks.evidence.methods import BY_NAME
from benchmarks.evidence.plan import GROUPS, MINILM, MORE_SEEDS, MPNET, SEEDS, Group, Job
from benchmarks.evidence.quantities import IN_ORDERS
from benchmarks.evidence.records import Records
from benchmarks.evidence.statistics import Effect
from benchmarks.evidence.verdicts import CLAIMS, Evidence, Judged
from stream.record.run_record import RunRecord
from tests.benchmarks.made_evidence import made_run

ROOT = Path(__file__).parent.parent.parent
MEMORY, PER_TASK, ONE_SETTING, PARAMETERS, FORGETS, ISOLATION, REPLAY, REMEDIES, *_ = CLAIMS
*_, ORDERS, PARTS, FAILS = CLAIMS


def judge(claim: str, evidence: Evidence) -> str:
    return Judged(claim, tuple(CLAIMS[claim](evidence))).verdict


def found(mean: float, half_width: float, p: float = 0.001) -> c.Found:
    """A difference with this interval, in points."""
    effect = Effect.of(np.random.default_rng(0).normal(size=(3, 3)))
    scaled = {**effect.__dict__, "mean": mean / 100, "half_width": half_width / 100}
    return c.Found(Effect(**scaled), p)


def records(runs: dict[str, RunRecord], out: Path = Path("none")) -> Records:
    made = Records(out)
    made.runs = runs
    return made


def made(
    *names: str, seeds: tuple[int, ...] = SEEDS, group: Group = MINILM
) -> dict[str, RunRecord]:
    """Made-up runs in the given order, of methods by name."""
    wanted = [Job(group, BY_NAME[name], seed) for name in names for seed in seeds]
    return {job.name: made_run(job) for job in wanted}


def with_compared(compared: dict[c.Comparison, c.Found]) -> Evidence:
    return Evidence(records({}), compared)


def test_the_claims_are_those_of_the_protocol() -> None:
    text = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    section = text.partition("\n## Claims")[2].partition("\n## ")[0]
    lines = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    assert lines[1:] == list(CLAIMS)


@pytest.mark.parametrize(
    ("claim", "comparison", "points"),
    [(PER_TASK, c.PER_TASK, 0.4), (ONE_SETTING, c.ONE_SETTING, 0.8)],
)
def test_a_difference_may_lie_so_far_below(
    claim: str, comparison: c.Comparison, points: float
) -> None:
    def verdict(mean: float) -> str:
        return judge(claim, with_compared({comparison: found(mean, 0.3)}))

    assert verdict(-points + 0.31) == "agrees"
    assert verdict(-points + 0.29) == "open"
    assert verdict(-points - 0.29) == "open"
    assert verdict(-points - 0.31) == "contradicted"
    assert judge(claim, with_compared({})) == "open"


def test_fine_tuning_forgets_and_ends_lower() -> None:
    def verdict(forgets: tuple[float, float], ends: tuple[float, float]) -> str:
        both = {c.FORGETS: found(*forgets), c.BELOW_ADAPTERS: found(*ends)}
        return judge(FORGETS, with_compared(both))

    assert verdict((5, 4), (-4, 3)) == "agrees"
    assert verdict((5, 6), (-4, 3)) == "open"
    assert verdict((-5, 4), (-4, 3)) == "contradicted"
    assert verdict((5, 4), (-4, 3.5)) == "agrees"  # the interval only ends within 0.8 points
    assert verdict((5, 4), (0, 0.7)) == "contradicted"  # within 0.8 points of adapters


def test_shared_adapters_forget() -> None:
    def verdict(mean: float, half_width: float, p: float) -> str:
        return judge(ISOLATION, with_compared({c.SHARED_FORGETS: found(mean, half_width, p)}))

    assert verdict(5, 4, 0.04) == "agrees"
    assert verdict(5, 4, 0.06) == "open"  # after the correction
    assert verdict(-5, 4, 0.04) == "contradicted"


def test_directions_hold_after_the_correction() -> None:
    def verdict(less: c.Found, higher: c.Found) -> str:
        compared = {c.REPLAY_FORGETS: less, c.REMEDIES["replay"]: higher}
        return judge(REPLAY, with_compared(compared))

    assert verdict(found(-3, 1), found(3, 1)) == "agrees"
    assert verdict(found(-3, 1, 0.05), found(3, 1)) == "open"
    assert verdict(found(-3, 1), found(-3, 1)) == "contradicted"
    one = {c.REMEDIES["lwf"]: found(3, 1)}
    assert judge(REMEDIES, with_compared(one)) == "open"
    assert judge(REMEDIES, with_compared({**one, c.REMEDIES["ewc"]: found(2, 1)})) == "agrees"
    worse = {part: found(-3, 1) for part in c.PARTS.values()}
    assert judge(PARTS, with_compared(worse)) == "agrees"
    worse[c.PARTS["topk"]] = found(3, 1)
    assert judge(PARTS, with_compared(worse)) == "contradicted"


def test_one_run_that_forgets_contradicts_a_perfect_memory() -> None:
    runs = made("adapter", "adapter_per_task", "finetune", seeds=(1, 2))
    assert judge(MEMORY, with_runs(runs)) == "agrees"
    runs["minilm/adapter_per_task-s2"].metrics["forgetting"] = 1e-9
    assert judge(MEMORY, with_runs(runs)) == "contradicted"
    runs = made("adapter", seeds=(1, 2))
    runs["minilm/adapter-s2"].memory.tasks_identical = 24
    assert judge(MEMORY, with_runs(runs)) == "contradicted"
    runs = made("adapter", seeds=(1, 2))
    runs["minilm/adapter-s2"].cells[3][3] = runs["minilm/adapter-s2"].cells[4][4]  # other logits
    assert judge(MEMORY, with_runs(runs)) == "contradicted"


def with_runs(runs: dict[str, RunRecord]) -> Evidence:
    return Evidence(records(runs), {})


def test_few_parameters_are_counted() -> None:
    runs = made("adapter")
    assert judge(PARAMETERS, with_runs(runs)) == "agrees"  # 3% and 1.78
    runs["minilm/adapter-s1"].ledger.total_multiple = 2.0
    assert judge(PARAMETERS, with_runs(runs)) == "contradicted"


def test_a_task_fails_at_its_majority_answer_where_whole_models_learn_it() -> None:
    seeds = (*SEEDS, *MORE_SEEDS)
    runs = {**made("adapter", seeds=seeds), **made("independent")}
    assert judge(FAILS, with_runs(runs)) == "open"  # without the other encoder
    runs |= made("adapter", "independent", group=MPNET)
    assert judge(FAILS, with_runs(runs)) == "agrees"
    other = runs["mpnet/adapter-s2"]
    learned, other.matrix[-1][6] = other.matrix[-1][6], (other.majority or [])[6]
    assert judge(FAILS, with_runs(runs)) == "contradicted"
    other.matrix[-1][6] = learned
    del runs["minilm/adapter-s10"]
    assert judge(FAILS, with_runs(runs)) == "open"
    failing = runs["minilm/adapter-s7"]
    assert failing.majority is not None
    failing.matrix[-1][4] = (failing.majority[4] or 0.0) + 0.009
    assert judge(FAILS, with_runs(runs)) == "contradicted"
    for seed in SEEDS:  # not where whole models do not learn it either
        whole = runs[f"minilm/independent-s{seed}"]
        whole.matrix[-1][4] = (failing.majority[4] or 0.0) + 0.04
    assert judge(FAILS, with_runs(runs)) == "open"


def test_orders_change_shared_encoders_alone() -> None:
    names = ("adapter", "finetune", "replay", "ewc", "lwf", "shared_adapter")
    runs = made(*names)
    for group in GROUPS:
        if group.name in IN_ORDERS[1:]:
            jobs = [Job(group, BY_NAME[name], 1) for name in names]
            runs |= {job.name: made_run(job) for job in jobs}
    for number, (name, run) in enumerate(runs.items()):
        in_other_order = not name.startswith("minilm/")
        run.metrics["average_score"] = 0.5 + 0.01 * number * in_other_order
    assert judge(ORDERS, with_runs(runs)) == "agrees"
    runs["minilm/ewc-s2"].metrics["average_score"] = 2.0  # seeds change it more
    assert judge(ORDERS, with_runs(runs)) == "open"
    last = runs["minilm-random3/adapter-s1"].cells[-1]
    last[0], last[1] = last[1], last[0]
    assert judge(ORDERS, with_runs(runs)) == "contradicted"


def test_what_is_missing_counts_in_the_correction() -> None:
    runs = records(made("finetune", "replay"))
    compared = c.compared(runs)
    assert set(compared) == {c.FORGETS, c.REPLAY_FORGETS, c.REMEDIES["replay"]}
    smallest = min(found.effect.p for found in compared.values())
    assert min(found.p for found in compared.values()) == pytest.approx(12 * smallest)
