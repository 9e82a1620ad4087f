"""Figures of one run: what they draw, and that everything on them can be read."""

import itertools
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from stream.formatting import DASH, MINUS, TIMES, percent
from stream.metrics import backward_transfer
from stream.metrics.changes import change_since_learned, mean_change
from stream.record.run_record import RunRecord
from stream.report import canvas, drawing, plots
from stream.report.chance import chance_scores
from tests.analysis.made_runs import ledger_of, ledger_row, record_of
from tests.figure_texts import check_readable, visible_texts
from tests.metrics import worked_example

NAMES = [
    "cola",
    "sst2",
    "mrpc",
    "stsb",
    "qqp",
    "mnli_matched",
    "mnli_mismatched",
    "qnli",
    "rte",
    "newsgroups20",
    "crowdflower_airline",
    "crowdflower_corporate_messaging",
    "crowdflower_disasters",
    "crowdflower_economic_news",
    "crowdflower_emotion",
    "crowdflower_global_warming",
    "crowdflower_political_audience",
    "crowdflower_political_bias",
    "crowdflower_political_message",
    "crowdflower_primary_emotions",
    "crowdflower_progressive_opinion",
    "crowdflower_progressive_stance",
    "crowdflower_us_economic_performance",
    "customer_complaints",
    "news_aggregator",
    "sms_spam",
]
FIGURES = sorted(plots.FIGURES)
BASE = 22_713_216


def made_up(
    num_tasks: int = 26, learned: int | None = None, buffer: int = 0, **changes: Any
) -> RunRecord:
    """A run that loses a little of each task; the first one below zero."""
    learned = num_tasks if learned is None else learned
    matrix: list[list[float | None]] = [[None] * num_tasks for _ in range(num_tasks)]
    for after, task in itertools.product(range(learned), range(num_tasks)):
        if task <= after:
            matrix[after][task] = (
                0.3
                + 0.02 * task
                + 0.6 * math.exp((task - after) / 9)
                - 0.4 * (task == 0 and after > 4)
            )
    rows = [
        ledger_row(
            number,
            trained_parameters=1_200_000,
            trained_fraction=1_200_000 / BASE,
            stored_parameters=BASE + 1_200_000 * number,
            buffer_examples=buffer * number,
            buffer_bytes=512 * buffer * number,
        )
        for number in range(1, learned + 1)
    ]
    values: dict[str, Any] = {
        "status": "complete" if learned == num_tasks else "partial",
        "stream": "houlsby26",
        "order": NAMES[:num_tasks],
        "titles": NAMES[:num_tasks],
        "matrix": matrix,
        "metrics": {
            "average_score": 0.5432 if learned else None,
            "learning_score": 0.8 if learned else None,
            "bwt": -0.1234 if learned > 1 else None,
            "forgetting": 0.1234 if learned > 1 else None,
        },
        "ledger": ledger_of(*rows, base=BASE),
    }
    return record_of("replay", 3, **values | changes)


RUNS = {
    "26 tasks": made_up(),
    "26 tasks with a buffer": made_up(buffer=200),
    "partial": made_up(10, learned=7),
    "nothing learned yet": made_up(6, learned=0),
    "three tasks": made_up(3),
    "one task": made_up(1),
}


@cache
def drawn(figure: str, run: str) -> Figure:
    """A figure of one of `RUNS`; to be looked at only."""
    return plots.FIGURES[figure](RUNS[run])


@cache
def readable_texts(figure: str, run: str) -> list[str]:
    """The texts of such a figure, none of which is cut off or covers another."""
    return check_readable(drawn(figure, run))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figure", "run"),
    [(f, run) for f in FIGURES for run in RUNS if f == "parameters" or "buffer" not in run],
)
def test_no_text_is_cut_off_or_covers_another(figure: str, run: str) -> None:
    readable_texts(figure, run)


