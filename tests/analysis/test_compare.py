"""Analysis: what it finds, what it refuses to compare, and the numbers that it shows."""

import csv
import io
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import stdev
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from analysis.__main__ import main
from analysis.runs.collect import RecordedRun, collect
from analysis.runs.comparable import (
    IncomparableRunsError,
    check_comparable,
    largest_comparable,
)
from analysis.runs.memory import memory_text
from analysis.runs.names import method_labels, variant_labels
from analysis.runs.values import relative_steps
from analysis.tables.compare import comparison_table
from analysis.tables.text_table import Row, TextTable, latex, markdown, rich_table, show
from stream.errors import UserError
from stream.formatting import DASH, MINUS, TIMES
from stream.record.matrix import Cell
from stream.record.parts import TaskTimes, TimingRecord
from stream.record.run_record import RunRecord
from tests.analysis.made_runs import (
    MATRIX,
    METRICS,
    ORDER,
    data_of,
    ledger_of,
    ledger_row,
    memory_of,
    record_of,
    runs_of,
    values_of,
    write,
    write_broken,
)


def table_of(*records: RunRecord) -> TextTable:
    return comparison_table(runs_of(*records))


def shown(*records: RunRecord) -> list[list[str]]:
    """The cells of the comparison table, without its title."""
    table = rich_table(table_of(*records))
    return [
        [str(cell) for cell in row] for row in zip(*(c.cells for c in table.columns), strict=True)
    ]


# --- finding and reading runs

LEDGER = values_of(record_of())["ledger"]
POINT = {"task": 0, "step": 1, "scores": [0.5]}
PROBE = {"every": 2, "rows": 8, "seconds": 0.1, "points": [POINT]}


def test_runs_are_found_in_folders_of_runs_once_each(tmp_path: Path) -> None:
    deep = write(tmp_path / "sweep" / "1", record_of(seed=1))
    write(tmp_path / "sweep" / "0", record_of(seed=0))
    write(deep / "checkpoint", record_of(seed=9))  # a copy inside a run is no run
    runs, problems = collect([tmp_path, deep, deep / "results.json"])
    assert [run.record.seed for run in runs] == [0, 1]
    assert runs[1].path == deep
    assert problems == []


@pytest.mark.parametrize(
    ("content", "concerns"),
    [
        ("{", "malformed|truncated"),
        ("", "malformed|truncated"),
        ('{"schema": 1, "config": {"a": ' + "[" * 100_000, "recursion"),
        ("[1, 2]", "object"),
        ('{"accuracy": 1}', "schema"),
        (values_of(record_of(), schema=3), "schema 3"),
        (values_of(record_of(), ledger=None), "ledger"),
        (values_of(record_of(), metrics={"average_score": 0.5}), "learning_score"),
        (values_of(record_of(), matrix=[[0.5]]), "matrix"),
        (values_of(record_of(), matrix=[[0.5]] * 3), "3 x 3"),
        (values_of(record_of(), order=[], titles=[], metric_names=[], matrix=[], cells=[]), "task"),
        (values_of(record_of(), matrix=[[0.5, "x", None]] * 3), "float"),
        (values_of(record_of(), matrix=[[True, None, None]] * 3), "bool"),
        (values_of(record_of(), matrix=[[float("nan")] * 3] * 3), "malformed"),
        (values_of(record_of(), titles=["SST-2"]), "titles"),
        (values_of(record_of(), ledger=LEDGER | {"base_parameters": 0}), "parameter"),
        (values_of(record_of(), ledger=LEDGER | {"tasks": [{}]}), "ledger.tasks"),
        (values_of(record_of(), losses={"cola": [None]}), "losses"),
        (values_of(record_of(), probe=PROBE | {"points": [POINT | {"scores": []}]}), "probe"),
    ],
)
def test_broken_and_foreign_files_are_named_with_the_reason(
    tmp_path: Path, content: Any, concerns: str
) -> None:
    good, bad = write(tmp_path / "good", record_of()), write_broken(tmp_path / "bad", content)
    runs, problems = collect([bad, good])
    assert [run.path for run in runs] == [good]
    assert len(problems) == 1
    assert str(bad / "results.json") in problems[0]
    assert re.search(concerns, problems[0])
    assert "\n" not in problems[0]


