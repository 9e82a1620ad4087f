"""What methods are called: one name each, the same wherever a person reads it."""

import re
from typing import Any

import pytest

from analysis.figures.along_stream import average
from analysis.figures.forgetting_map import forgetting_map
from analysis.figures.score_against import parameters
from analysis.report.write import render
from analysis.runs.cautions import cautions
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import build_methods
from analysis.runs.names import LONGEST, method_labels, method_names
from analysis.tables.compare import comparison_table
from analysis.tables.paired import choose_method
from stream.errors import UserError
from stream.record.matrix import Cell
from stream.record.method_name import chosen_learner, method_name
from stream.record.run_record import RunRecord
from stream.report.canvas import headline
from tests.analysis.made_runs import record_of, runs_of
from tests.figure_texts import check_readable


def given(learner: str, *overrides: str, **settings: Any) -> RunRecord:
    """A run of that command line."""
    return record_of(learner, overrides=["seed=0", *overrides], config={"learner": settings})


RANPAC = given("prototype", "learner=ranpac", kind="ridge", projection=2000)
PLAIN = given("prototype", "learner=prototype", kind="ncm", projection=0)


@pytest.mark.parametrize(
    ("overrides", "chosen", "named"),
    [
        (None, "prototype", "prototype"),
        ([], "prototype", "prototype"),
        (["learner=ranpac"], "ranpac", "ranpac"),
        (["learner=lora", "learner=ranpac"], "ranpac", "ranpac"),  # of a resumed run
        (["learner=ranpac", "learner.penalty=1"], "ranpac", "ranpac (penalty=1)"),
        (["+learner.penalty=1", "seed=3"], "prototype", "prototype (penalty=1)"),
        (["learner={name: x}", "my_learner=y"], "prototype", "prototype"),
    ],
)
def test_a_run_is_called_as_it_was_typed(
    overrides: list[str] | None, chosen: str, named: str
) -> None:
    record = record_of("prototype", overrides=overrides)
    assert chosen_learner(record) == chosen
    assert method_name(record) == named
    assert headline(record).startswith(f"{named} on ")


def test_presets_keep_their_names_beside_their_learner() -> None:
    other = given("prototype", "learner=ranpac", kind="ridge", projection=500)
    assert method_labels(runs_of(PLAIN, RANPAC)) == ["prototype", "ranpac"]
    labels = ["prototype", "ranpac (projection=2000)", "ranpac (projection=500)"]
    assert method_labels(runs_of(PLAIN, RANPAC, other)) == labels


def test_equal_settings_are_one_method_however_they_were_typed() -> None:
    typed = given("prototype", "learner.kind=ridge", kind="ridge", projection=2000)
    labels = method_labels(runs_of(RANPAC, typed, PLAIN))
    assert labels[0] == labels[1] == "prototype (kind=ridge, projection=2000)"
    assert labels[2] == "prototype (kind=ncm, projection=0)"


def test_a_name_that_stands_for_two_learners_is_not_used() -> None:
    mine = [given("lora", "learner=mine", rank=1), given("adapter", "learner=mine", size=1)]
    assert method_labels(runs_of(*mine)) == ["lora", "adapter"]


def test_only_learners_with_too_long_labels_are_numbered() -> None:
    long = {"a_setting_with_a_long_name": 1, "another_setting_with_a_name": 2}
    records = [
        *(given("ewc", **long), given("ewc", **dict.fromkeys(long, 5))),
        *(given("adapter", size=8), given("adapter", size=64)),
    ]
    names = method_names(runs_of(*records))
    assert list(names.by_label.values()) == [
        *("ewc #1", "ewc #2", "adapter (size=8)", "adapter (size=64)")
    ]
    assert max(map(len, names.by_label.values())) <= LONGEST
    told = "a_setting_with_a_long_name=5, another_setting_with_a_name=5"
    assert names.notes == [f"ewc #2: {told}"]
    assert build_methods(runs_of(*records))[1].full_label == f"ewc #2 ({told})"


def texts_of(runs: list[RecordedRun]) -> dict[str, str]:
    """Everything that says the names of methods, each as one text."""
    table = comparison_table(runs)
    cells = [cell for section in table.sections for row in section for cell in row.names]
    return {
        "table": " ".join(cells),
        "average": " ".join(check_readable(average(runs))),
        "parameters": " ".join(check_readable(parameters(runs))),
        "map": " ".join(check_readable(forgetting_map(runs))),
        "cautions": " ".join(cautions(runs)),
        "report": " ".join(re.findall(r"<bdi>(.*?)</bdi>", render(runs))),
    }


def test_names_are_the_same_in_tables_figures_report_and_cautions() -> None:
    long = {"a_setting_with_a_long_name": 1, "another_setting_with_a_name": 2}
    records = [
        *(RANPAC, PLAIN),
        *(given("ewc", **long), given("ewc", **dict.fromkeys(long, 5))),
        *(given("adapter", size=8), given("adapter", size=64)),
    ]
    for record in records:  # a caution about each
        record.cells[0][0] = Cell(0.9, "0", "measured", 0.0, constant=True)
        record.timing.steps = 8
    runs = runs_of(*records)
    names = [method.label for method in build_methods(runs)]
    for where, text in texts_of(runs).items():
        assert [name for name in names if name not in text] == [], where


def test_against_takes_a_preset() -> None:
    runs = runs_of(PLAIN, RANPAC)
    assert choose_method(runs, "ranpac") == "ranpac"
    other = given("prototype", "learner=ranpac", kind="ridge", projection=500)
    with pytest.raises(UserError, match="ranpac is several methods: ranpac \\(projection=2000\\)"):
        choose_method([*runs, *runs_of(other)], "ranpac")
