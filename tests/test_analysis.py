"""Analysis: what it finds, what it refuses to compare, and the numbers that it shows."""

import copy
import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.console import Console

from analysis.__main__ import main, show
from analysis.collect import Run, collect
from analysis.compare import comparison_table, method_labels
from analysis.figures import average, matrices
from stream.wording import DASH, MINUS

ORDER = ["sst2", "crowdflower_us_economic_performance", "cola"]
MATRIX = [[0.9, None, None], [0.8, 0.7, None], [0.6, 0.75, -0.1]]
# By hand: average (0.6 + 0.75 - 0.1) / 3; learning (0.9 + 0.7 - 0.1) / 3;
# BWT ((0.6 - 0.9) + (0.75 - 0.7)) / 2; forgetting ((0.9 - 0.6) + (0.7 - 0.75)) / 2.
METRICS = {"average_score": 1.25 / 3, "learning_score": 0.5, "bwt": -0.125, "forgetting": 0.125}
BASE = 1_000_000


def ledger_row(number: int) -> dict[str, Any]:
    return {
        "task": ORDER[number - 1],
        "trained_parameters": 10_000 * number,
        "trained_fraction": 0.01 * number,
        "stored_parameters": BASE + 100_000 * number,
        "stored_bytes": 4 * BASE,
        "buffer_examples": 0,
        "buffer_bytes": 0,
    }