def test_the_line_about_a_broken_record_says_where_and_what(tmp_path: Path) -> None:
    values = values_of(record_of(), matrix=[[0.5, "x", None]] * 3)
    file = write_broken(tmp_path, values) / "results.json"
    _, problems = collect([tmp_path])
    reason = "Expected `float | null`, got `str` - at `$.matrix[0][1]`"
    assert problems == [f"{file} is no record of a run: {reason}"]


def test_empty_and_missing_folders_exit_with_2_and_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["compare", str(tmp_path / "empty"), str(tmp_path / "missing")]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        f"compare: {tmp_path / 'empty'}: no results.json in or below it",
        f"compare: {tmp_path / 'missing'}: no such folder",
        "error: no usable run",
    ]


def test_a_run_that_is_not_there_is_named_without_the_number_of_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        RunRecord.read(tmp_path / "nothing")
    assert str(raised.value) == f"no run at {tmp_path / 'nothing'}: no such file or directory"


def test_a_broken_run_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_broken(tmp_path / "a", "{")
    write(tmp_path / "b", record_of("replay"))
    assert main(["compare", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "replay" in output.out
    assert len(output.err.splitlines()) == 1


# --- the table


def test_table_shows_the_numbers_computed_by_hand() -> None:
    (row,) = shown(record_of())
    assert row == [
        *("finetune", "0", "3"),
        *("41.7", "50.0", f"{MINUS}12.5", "12.5"),
        *("2.00", "1.30", "72", "1 of 2"),
    ]


def test_undefined_is_a_dash_and_never_zero() -> None:
    single = record_of(
        order=["sst2"],
        titles=["SST-2"],
        metric_names=["accuracy"],
        matrix=[[0.9]],
        metrics={"average_score": 0.9, "learning_score": 0.9, "bwt": None, "forgetting": None},
        memory=memory_of(promised=True, checked=0, identical=0),
    )
    (row,) = shown(single)
    assert row[3:7] == ["90.0", "90.0", DASH, DASH]
    assert row[-1] == "nothing to forget: one task"


def scored(seed: int, score: float, learner: str = "finetune", **changes: Any) -> RunRecord:
    return record_of(learner, seed, metrics=METRICS | {"average_score": score}, **changes)


def test_mean_and_interval_over_seeds() -> None:
    scores = [0.4, 0.5, 0.9]
    table = table_of(*(scored(seed, score) for seed, score in enumerate(scores)), scored(0, 0.1))
    assert table.header == ["learner", "seed", "average\nscore %"]
    rows = [row.cells for section in table.sections for row in section]
    half_width = 4.3027 * stdev(scores) / 3**0.5  # t(0.975, 2) from a table
    assert rows[-1] == ["mean ± 95% t interval", "n=3", f"60.0±{100 * half_width:.1f}"]
    assert "mean ± half of the 95% t interval" in table.notes[0]
    notes = table_of(*(scored(seed, 0.1 * seed) for seed in (1, 2)), scored(1, 0.1, "replay")).notes
    assert "One seed, no interval: replay." in notes


def test_only_means_has_a_line_a_method() -> None:
    """The same numbers as in the lines of means; a single run is its own."""
    runs = runs_of(*(scored(seed, 0.1 * seed) for seed in (1, 2, 3)), scored(1, 0.4, "replay"))
    whole, short = comparison_table(runs), comparison_table(runs, only_means=True)
    assert short.header[:2] == ["learner", "seeds"]
    rows = [dict(zip(short.header, row.cells, strict=True)) for row in short.sections[0]]
    (mean,) = (row for section in whole.sections for row in section if row.is_mean)
    means = dict(zip(whole.header, mean.cells, strict=True))
    assert rows[0]["average\nscore %"] == means["average\nscore %"] == "20.0±24.8"
    assert (rows[0]["seeds"], rows[1]["seeds"]) == ("3", "1")
    assert (rows[1]["learner"], rows[1]["average\nscore %"]) == ("replay", "40.0")
    assert short.notes == whole.notes
    partial = record_of("lora", status="partial", matrix=[MATRIX[0], [None] * 3, [None] * 3])
    table = comparison_table(runs_of(scored(1, 0.4), partial), only_means=True)
    assert [row.names for row in table.sections[0]] == [["finetune", "3"], ["lora", "1/3"]]


def test_failed_trainings_are_named_with_their_seeds() -> None:
    runs = [scored(seed, 0.1 * seed) for seed in (1, 2, 3)]
    for run, places in zip(runs, ([2], [], [0, 2]), strict=True):
        for place in places:
            cell = Cell(0.0, "0", "measured", 0.0, constant=True)
            run.cells[place] = [cell if on == place else None for on in range(3)]
        run.timing.steps = 8
    notes = table_of(*runs).notes
    told = "finetune: training may have failed, all texts of a task got one answer: "
    assert f"{told}CoLA (seeds 1, 3), SST-2 (seed 3)" in notes
    for run in runs:
        run.timing.steps = 0  # nothing was trained
    assert not any("may have failed" in note for note in table_of(*runs).notes)


def test_what_all_runs_share_stands_above_the_table() -> None:
    table = table_of(scored(4, 0.4), scored(4, 0.4, "replay"))
    assert table.header == ["learner", "average\nscore %"]
    shared = f"BWT % {MINUS}12.5, forgetting % 12.5, trained %/task 2.00, total {TIMES} base 1.30"
    start = "The same in all runs: seed 4, tasks 3, learning score % 50.0, "
    assert table.above == [f"{start}{shared}, time s 72, memory 1 of 2."]
    assert table_of(scored(4, 0.4)).above == ()  # one run: nothing to tell apart


def test_the_majority_answer_is_the_last_line() -> None:
    """It is no run, so it neither hides a column nor shows one."""
    runs = [scored(4, 0.4, majority=[0.5, 0.2, 0.0]), scored(4, 0.5, "replay")]
    table = table_of(*runs)
    assert table.header == ["learner", "average\nscore %"]
    assert table.sections[-1][0].cells == ["majority answer", "23.3"]
    floor = scored(4, 0.2, "majority", majority=[0.5, 0.2, 0.0])
    assert "majority answer" not in str(table_of(runs[0], floor).sections)
    lacking = scored(4, 0.4, majority=[0.5, None, 0.0])  # a span task has none
    assert "majority answer" not in str(table_of(lacking).sections)


TIMED = TimingRecord(train_s=61.5, evaluate_s=12.25)


@pytest.mark.parametrize(
    ("other", "caution"),
    [
        (scored(0, 0.4), "not in a mean, a copy: 1 (counted: 0)"),
        (scored(0, 0.5, timing=TIMED), "not in a mean, seed 0 again: 1 (counted: 0)"),
        (scored(3, 0.4, status="partial"), "not in a mean, 3 of 3 tasks learned: 1"),
        (
            scored(1, 0.4, versions={"torch": "2.13.0"}),
            "runs differ in torch: 2.11.0 (1 run), 2.13.0 (1 run)",
        ),
        (
            scored(1, 0.4, versions={}),
            "runs differ in torch: 2.11.0 (1 run), not recorded (1 run)",
        ),
        (scored(1, 0.4, device="cuda"), "runs differ in device: cpu (1 run), cuda (1 run)"),
    ],
)
def test_nothing_is_averaged_silently(other: RunRecord, caution: str) -> None:
    """Each is said under the table, and unfinished or repeated runs are in no mean."""
    versions = other.versions or {"torch": "2.11.0"}
    first = scored(0, 0.4, versions={"torch": "2.11.0"})
    if "torch" not in caution:
        other = msgspec.structs.replace(other, versions=versions)
    table = table_of(first, other)
    assert caution in table.notes
    is_averaged = any(row.is_mean for section in table.sections for row in section)
    assert is_averaged == caution.startswith("runs differ")


def test_partial_runs_and_repeated_seeds_stay_out_of_the_mean() -> None:
    partial = record_of(seed=3, status="partial", matrix=[MATRIX[0], [None] * 3, [None] * 3])
    table = table_of(record_of(seed=0), record_of(seed=0), record_of(seed=1), partial)
    rows = [row.names for section in table.sections for row in section]
    assert [row[1] for row in rows] == ["0", "0", "1", "3", "n=2"]
    assert rows[3][2] == "1/3"
    (only,) = table_of(partial).notes
    assert only == "unfinished, 1 of 3 tasks learned: 0"


def test_runs_with_different_settings_are_different_methods() -> None:
    def labels(*records: RunRecord) -> list[str]:
        return method_labels(runs_of(*records))

    small, large = ({"learner": {"size": s}, "training": {"epochs": 3}} for s in (8, 64))
    longer = {"learner": {"size": 8}, "training": {"epochs": 9}}
    assert labels(record_of("adapter", config=small), record_of("finetune")) == [
        "adapter",
        "finetune",
    ]
    assert labels(
        record_of("adapter", config=small), record_of("adapter", seed=1, config=large)
    ) == ["adapter (size=8)", "adapter (size=64)"]
    assert labels(record_of("adapter", config=small), record_of("finetune", config=longer)) == [
        "adapter (training.epochs=3)",
        "finetune (training.epochs=9)",
    ]
    assert labels(record_of("adapter"), record_of("adapter", backbone="bert_base")) == [
        "adapter (backbone=minilm)",
        "adapter (backbone=bert_base)",
    ]
    chosen = small | {"select": {"lr": [0.1, 0.2], "restarts": 2}}
    assert labels(*(record_of("adapter", config=c) for c in (small, small | {"select": None}))) == [
        "adapter",
        "adapter",
    ]
    assert labels(*(record_of("adapter", config=c) for c in (small, chosen))) == [
        "adapter (select=none)",
        "adapter (select={lr: [0.1, 0.2], restarts: 2})",
    ]


def test_a_broken_promise_of_memory_is_loud() -> None:
    assert shown(record_of(memory=memory_of(promised=True)))[0][-1] == "1 of 2 BROKEN"
    assert shown(record_of(memory=memory_of(promised=True, identical=2)))[0][-1] == "2 of 2"


def test_memory_over_seeds_is_least_to_most_and_not_a_sum() -> None:
    def memory(*identical: int) -> str:
        return memory_text([record_of(memory=memory_of(identical=n)) for n in identical])

    assert [memory(2, 2, 2), memory(2, 0, 1)] == ["2 of 2", "0 to 2 of 2"]


def test_generated_data_are_named_in_title_and_lines() -> None:
    assert "generated data" in table_of(record_of()).title
    real = table_of(record_of(source="files", split="validation")).title
    assert "generated" not in real
    assert "data: files" in real
    assert "validation scores" in real


def test_variants_are_named_by_what_most_runs_do_not_have() -> None:
    """Eight variants of one setting each would have eight settings in every label."""

    def config(**changes: Any) -> dict[str, Any]:
        return {"learner": {"form": "sequential", "depth": 1, "norm": "none"} | changes}

    configs = [config(), config(form="parallel"), config(depth=2), config(norm="layer")]
    runs = runs_of(*(record_of("adapter", config=c) for c in configs))
    expected = ["adapter", *(f"adapter ({s})" for s in ("form=parallel", "depth=2", "norm=layer"))]
    assert variant_labels(runs) == expected
    assert len(set(method_labels(runs))) == 4
    assert (
        method_labels(runs, ignore=["learner.form", "learner.depth", "learner.norm"])
        == ["adapter"] * 4
    )


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"stream": "glue"}, "stream: custom and glue"),
        ({"source": "files"}, "source: generated and files"),
        ({"split": "validation"}, "split: test and validation"),
        ({"order": [ORDER[0], ORDER[2], ORDER[1]]}, f"order: task 2 is {ORDER[1]} and cola"),
        ({"data": data_of("b" * 64)}, "data hash: aaaaaaaaaaaa and bbbbbbbbbbbb"),
    ],
)
def test_runs_of_other_streams_are_named_and_the_first_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], difference: str
) -> None:
    one = write(tmp_path / "one", record_of())
    other = write(tmp_path / "other", record_of("replay", **change))
    table = tmp_path / "table.csv"
    assert main(["compare", str(one), str(other), "--csv", str(table)]) == 1
    output = capsys.readouterr()
    assert "finetune" in output.out
    assert "replay" not in output.out
    (line,) = output.err.splitlines()
    assert line.endswith(difference)
    assert str(one) in line
    assert str(other) in line
    assert len(table.read_text().splitlines()) == 2


