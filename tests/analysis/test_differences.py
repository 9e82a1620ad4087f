"""References and paired differences: numbers by hand and by another formula."""

import csv
import itertools
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.runs.collect import RecordedRun
from analysis.runs.comparable import largest_comparable
from analysis.tables.compare import comparison_table
from analysis.tables.paired import choose_method, difference_table, differences
from analysis.tables.references import REFERENCE_METRICS, References
from stream.errors import UserError
from stream.formatting import DASH, MINUS
from stream.record.run_record import RunRecord
from tests.analysis.made_runs import METRICS, record_of, runs_of, write


def scored(learner: str, seed: int, score: float, **changes: Any) -> RecordedRun:
    metrics = METRICS | {"average_score": score, "learning_score": score + 0.1}
    record = record_of(learner, seed, metrics=metrics, **changes)
    return RecordedRun(Path(f"{learner}-{seed}"), record)


# --- differences


def test_differences_are_paired_by_seed() -> None:
    """By hand: replay - finetune is 0.1, 0.3, 0.2 on seeds 1 to 3; seed 4 has no partner.

    The deviation is 0.1; t(0.975, 2) = 4.303 from a table.
    """
    runs = [
        *(scored("finetune", seed, s) for seed, s in ((3, 0.5), (1, 0.3), (2, 0.1), (9, 0.9))),
        *(scored("replay", seed, s) for seed, s in ((1, 0.4), (2, 0.4), (3, 0.7), (4, 0.0))),
    ]
    found = differences(runs, "finetune")["replay"]
    assert found["average_score"].n == 3
    assert found["average_score"].mean == pytest.approx(0.2)
    assert found["learning_score"].mean == pytest.approx(0.2)
    assert found["forgetting"].mean == 0.0
    bounds = (0.2 - 4.303 * 0.1 / 3**0.5, 0.2 + 4.303 * 0.1 / 3**0.5)
    assert found["average_score"].interval == pytest.approx(bounds, abs=1e-4)


def test_few_pairs_have_no_interval_and_the_table_says_why() -> None:
    runs = [
        *(scored("finetune", seed, 0.5) for seed in (1, 2)),
        *(scored("replay", seed, 0.46 + 0.02 * seed) for seed in (1, 2)),
        scored("joint", 2, 0.46),
        scored("frozen", 7, 0.4),
        scored("adapter", 1, 0.9, status="partial"),
    ]
    table = difference_table(runs, "finetune")
    rows = {row.names[0]: (row.names[1], row.values[0]) for row in table.sections[0]}
    assert rows["replay"] == ("2", f"{MINUS}1.0 [{MINUS}13.7, +11.7]")  # t(0.975, 1) = 12.71
    assert rows["joint"] == ("1", f"{MINUS}4.0 [{DASH}]")
    assert rows["frozen"] == rows["adapter"] == ("0", DASH)
    notes = " ".join(table.notes)
    assert "one pair gives no interval" in notes
    assert "95% t interval over the n seeds" in notes
    assert "Each of the 12 intervals holds by itself" in notes
    whole = [scored(learner, seed, 0.5) for learner in ("a", "b") for seed in (1, 2, 3)]
    whole_notes = difference_table(whole, "a").notes
    assert len(whole_notes) == 1


def test_a_method_is_named_by_label_or_learner() -> None:
    sizes = [{"learner": {"size": size}, "training": {"epochs": 3}} for size in (8, 64)]
    runs = [scored("adapter", 0, 0.5, config=config) for config in sizes]
    runs.append(scored("finetune", 0, 0.5))
    assert choose_method(runs, "finetune") == "finetune"
    assert choose_method(runs, "adapter (size=8)") == "adapter (size=8)"
    with pytest.raises(
        UserError, match=r"several methods: adapter \(size=8\), adapter \(size=64\)"
    ):
        choose_method(runs, "adapter")
    with pytest.raises(UserError, match="Did you mean 'finetune'"):
        choose_method(runs, "finetun")