def results_of(learner: str = "finetune", seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Results of a run of three tasks with round numbers."""
    results = {
        "schema": 1,
        "status": "complete",
        "learner": learner,
        "stream": "custom",
        "backbone": "minilm",
        "source": "generated",
        "split": "test",
        "order": ORDER,
        "titles": ["SST-2", "CF US economic performance", "CoLA"],
        "metric_names": ["accuracy", "accuracy", "matthews_correlation"],
        "seed": seed,
        "matrix": MATRIX,
        "metrics": METRICS,
        "memory": {"promised": False, "tasks_checked": 2, "tasks_identical": 1},
        "ledger": {
            "base_parameters": BASE,
            "total_multiple": 1.3,
            "tasks": [ledger_row(number) for number in (1, 2, 3)],
        },
        "timing": {"train_s": 60.0, "evaluate_s": 12.0},
        "data": {"hash": "a" * 64},
        "config": {"learner": {"lr": 5e-5}, "training": {"epochs": 3}, "seed": seed},
    }
    return copy.deepcopy(results | changes)


def write(folder: Path, results: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = results if isinstance(results, str) else json.dumps(results)
    (folder / "results.json").write_text(text, encoding="utf-8")
    return folder


def shown(*results: dict[str, Any]) -> list[list[str]]:
    """The cells of the comparison table, without its title."""
    table = comparison_table([Run(Path(str(i)), r) for i, r in enumerate(results)])
    return [
        [str(cell) for cell in row] for row in zip(*(c.cells for c in table.columns), strict=True)
    ]


# --- finding and reading runs


def test_runs_are_found_in_folders_of_runs_once_each(tmp_path: Path) -> None:
    deep = write(tmp_path / "sweep" / "1", results_of(seed=1))
    write(tmp_path / "sweep" / "0", results_of(seed=0))
    write(deep / "checkpoint", results_of(seed=9))  # a copy inside a run is no run
    runs, problems = collect([tmp_path, deep, deep / "results.json"])
    assert [run.results["seed"] for run in runs] == [0, 1]
    assert runs[1].path == deep
    assert problems == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[1, 2]", "no key 'schema'"),
        ('{"accuracy": 1}', "no key 'schema'"),
        (results_of() | {"schema": 2}, "schema 2 is not 1"),
        ({k: v for k, v in results_of().items() if k != "ledger"}, "'ledger' is missing"),
        (results_of(metrics={"average_score": 0.5}), "'metrics' lacks 'learning_score'"),
        (results_of(matrix=[[0.5]]), "not 3 x 3"),
        (results_of(order=[], titles=[], metric_names=[], matrix=[]), "not 0 x 0"),
        (results_of(matrix=[[0.5, "x", None]] * 3), "'x' is no number or null"),
        (json.dumps(results_of(matrix=[[float("nan")] * 3] * 3)), "NaN"),
        (results_of(titles=["SST-2"]), "titles"),
        (results_of(ledger={"base_parameters": 0, "total_multiple": 1, "tasks": []}), "positive"),
        (results_of(ledger={"base_parameters": 1, "total_multiple": 1, "tasks": [{}]}), "None"),
    ],
)
def test_broken_and_foreign_files_are_named_with_the_reason(
    tmp_path: Path, content: Any, reason: str
) -> None:
    good, bad = write(tmp_path / "good", results_of()), write(tmp_path / "bad", content)
    runs, problems = collect([bad, good])
    assert [run.path for run in runs] == [good]
    assert len(problems) == 1
    assert problems[0].startswith(f"{bad / 'results.json'}: ")
    assert reason in problems[0]
    assert "\n" not in problems[0]


def test_empty_and_missing_folders_exit_with_2_and_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["compare", str(tmp_path / "empty"), str(tmp_path / "missing")]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        f"analysis: {tmp_path / 'empty'}: no results.json in or below it",
        f"analysis: {tmp_path / 'missing'}: no such folder",
        "analysis: no usable run",
    ]


def test_a_broken_run_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a", "{")
    write(tmp_path / "b", results_of("replay"))
    assert main(["compare", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert "replay" in output.out
    assert len(output.err.splitlines()) == 1


# --- the table


def test_table_shows_the_numbers_computed_by_hand() -> None:
    (row,) = shown(results_of())
    assert row == [
        *("finetune", "generated", "0", "3"),
        *("41.7", "50.0", f"{MINUS}12.5", "12.5"),
        *("2.00", "1.30", "72", "1/2"),
    ]


def test_undefined_is_a_dash_and_never_zero() -> None:
    single = results_of(
        order=["sst2"],
        titles=["SST-2"],
        metric_names=["accuracy"],
        matrix=[[0.9]],
        metrics={"average_score": 0.9, "learning_score": 0.9, "bwt": None, "forgetting": None},
        memory={"promised": True, "tasks_checked": 0, "tasks_identical": 0},
    )
    (row,) = shown(single)
    assert row[4:8] == ["90.0", "90.0", DASH, DASH]
    assert row[-1] == DASH


def test_mean_and_sample_deviation_over_seeds() -> None:
    scores = [0.4, 0.5, 0.9]
    runs = [
        results_of(seed=seed, metrics=METRICS | {"average_score": score})
        for seed, score in enumerate(scores)
    ]
    rows = shown(*runs, results_of("replay"))
    assert [row[2] for row in rows] == ["0", "1", "2", "n=3", "0"]
    mean_row = rows[3]
    assert mean_row[0] == "mean ± sd"
    assert mean_row[4] == f"60.0±{100 * stdev(scores):.1f}"
    assert mean_row[6] == f"{MINUS}12.5±0.0"


def test_partial_runs_and_repeated_seeds_stay_out_of_the_mean() -> None:
    partial = results_of(seed=3, status="partial", matrix=[MATRIX[0], [None] * 3, [None] * 3])
    rows = shown(results_of(seed=0), results_of(seed=0), results_of(seed=1), partial)
    assert [row[2] for row in rows] == ["0", "0", "1", "3", "n=2"]
    assert rows[3][3] == "1/3"
    assert not any("n=" in row[2] for row in shown(results_of(seed=0), results_of(seed=0)))


def test_runs_with_different_settings_are_different_methods() -> None:
    def labels(*results: dict[str, Any]) -> list[str]:
        return method_labels([Run(Path(), r) for r in results])

    small, large = ({"learner": {"size": s}, "training": {"epochs": 3}} for s in (8, 64))
    longer = {"learner": {"size": 8}, "training": {"epochs": 9}}
    assert labels(results_of("adapter", config=small), results_of("finetune")) == [
        "adapter",
        "finetune",
    ]
    assert labels(
        results_of("adapter", config=small), results_of("adapter", seed=1, config=large)
    ) == ["adapter (size=8)", "adapter (size=64)"]
    assert labels(results_of("adapter", config=small), results_of("finetune", config=longer)) == [
        "adapter (training.epochs=3)",
        "finetune (training.epochs=9)",
    ]
    assert labels(results_of("adapter"), results_of("adapter", backbone="bert_base")) == [
        "adapter (backbone=minilm)",
        "adapter (backbone=bert_base)",
    ]


def test_a_broken_promise_of_memory_is_loud() -> None:
    memory = {"promised": True, "tasks_checked": 2, "tasks_identical": 1}
    assert shown(results_of(memory=memory))[0][-1] == "1/2 BROKEN"
    assert shown(results_of(memory=memory | {"tasks_identical": 2}))[0][-1] == "2/2"


def test_generated_data_are_named_in_title_and_lines() -> None:
    table = comparison_table([Run(Path(), results_of())])
    assert "generated data" in str(table.title)
    real = comparison_table([Run(Path(), results_of(source="files", split="validation"))])
    assert "generated" not in str(real.title)
    assert "data: files" in str(real.title)
    assert "validation scores" in str(real.title)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"stream": "glue"}, "stream: custom and glue"),
        ({"source": "files"}, "source: generated and files"),
        ({"split": "validation"}, "split: test and validation"),
        ({"order": [ORDER[0], ORDER[2], ORDER[1]]}, f"order: task 2 is {ORDER[1]} and cola"),
        ({"data": {"hash": "b" * 64}}, "data hash: aaaaaaaaaaaa and bbbbbbbbbbbb"),
    ],
)
def test_runs_of_different_streams_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], difference: str
) -> None:
    one = write(tmp_path / "one", results_of())
    other = write(tmp_path / "other", results_of("replay", **change))
    table = tmp_path / "table.csv"
    assert main(["compare", str(one), str(other), "--csv", str(table)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.endswith(f"differ in {difference}")
    assert str(one) in line
    assert str(other) in line
    assert not table.exists()


def test_the_whole_table_is_printed_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"learner": {"long_setting": "x" * 150}}
    write(tmp_path / "a", results_of("adapter", config=config))
    write(tmp_path / "b", results_of("adapter"))
    assert main(["compare", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(f"long_setting={'x' * 150}" in line and "1/2" in line for line in lines)


@pytest.mark.parametrize("width", [80, 200])
def test_narrow_screens_get_the_table_in_two_parts_with_nothing_cut(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr("analysis.__main__.Console", lambda: console)
    show([Run(Path(str(seed)), results_of(seed=seed)) for seed in range(3)])
    text = screen.getvalue()
    assert text.count("generated data") == (2 if width == 80 else 1)
    assert all(len(line) <= width for line in text.splitlines())
    assert f"{MINUS}12.5±0.0" in text
    assert "1.30±0.00" in text
    assert "…" not in text


def test_csv_holds_fractions_and_leaves_undefined_empty(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", results_of(metrics=METRICS | {"bwt": None}))
    target = tmp_path / "new" / "table.csv"
    assert main(["compare", str(folder), "--csv", str(target)]) == 0
    with target.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["average_score"]) == METRICS["average_score"]
    assert float(row["trained_fraction"]) == pytest.approx(0.02)
    assert row["bwt"] == ""
    assert (row["source"], row["run"], row["tasks_learned"]) == ("generated", str(folder), "3")
    assert [path.name for path in target.parent.iterdir()] == ["table.csv"]


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "run", results_of())
    assert main(["compare", str(folder), "--csv", str(folder / "results.json" / "x.csv")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- the figures


def check_readable(figure: Figure) -> list[str]:
    """Assert that no text is cut off or covers another; return the texts."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()  # pyright: ignore[reportAttributeAccessIssue]
    outside = {  # tick labels beyond the view are never drawn
        tick.label1
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    found = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    texts = [text for text in found if text not in outside]
    boxes = [text.get_window_extent(renderer) for text in texts]
    for index, (text, box) in enumerate(zip(texts, boxes, strict=True)):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1, text
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1, text
        covered = [t for t, b in zip(texts[:index], boxes, strict=False) if b.overlaps(box)]
        assert not covered, f"{text} on {covered[0]}"
    return [text.get_text() for text in texts]


def wide_results(learner: str, num_tasks: int = 26) -> dict[str, Any]:
    names = [f"crowdflower_us_economic_performan_{n}" for n in range(num_tasks)]
    matrix = [[0.5 if j <= i else None for j in range(num_tasks)] for i in range(num_tasks)]
    metric_names = ["accuracy"] * num_tasks
    return results_of(learner, order=names, titles=names, metric_names=metric_names, matrix=matrix)


@pytest.mark.parametrize("num_tasks", [1, 3, 26])
def test_matrices_side_by_side_are_readable(num_tasks: int) -> None:
    learners = ("adapter", "finetune", "replay", "frozen")
    runs = [Run(Path(), wide_results(learner, num_tasks)) for learner in learners]
    texts = check_readable(matrices(runs))
    assert any("generated data" in " ".join(text.split()) for text in texts)
    joined = " ".join(" ".join(texts).split())
    assert all(f"{learner}, seed 0: average score 41.7" in joined for learner in learners)


def test_matrices_share_one_colour_bar_with_the_note_on_negative_scores() -> None:
    positive = results_of(matrix=[[0.5, None, None]] * 3)
    figure = matrices([Run(Path(), positive), Run(Path(), results_of("replay"))])
    *panels, bar = figure.axes
    assert len(panels) == 2
    assert "below 0" in bar.get_ylabel()
    for axes, matrix in zip(panels, (positive["matrix"], MATRIX), strict=True):
        drawn = axes.collections[0].get_array().filled(np.nan)
        np.testing.assert_array_equal(drawn, np.array(matrix, dtype=float))


def test_average_draws_one_line_a_method_and_the_mean_of_its_seeds() -> None:
    better = [[1.0, None, None], [0.9, 0.8, None], [0.7, 0.85, 0.0]]
    runs = [
        Run(Path(), results_of("finetune", 0)),
        Run(Path(), results_of("finetune", 1, matrix=better)),
        Run(Path(), results_of("replay", 0)),
    ]
    figure = average(runs)
    check_readable(figure)
    finetune, replay = figure.axes[0].lines
    np.testing.assert_allclose(replay.get_ydata(), [0.9, 0.75, 1.25 / 3])
    np.testing.assert_allclose(finetune.get_ydata(), [0.95, 0.8, 1.4 / 3])
    assert finetune.get_label() == "finetune: 46.7 % at the end, mean ± sd of 2 seeds"
    assert "generated data" in figure.get_suptitle()


def test_average_of_a_partial_run_ends_where_the_run_does() -> None:
    partial = results_of(status="partial", matrix=[MATRIX[0], MATRIX[1], [None] * 3])
    (line,) = average([Run(Path(), partial)]).axes[0].lines
    np.testing.assert_allclose(line.get_ydata(), [0.9, 0.75, np.nan])
    assert line.get_label() == "finetune: 75.0 % at the end, partial: 2 tasks"


def test_figures_writes_every_run_and_the_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, learner in enumerate(("replay", "replay", "finetune")):
        write(tmp_path / "runs" / str(number), results_of(learner))
    assert main(["figures", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    stems = ("replay_seed0", "replay_seed0_2", "finetune_seed0")
    expected = {f"{s}_{f}" for s in stems for f in ("matrix", "scores", "parameters")}
    expected |= {"matrices", "average"}
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {f"{name}.{kind}" for name in expected for kind in ("png", "svg")}
    assert len(capsys.readouterr().out.splitlines()) == len(written)


def test_figures_of_different_streams_are_written_without_the_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write(tmp_path / "one", results_of())
    other = write(tmp_path / "other", results_of("replay", stream="glue"))
    assert main(["figures", str(one), str(other), "--out", str(tmp_path / "out")]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "stream: custom and glue" in line
    assert len(list((tmp_path / "out").iterdir())) == 12


# --- the command line


def test_help_names_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["compare", "--help"], ["figures", "--help"]):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("compare", "figures", "RUN", "--csv FILE", "--out DIR"))


def test_analysis_loads_without_torch_transformers_or_hydra() -> None:
    code = (
        "import analysis.__main__, sys; "
        "print(sorted({'torch', 'transformers', 'hydra', 'omegaconf', 'wandb'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