def test_the_largest_group_is_compared_even_where_it_does_not_come_first() -> None:
    other = record_of(order=[ORDER[0], ORDER[2], ORDER[1]])
    runs = runs_of(record_of(), other, other)
    largest, lines = largest_comparable(runs)
    assert [run.path for run in largest] == [Path("1"), Path("2")]
    assert lines == [
        f"left out: 0: not the stream of 1, order: task 2 is cola and {ORDER[1]}",
    ]
    assert largest_comparable(runs, any_order=True) == (runs, [])
    others = [RecordedRun(Path("3"), record_of(order=other.order, data=data_of("b" * 64)))]
    largest, lines = largest_comparable([*runs, *others], any_order=True)
    assert len(largest) == 3
    assert lines == ["left out: 3: not the stream of 0, data hash: aaaaaaaaaaaa and bbbbbbbbbbbb"]


def drawn(seed: int, draw: int, **held_out: str) -> RunRecord:
    """A run whose training rows were drawn; those of validation and test are the same."""
    digests = {"train": f"{draw:064}", "validation": "c" * 64, "test": "d" * 64} | held_out
    record = record_of(seed=seed)
    record.data = data_of(f"{draw:064}")
    record.data.hashes = dict.fromkeys(ORDER, digests)
    record.config = {**record.config, "limits": {"train": 100, "seed": draw}}
    return record