@pytest.mark.parametrize("figure", FIGURES)
def test_every_task_is_named(figure: str) -> None:
    texts = readable_texts(figure, "26 tasks")
    for number, name in enumerate(NAMES, start=1):
        assert any(text.split("  ")[0] == f"{number} · {name}" for text in texts)


@pytest.mark.parametrize("figure", FIGURES)
def test_heading_says_what_ran_and_that_data_are_generated(figure: str) -> None:
    def heading(record: RunRecord) -> str:
        return " ".join(plots.FIGURES[figure](record).get_suptitle().split())  # as one line

    shown = heading(made_up(3))
    assert shown == (
        "replay on houlsby26 (generated data), minilm, seed 3 "
        "average score 54.3 %, forgetting 12.3 %"
    )
    assert "generated" not in heading(made_up(2, source="files"))
    assert "validation scores" in heading(made_up(2, split="validation"))
    assert "partial: 2 of 4 tasks learned" in heading(made_up(4, learned=2))
    assert heading(RUNS["one task"]).endswith(f"forgetting {DASH}")


@pytest.mark.parametrize("run", [run for run in RUNS if "buffer" not in run])
def test_heatmap_draws_the_matrix_and_masks_what_is_null(run: str) -> None:
    record = RUNS[run]
    (mesh,) = drawn("matrix", run).axes[0].collections
    shown = mesh.get_array()
    expected = np.array(record.matrix, dtype=float)
    assert (np.ma.getmaskarray(shown) == np.isnan(expected)).all()
    np.testing.assert_array_equal(shown.filled(np.nan), expected)


def test_heatmap_writes_percent_into_cells_and_a_dash_for_null() -> None:
    record = made_up(3)
    record.matrix = [[-0.049, None, None], [0.5, 1.0, None], [None, 0.004, 0.676]]
    axes = plots.matrix_heatmap(record).axes[0]
    cells = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in axes.texts}
    assert cells == {
        (0, 0): f"{MINUS}5",
        (1, 0): "50",
        (1, 1): "100",
        (2, 0): DASH,
        (2, 1): "0",
        (2, 2): "68",
    }


def test_negative_scores_have_their_own_colour_and_a_note() -> None:
    record = made_up(2)
    record.matrix = [[-0.2, None], [0.0, 0.5]]
    figure = plots.matrix_heatmap(record)
    figure.canvas.draw()
    colours = figure.axes[0].collections[0].get_facecolors()
    assert to_hex(colours[0]).upper() == canvas.ORANGE
    assert "below 0" in figure.axes[1].get_ylabel()
    record.matrix[0][0] = 0.2
    assert "below 0" not in plots.matrix_heatmap(record).axes[1].get_ylabel()


def test_first_row_is_on_top_and_metrics_other_than_accuracy_are_named() -> None:
    axes = plots.matrix_heatmap(RUNS["three tasks"]).axes[0]
    assert axes.get_ylim() == (3, 0)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["1 · cola (matthews correlation)", "2 · sst2", "3 · mrpc"]


def test_score_lines_show_the_average_and_each_task_since_it_was_learned() -> None:
    record = made_up(3)
    record.matrix = [[0.8, None, None], [0.5, 0.6, None], [0.2, 0.723, 0.4]]
    average, *tasks = plots.score_lines(record).axes
    np.testing.assert_allclose(average.lines[-1].get_ydata(), [0.8, 0.55, 1.323 / 3])
    np.testing.assert_allclose(tasks[0].lines[0].get_xydata(), [[1, 0.8], [2, 0.5], [3, 0.2]])
    np.testing.assert_allclose(tasks[2].lines[0].get_xydata(), [[3, 0.4]])
    assert [axes.texts[0].get_text() for axes in tasks] == [
        f"80.0 → 20.0 ({MINUS}60.0)",
        "60.0 → 72.3 (+12.3)",
        "40.0 → 40.0 (0.0)",
    ]