def test_against_prints_and_writes_the_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed, learner in itertools.product((1, 2, 3), ("finetune", "replay")):
        score = 0.5 + 0.01 * seed * (learner == "replay")
        run = scored(learner, seed, score)
        write(tmp_path / "runs" / str(run.path), run.record)
    command = ["compare", str(tmp_path / "runs"), "--against"]
    assert main([*command, "finetune", "--csv", str(tmp_path / "t.csv")]) == 0
    assert f"+2.0 [{MINUS}0.5, +4.5]" in capsys.readouterr().out
    with (tmp_path / "t.differences.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["measure"]: row for row in csv.DictReader(file)}
    assert float(rows["average_score"]["mean"]) == pytest.approx(0.02)
    assert (rows["forgetting"]["pairs"], float(rows["forgetting"]["mean"])) == ("3", 0.0)
    assert main([*command, "bitfit"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1


# --- references

JOINT = [[0.9, None, None], [0.8, 0.9, None], [1.0, 0.8, 0.3]]
ALONE = [[0.9, None, None], [0.9, 0.6, None], [0.9, 0.6, 0.0]]


def joint(seed: int = 0, *, prefix: bool = False, **changes: Any) -> RunRecord:
    config = {"learner": {"prefix": prefix}}
    return record_of("joint", seed, **{"config": config, "matrix": JOINT} | changes)


def values_of(*references: RunRecord, seed: int = 0) -> dict[str, float | None]:
    own = record_of("finetune", seed)
    return References(runs_of(own, *references)).values(own)


def test_gaps_to_references_by_hand() -> None:
    """The run ends at 0.6, 0.75, -0.1, after 0.9, 0.7, -0.1 right after learning."""
    found = values_of(joint(), record_of("independent", matrix=ALONE))
    assert found == {
        "normalized_score": None,  # of records without the majority's scores
        "gap_to_joint": pytest.approx((1.0 + 0.8 + 0.3) / 3 - 1.25 / 3),
        "gap_to_independent": pytest.approx((0.9 + 0.6 + 0.0) / 3 - 1.25 / 3),
        "intransigence": None,
        "intransigence_joint_final": pytest.approx((1.0 - 0.9 + 0.8 - 0.7 + 0.3 + 0.1) / 3),
        "fwt_independent": pytest.approx((0.7 - 0.6 - 0.1 - 0.0) / 2),
    }


def test_the_normalized_score_lies_between_majority_and_independent() -> None:
    """The run ends at 0.6, 0.75, -0.1; the third task has no majority answer and does not count."""
    alone, floor = record_of("independent", matrix=ALONE), [0.5, 0.2, None]
    run = record_of("finetune", majority=floor)
    found = References(runs_of(run, alone)).values(run)["normalized_score"]
    assert found == pytest.approx((0.6 - 0.5 + 0.75 - 0.2) / (0.9 - 0.5 + 0.6 - 0.2))


def test_a_prefix_run_gives_the_exact_intransigence() -> None:
    found = values_of(joint(prefix=True))
    assert found["intransigence"] == pytest.approx((0.9 - 0.9 + 0.9 - 0.7 + 0.3 + 0.1) / 3)
    assert found["intransigence_joint_final"] is None
    assert found["gap_to_joint"] == pytest.approx((2.1 - 1.25) / 3)


def test_references_are_joined_by_seed_and_backbone_and_must_be_complete() -> None:
    nothing = dict.fromkeys(REFERENCE_METRICS)
    assert values_of(joint(seed=1)) == nothing
    assert values_of(joint(backbone="bert_base")) == nothing
    partial = joint(status="partial", matrix=[JOINT[0], [None] * 3, [None] * 3])
    assert values_of(partial) == nothing
    notes = comparison_table(runs_of(record_of(), partial)).notes
    assert "no reference, since it is not complete: 1" in notes


def test_a_second_reference_method_is_named_and_not_used() -> None:
    first, second = (
        record_of(
            "independent", matrix=ALONE, config={"learner": {"lr": lr}, "training": {"epochs": 3}}
        )
        for lr in (1e-5, 5e-5)
    )
    references = References(runs_of(record_of(), first, second))
    assert references.notes == [
        "no reference, since independent (lr=1e-05) comes first: independent (lr=5e-05)"
    ]
    assert references.independent["minilm", 0] is first


def test_the_table_has_columns_for_the_references_that_there_are() -> None:
    runs = runs_of(record_of(), record_of("independent", matrix=ALONE))
    runs, _ = largest_comparable(runs)
    table = comparison_table(runs)
    names = [name.replace("\n", " ") for name in table.header]
    assert "gap to independent %" in names
    assert not any("joint" in name for name in names)
    own, reference = (section[0].cells for section in table.sections)
    column = names.index("gap to independent %")
    assert own[column] == "8.3"
    assert reference[column] == DASH