def test_each_seed_may_draw_training_rows_of_its_own() -> None:
    runs = runs_of(drawn(1, 1), drawn(2, 2), drawn(1, 1), drawn(2, 2))
    assert largest_comparable(runs) == (runs, [])
    check_comparable(runs)
    other = drawn(4, 4)
    other.config["limits"]["train"] = 200
    found = {
        "the same seed has other rows": drawn(2, 3),
        "other rows to score": drawn(3, 3, test="e" * 64),
        "more rows": other,
        "other data, not another draw": drawn(4, 1),
    }
    found["other data, not another draw"].data.hash = "f" * 64
    for run in found.values():
        largest, lines = largest_comparable(runs_of(*(r.record for r in runs), run))
        assert (len(largest), len(lines)) == (4, 1)
        assert "data hash" in lines[0]
        with pytest.raises(IncomparableRunsError):
            check_comparable(runs_of(*(r.record for r in runs), run))


def mixed(number: int) -> RunRecord:
    """A run that differs from others of its kind in 30 settings."""
    settings = {f"a_setting_with_a_name_{n}": f"{number}.{n}" for n in range(30)}
    config = {"learner": settings, "training": {"epochs": number}}
    return scored(number % 3, 0.1 * number, "adapter", config=config)


@pytest.mark.parametrize("columns", [None, 300])
def test_mixed_runs_fit_100_columns_where_there_is_no_terminal(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int | None,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    for number in range(5):
        write(tmp_path / f"{number}", mixed(number))
    write(tmp_path / "joint", scored(1, 0.9, "joint"))
    assert main(["compare", str(tmp_path), "--against", "adapter #2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= (columns or 100)
    assert any(line.split()[:2] == ["adapter", "#5"] for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "adapter #5: a_setting_with_a_name_0=4.0, " in text
    assert re.search(r", and \d+ more \(--json has all\)", text)
    assert main(["compare", str(tmp_path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    settings = {k: v for m in values["methods"][:5] for k, v in m["settings"].items()}
    assert settings["learner.a_setting_with_a_name_29"] == "4.29"


@pytest.mark.parametrize("width", [80, 200])
def test_narrow_screens_get_the_table_in_two_parts_with_nothing_cut(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr("analysis.tables.text_table.Console", lambda: console)
    bwt = {"bwt": None}
    runs = [scored(seed, 0.1, "a" * 36, device=f"cuda:{seed}") for seed in range(3)]
    runs += [record_of("b" * 36, seed, metrics=METRICS | bwt) for seed in range(3)]
    runs += [scored(9, 0.1, "joint", timing=TIMED, ledger=ledger_of(ledger_row(2)))]
    show(table_of(*runs))
    text = screen.getvalue()
    assert text.count("mean ± 95% t interval") == (4 if width == 80 else 2)
    assert all(len(line) <= width for line in text.splitlines())
    assert f"{MINUS}12.5±0.0" in text
    assert "1.30±0.00" in text
    assert "…" not in text


def test_csv_holds_fractions_and_leaves_undefined_empty(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", record_of(metrics=METRICS | {"bwt": None}))
    target = tmp_path / "new" / "table.csv"
    assert main(["compare", str(folder), "--csv", str(target)]) == 0
    with target.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["average_score"]) == METRICS["average_score"]
    assert float(row["trained_fraction"]) == pytest.approx(0.02)
    assert row["bwt"] == ""
    assert row["gap_to_joint"] == row["fwt_independent"] == ""
    assert (row["source"], row["run"], row["tasks_learned"]) == ("generated", str(folder), "3")
    assert [path.name for path in target.parent.iterdir()] == ["table.csv"]


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "run", record_of())
    assert main(["compare", str(folder), "--csv", str(folder / "results.json" / "x.csv")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- Markdown and LaTeX

HOSTILE = r"""a|b *c* _d_ `e` <b>f</b> [g](h) \i &amp; ~~j~~ $k$ 50% #1 {x}^2 "q" ~"""


def cells_of_markdown(text: str) -> list[list[str]]:
    """The cells as a CommonMark parser with tables reads them, formatting dropped."""
    rows: list[list[str]] = []
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    for before, token in itertools.pairwise(tokens):
        if before.type == "tr_open":
            rows.append([])
        if before.type in ("th_open", "td_open"):
            kinds = {"text", "strong_open", "strong_close", "text_special"}
            assert {child.type for child in token.children or []} <= kinds
            rows[-1].append("".join(child.content for child in token.children or []))
    return rows


def test_markdown_shows_hostile_names_as_they_are() -> None:
    rows = [Row([HOSTILE, "1"], ["60.0"]), Row(["mean", "n=2"], ["60.0±1.0"], is_mean=True)]
    table = TextTable(HOSTILE, ["learner", "seed", "average\nscore %"], 2, [rows], [HOSTILE])
    assert cells_of_markdown(markdown(table)) == [
        ["learner", "seed", "average score %"],
        [HOSTILE, "1", "60.0"],
        ["mean", "n=2", "60.0±1.0"],
    ]
    assert r"\$k\$" in markdown(table)  # GitHub would set it as a formula


def test_latex_shows_hostile_names_as_they_are() -> None:
    table = TextTable(HOSTILE, ["a", "b"], 1, [[Row([HOSTILE], [f"{MINUS}1{DASH}{TIMES}±"])]])
    lines = latex(table).splitlines()
    (row,) = [line for line in lines if "$-$" in line]
    assert row == (
        r"a\textbar{}b *c* \_d\_ `e` \textless{}b\textgreater{}f\textless{}/b\textgreater{} "
        r"{[}g{]}(h) \textbackslash{}i \&amp; \textasciitilde{}\textasciitilde{}j"
        r"\textasciitilde{}\textasciitilde{} \$k\$ 50\% \#1 \{x\}\textasciicircum{}2 "
        r"\textquotedbl{}q\textquotedbl{} \textasciitilde{} & $-$1--$\times$$\pm$ \\"
    )
    assert lines[2].startswith(r"\caption{a\textbar{}b")
    assert r"\begin{tabular}{lr}" in lines
    body = "\n".join(lines)
    assert all(
        body.count(rf"\begin{{{e}}}") == body.count(rf"\end{{{e}}}") for e in ("table", "tabular")
    )


def test_compare_writes_what_it_prints_as_markdown_and_latex(tmp_path: Path) -> None:
    for number, record in enumerate((scored(0, 0.1), scored(1, 0.2), scored(0, 0.3, "replay"))):
        write(tmp_path / "runs" / str(number), record)
    files = [tmp_path / "new" / f"table.{kind}" for kind in ("md", "tex")]
    options = [f"--{name}={file}" for name, file in zip(("markdown", "latex"), files, strict=True)]
    assert main(["compare", str(tmp_path / "runs"), *options]) == 0
    runs, _ = collect([tmp_path / "runs"])
    expected = [row.cells for section in comparison_table(runs).sections for row in section]
    head, *rows = cells_of_markdown(files[0].read_text(encoding="utf-8"))
    assert rows == expected
    assert head == ["learner", "seed", "average score %"]
    assert files[1].read_text(encoding="utf-8").count(r"\\") == 1 + len(expected)


# --- the command line


def test_help_names_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["compare", "--help"], ["figures", "--help"]):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 0
    text = capsys.readouterr().out
    words = (
        "compare",
        "figures",
        "layer-ranges",
        "spans",
        "RUN",
        "--csv FILE",
        "--out DIR",
        "--against METHOD",
    )
    assert all(word in text for word in (*words, "--latex FILE", "--x SETTING", "exit code: 0 all"))


def test_analysis_loads_without_torch_transformers_or_hydra() -> None:
    code = (
        "import analysis.__main__, sys; "
        "print(sorted({'torch', 'transformers', 'hydra', 'omegaconf', 'wandb'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["compare", "figures", "report", "layer-ranges"])
def test_whatever_goes_wrong_in_a_command_is_one_line_and_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """A file where a folder is needed, and a record of a run that left no weights."""
    record = record_of(config={"learner": {"lr": 1}, "task": 3})
    folder = write(tmp_path / "run", record)
    (tmp_path / "taken").write_text("a file where a folder is needed")
    options = {
        "compare": ["--csv", str(tmp_path / "taken" / "x.csv")],
        "figures": ["--out", str(tmp_path / "taken"), "--only", "average"],
        "report": ["--out", str(tmp_path / "taken" / "x.html")],
        "layer-ranges": ["task=cola"],
    }[command]
    assert main([command, str(folder), *options]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("name", ["layer-ranges", "spans"])
def test_a_command_without_a_list_of_runs_ends_in_one_line_and_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = write(tmp_path / "run", record_of())
    assert main([name, str(folder), "tasks=cola"]) == 2
    assert capsys.readouterr().err == "error: expected task=NAME, got 'tasks=cola'\n"


# --- steps


def stepped(learner: str, *steps: int, **changes: Any) -> RunRecord:
    """A run on tasks of 200, 20 and 10 rows, which the plain schedule gives 21, 8 and 8 steps."""
    training = {"epochs": 3, "min_steps": 8, "batch_size": 32}
    rows = {name: {"train": n} for name, n in zip(ORDER, (200, 20, 10), strict=True)}
    config = values_of(record_of(learner))["config"] | {"training": training}
    timing = TimingRecord(by_task=TaskTimes(steps=list(steps)))
    return record_of(learner, config=config, timing=timing, data=data_of(rows=rows), **changes)


def test_a_table_says_where_methods_have_unlike_numbers_of_steps() -> None:
    """7 batches times 3 epochs; 8 epochs of one batch are at least 8 steps, twice."""
    plain = stepped("finetune", 21, 8, 8)
    header = f"steps {TIMES} plain"
    table = table_of(plain, stepped("lt_sft", 42, 16, 16), stepped("majority", 0, 0, 0))
    column = [" ".join(text.split()) for text in table.header].index(header)
    cells = [section[0].cells[column] for section in table.sections]
    assert cells == ["1.00", "2.00", "0.00"]
    told = f"learners differ in training steps: lt_sft 2.00 {TIMES} those of the plain schedule"
    assert told in table.notes
    twice = stepped("finetune", 42, 16, 16, seed=1)
    config = twice.config | {"select": {"lr": [0.1, 0.2]}}
    notes = table_of(plain, msgspec.structs.replace(twice, config=config)).notes
    assert any(f"finetune with select 2.00 {TIMES}" in note for note in notes)
    alike = table_of(plain, stepped("adapter", 21, 8, 8))
    assert header not in [" ".join(text.split()) for text in alike.header]
    assert not any("steps" in note for note in alike.notes)


def test_steps_are_unknown_of_partial_runs_and_of_old_records() -> None:
    runs = [
        stepped("finetune", 21, 8, status="partial"),
        stepped("finetune"),
        record_of("finetune", timing=TimingRecord(by_task=TaskTimes(steps=[21, 8, 8]))),
    ]
    assert [relative_steps(run) for run in runs] == [None, None, None]