def test_score_lines_show_what_the_untrained_learner_scores_where_it_was_measured() -> None:
    figure = plots.score_lines(made_up(2, baseline=[0.5, 0.25]))
    dotted = [axes.lines[1] for axes in figure.axes[1:]]
    assert [line.get_ydata()[0] for line in dotted] == [0.5, 0.25]
    assert {line.get_linestyle() for line in dotted} == {":"}
    assert "before any learning" in figure.get_supxlabel()
    without = plots.score_lines(made_up(2))
    assert [len(axes.lines) for axes in without.axes[1:]] == [2, 1]  # of a correlation: chance
    assert "before any learning" not in without.get_supxlabel()


def test_score_lines_show_what_guessing_scores_where_that_is_defined() -> None:
    """1/K for accuracy, 0 for a correlation; F1 and what has no labels have no line."""
    metrics = ["accuracy", "matthews_correlation", "f1", "accuracy"]
    labels = {NAMES[0]: ["a", "b", "c"], NAMES[1]: ["a", "b"], NAMES[2]: ["a", "b"]}
    record = made_up(4, metric_names=metrics, labels=labels)
    np.testing.assert_array_equal(chance_scores(record), [1 / 3, 0, np.nan, np.nan])
    figure = plots.score_lines(record)
    levels = [[line.get_ydata()[0] for line in axes.lines[1:]] for axes in figure.axes[1:]]
    assert levels == [[1 / 3], [0], [], []]
    assert "dashed: guessing among the labels" in figure.get_supxlabel()
    assert "guessing" not in plots.score_lines(made_up(1, metric_names=["f1"])).get_supxlabel()


# --- forgetting curves


def test_changes_are_those_of_the_worked_example() -> None:
    """By hand: 0.80 - 0.90, 0.85 - 0.90, 0.70 - 0.90; 0.75 - 0.85, 0.80 - 0.85; 0.60 - 0.80."""
    changes = change_since_learned(worked_example.R)
    nan = np.nan
    expected = [
        [0.0, nan, nan, nan],
        [-0.10, 0.0, nan, nan],
        [-0.05, -0.10, 0.0, nan],
        [-0.20, -0.05, -0.20, 0.0],
    ]
    assert changes.dtype == np.float64
    np.testing.assert_allclose(changes, expected, atol=1e-12)
    np.testing.assert_allclose(mean_change(changes), [nan, -0.10, -0.075, -0.15], atol=1e-12)
    after = [backward_transfer(worked_example.R[:k, :k]) for k in (2, 3, 4)]
    np.testing.assert_allclose(mean_change(changes)[1:], np.array(after, float), atol=1e-12)


def test_a_run_s_forgetting_curves_begin_at_zero_where_a_task_was_learned() -> None:
    record = made_up(3)
    record.matrix = [[0.8, None, None], [0.5, 0.6, None], [0.2, 0.723, 0.4]]
    axes = plots.FIGURES["forgetting"](record).axes[0]
    _zero, first, second, third, mean = axes.lines
    np.testing.assert_allclose(first.get_xydata(), [[1, 0], [2, -0.3], [3, -0.6]])
    np.testing.assert_allclose(second.get_xydata(), [[2, 0], [3, 0.123]])
    np.testing.assert_allclose(third.get_xydata(), [[3, 0]])
    np.testing.assert_allclose(mean.get_ydata(), [np.nan, -0.3, (-0.6 + 0.123) / 2])
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        f"1 · cola  {MINUS}60.0",
        "2 · sst2  +12.3",
        "3 · mrpc  0.0",
        "mean of earlier tasks",
    ]


def test_what_was_not_measured_has_no_curve() -> None:
    axes = drawn("forgetting", "partial").axes[0]
    curves = axes.lines[1:-1]
    assert [len(curve.get_ydata()[~np.isnan(curve.get_ydata())]) for curve in curves[:8]] == [
        *(7, 6, 5, 4, 3, 2, 1, 0)
    ]
    texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert texts[7].endswith(DASH)


def test_tasks_not_learned_are_not_drawn_as_zero() -> None:
    panels = drawn("scores", "partial").axes
    assert np.isnan(panels[0].lines[-1].get_ydata()[7:]).all()
    assert panels[8].texts[0].get_text() == "not evaluated"
    assert np.isnan(panels[8].lines[0].get_ydata()).all()


def test_growth_starts_at_the_pretrained_base_beside_a_full_copy_a_task() -> None:
    growth, trained = drawn("parameters", "26 tasks").axes
    copies, own = growth.lines
    np.testing.assert_array_equal(copies.get_xydata(), [[k, k] for k in range(1, 27)])
    expected = 1 + np.arange(27) * 1_200_000 / BASE
    np.testing.assert_allclose(own.get_ydata(), expected)
    assert [text.get_text() for text in growth.texts] == [
        f"{expected[-1]:.2f}{TIMES}",
        f"26.00{TIMES}",
    ]
    assert {round(bar.get_height(), 3) for bar in trained.patches} == {5.283}
    assert growth.get_yscale() == "linear"  # a copy per task is a straight line


def test_growth_of_a_run_that_has_learned_nothing_starts_at_zero() -> None:
    record = made_up(2)
    record.ledger.tasks = []
    _growth, trained = plots.parameter_growth(record).axes
    assert trained.get_ylim() == (0, 1)


def test_growth_shows_a_buffer_only_where_there_is_one() -> None:
    *_, buffer = drawn("parameters", "26 tasks with a buffer").axes
    assert [bar.get_height() for bar in buffer.patches] == [200 * k for k in range(1, 27)]
    assert "2.66 MB" in buffer.get_title(loc="left")
    assert len(drawn("parameters", "26 tasks").axes) == 2


def test_titles_are_shown_as_they_are_and_cut_when_endless() -> None:
    titles = ["cost $5 or $6", "x" * 200, "CF US economic performance"]
    record = made_up(3, titles=titles)
    names = canvas.display_names(record)
    assert len(names[1]) < 70
    assert names[1].endswith("…")
    for draw in plots.FIGURES.values():
        found = [text for text, _ in visible_texts(draw(record))]
        texts = {text.split("  ")[0].replace(r"\$", "$") for text in found}
        assert {"1 · cost $5 or $6", "3 · CF US economic performance"} <= texts


def test_undefined_is_a_dash_and_zero_has_no_sign() -> None:
    assert [percent(x) for x in (None, math.nan, 0.0, -0.0, -0.25)] == [
        DASH,
        DASH,
        "0.0",
        "0.0",
        f"{MINUS}25.0",
    ]


def test_drawing_changes_nothing_in_the_record() -> None:
    record, untouched = made_up(4), made_up(4)
    for draw in plots.FIGURES.values():
        draw(record)
    assert record == untouched


def test_saved_files_are_equal_byte_for_byte_and_their_text_is_text(tmp_path: Path) -> None:
    first, second = (
        canvas.save(plots.matrix_heatmap(made_up(3)), tmp_path / folder, "matrix")
        for folder in "ab"
    )
    assert [path.name for path in first] == ["matrix.png", "matrix.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    svg = first[1].read_text(encoding="utf-8")
    assert "generated data" in svg
    assert "<dc:date>" not in svg


def test_a_failed_save_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "matrix.png").write_text("old")

    def fail(source: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        canvas.save(plots.matrix_heatmap(made_up(2)), tmp_path, "matrix")
    assert [path.name for path in tmp_path.iterdir()] == ["matrix.png"]
    assert (tmp_path / "matrix.png").read_text() == "old"


def test_write_figures_returns_the_images_in_the_run_folder(tmp_path: Path) -> None:
    paths = drawing.write_figures(made_up(2), tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        f"figures/{name}.png" for name in ("matrix", "scores", "forgetting", "parameters")
    ]
    assert all(path.with_suffix(".svg").exists() for path in paths)
    assert tuple(plots.FIGURES) == drawing.NAMES
