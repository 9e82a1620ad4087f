"""Figures of several runs: what they draw, and that everything on them can be read."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis.__main__ import main
from analysis.figures.against_setting import against_setting
from analysis.figures.along_stream import average, growth
from analysis.figures.forgetting_marks import forgetting
from analysis.figures.layer_ranges import layer_range_figure
from analysis.figures.matrices import matrices
from analysis.figures.orders import order_scores, orders
from analysis.figures.score_against import cost, parameters
from analysis.figures.setting_series import by_setting
from analysis.figures.stability import stability
from analysis.figures.style import NothingToDrawError, label_log_axis
from analysis.figures.tradeoff import relative_percentiles, tradeoff
from analysis.figures.write import TOGETHER
from analysis.looks import COLOURS, look_of
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import build_methods
from analysis.runs.pareto import pareto_front
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.report.canvas import new_figure
from stream.run.layer_ablation import LayerRangeScores
from tests.analysis.made_runs import (
    MATRIX,
    METRICS,
    ORDER,
    flops_of,
    ledger_of,
    ledger_row,
    probe_of,
    record_of,
    write,
)
from tests.figure_texts import check_readable, legend_texts


def run_of(record: RunRecord) -> RecordedRun:
    return RecordedRun(Path(), record)


HALF = [[0.5, None, None], [0.5, 0.5, None], [0.5, 0.5, 0.5]]


def wide_record(learner: str, num_tasks: int = 26) -> RunRecord:
    """Each task is always scored 0.5."""
    names = [f"crowdflower_us_economic_performan_{n}" for n in range(num_tasks)]
    return record_of(learner, order=names, **({"matrix": HALF} if num_tasks == 3 else {}))


@pytest.mark.parametrize("num_tasks", [1, 3, pytest.param(26, marks=pytest.mark.slow)])
def test_matrices_side_by_side_are_readable(num_tasks: int) -> None:
    learners = ("adapter", "finetune", "replay", "frozen")[: 2 if num_tasks == 26 else 4]
    runs = [run_of(wide_record(learner, num_tasks)) for learner in learners]
    texts = check_readable(matrices(runs))
    assert any("generated data" in " ".join(text.split()) for text in texts)
    joined = " ".join(" ".join(texts).split())
    assert all(f"{learner} average score 41.7, seed 0" in joined for learner in learners)


def test_matrices_share_one_colour_bar_with_the_note_on_negative_scores() -> None:
    positive = record_of(matrix=[[0.5, None, None]] * 3)
    figure = matrices([run_of(positive), run_of(record_of("replay"))])
    *panels, bar = figure.axes
    assert len(panels) == 2
    assert "below 0" in bar.get_ylabel()
    for axes, matrix in zip(panels, (positive.matrix, MATRIX), strict=True):
        drawn = axes.collections[0].get_array().filled(np.nan)
        np.testing.assert_array_equal(drawn, np.array(matrix, dtype=float))


def test_average_draws_one_line_a_method_and_the_mean_of_its_seeds() -> None:
    better = [[1.0, None, None], [0.9, 0.8, None], [0.7, 0.85, 0.0]]
    runs = [
        run_of(record_of("finetune", 0)),
        run_of(record_of("finetune", 1, matrix=better)),
        run_of(record_of("replay", 0)),
    ]
    figure = average(runs)
    check_readable(figure)
    finetune, replay = figure.axes[0].lines
    np.testing.assert_allclose(replay.get_ydata(orig=False), [0.9, 0.75, 1.25 / 3])
    np.testing.assert_allclose(finetune.get_ydata(orig=False), [0.95, 0.8, 1.4 / 3])
    # By hand: t(0.975, 1) = 12.706 times the half of the distance of 41.67 and 51.67.
    assert [finetune.get_label(), replay.get_label()] == [
        "finetune: 46.7 ± 63.5, 2 seeds",
        "replay: 41.7, 1 seed",
    ]
    assert "95% t interval over 1 to 2 seeds" in " ".join(figure.get_suptitle().split())
    assert "generated data" in figure.get_suptitle()


def test_average_shows_no_score_that_there_cannot_be() -> None:
    """The interval of two seeds that are far apart does not make the axis longer."""
    low = run_of(record_of(seed=1, matrix=[[0.1, None, None], [0.1, 0.1, None], [0.1] * 3]))
    axes, _names = average([run_of(record_of(seed=0)), low]).axes
    assert max(path.vertices[:, 1].max() for path in axes.collections[0].get_paths()) > 2
    assert -1.1 <= axes.get_ylim()[0] < axes.get_ylim()[1] <= 1.1


def test_equal_scores_without_layers_can_be_read() -> None:
    without = np.array([[0.3125, 0.3125], [np.nan, 0.3125]])
    scores = LayerRangeScores(ORDER[0], "test", 0.3125, without, 0.3125)
    axes, bar = layer_range_figure([record_of()], [scores]).axes
    assert {text.get_color() for text in axes.texts} == {"white"}
    bar.figure.draw_without_rendering()
    numbers = [tick.get_text() for tick in bar.get_yticklabels()]
    assert len(set(numbers)) == len(numbers)


def test_average_of_a_partial_run_ends_where_the_run_does() -> None:
    partial = record_of(status="partial", matrix=[MATRIX[0], MATRIX[1], [None] * 3])
    (line,) = average([run_of(partial)]).axes[0].lines
    np.testing.assert_allclose(line.get_ydata(orig=False), [0.9, 0.75, np.nan])
    assert line.get_label() == "finetune: 75.0, partial: 2 tasks"


def test_many_runs_get_one_heat_map_a_method_with_the_mean_of_its_seeds() -> None:
    other = [[0.7, None, None], [0.8, 0.7, None], [0.8, 0.75, 0.1]]
    runs = [
        run_of(record_of("finetune", seed, matrix=MATRIX if seed % 2 else other))
        for seed in range(10)
    ]
    figure = matrices(runs)
    panel, _bar = figure.axes
    drawn = panel.collections[0].get_array()
    np.testing.assert_allclose(drawn[0, 0], 0.8)
    np.testing.assert_allclose(drawn[2], [0.7, 0.75, 0.0], atol=1e-12)
    title = " ".join(panel.get_title("left").split())
    assert title == "finetune average score 41.7, mean of 10 seeds"


def test_the_first_methods_all_look_different() -> None:
    seen = {look_of(index) for index in range(4 * len(COLOURS))}
    assert len(seen) == 4 * len(COLOURS)
    assert len({(look.colour, look.marker) for look in seen}) == 4 * len(
        COLOURS
    )  # marks have no dashes


# --- along the stream


def test_forgetting_of_each_task_by_hand() -> None:
    """MATRIX: 0.9 - 0.6 and 0.7 - 0.75; better: 1.0 - 0.8 and 0.8 - 0.85."""
    better = [[1.0, None, None], [0.9, 0.8, None], [0.8, 0.85, 0.0]]
    runs = [
        run_of(record_of("finetune", 0)),
        run_of(record_of("finetune", 1, matrix=better)),
        run_of(record_of("replay", 0)),
    ]
    figure = forgetting(runs)
    check_readable(figure)
    first, second = (container[0] for container in figure.axes[0].containers)
    np.testing.assert_allclose(first.get_ydata(orig=False), [0.25, -0.05])
    np.testing.assert_allclose(second.get_ydata(orig=False), [0.3, -0.05])
    assert "2 seeds" in figure.get_suptitle()
    assert legend_texts(figure)[1] == "replay: 12.5 on average"


def test_forgetting_of_a_partial_run_is_that_of_the_tasks_it_has_learned() -> None:
    partial = record_of(status="partial", matrix=[MATRIX[0], MATRIX[1], [None] * 3])
    figure = forgetting([run_of(record_of("replay")), run_of(partial)])
    check_readable(figure)
    _, second = (container[0] for container in figure.axes[0].containers)
    np.testing.assert_allclose(second.get_ydata(orig=False), [0.1])
    assert "partial: 2 tasks" in legend_texts(figure)[1]


def test_growth_shows_every_method_and_a_copy_a_task() -> None:
    ledger = ledger_of(*[ledger_row(1)] * 3)
    nothing = ledger_of(*[ledger_row(1, stored_parameters=0)] * 3)
    runs = [
        run_of(record_of("adapter")),
        run_of(record_of("finetune", ledger=ledger)),
        run_of(record_of("majority", ledger=nothing)),
    ]
    figure = growth(runs)
    check_readable(figure)
    copies, adapter, finetune, majority = figure.axes[0].lines
    np.testing.assert_allclose(copies.get_ydata(orig=False), [1, 2, 3])
    np.testing.assert_allclose(adapter.get_ydata(orig=False), [1.1, 1.2, 1.3])
    np.testing.assert_allclose(finetune.get_ydata(orig=False), [1.1] * 3)
    assert np.isnan(majority.get_ydata(orig=False)).all()
    assert majority.get_label() == "majority: no parameters"


def test_cost_has_a_panel_for_operations_where_they_were_counted() -> None:
    runs = [
        run_of(record_of("adapter", 0, flops=flops_of(10**12, 2 * 10**12, 3 * 10**12))),
        run_of(record_of("adapter", 1, flops=flops_of(10**12, 2 * 10**12, 5 * 10**12))),
        run_of(record_of("tfidf")),
    ]
    figure = cost(runs)
    check_readable(figure)
    seconds, operations, _legend = figure.axes
    assert [c[0].get_xdata(orig=False)[0] for c in seconds.containers] == [60.0, 60.0]
    assert [c[0].get_xdata(orig=False)[0] for c in operations.containers] == [7e12]
    assert operations.get_xlabel().endswith("none or not recorded: tfidf")
    assert len(cost(runs[2:]).axes) == 2


def test_scores_stand_against_trained_and_stored_parameters() -> None:
    """Trained: mean over the tasks of 10,000, 20,000 and 30,000. Stored: 1.3 times the base."""
    untrained = ledger_of(*(ledger_row(k, trained_parameters=0) for k in (1, 2, 3)))
    runs = [run_of(record_of("adapter", seed)) for seed in (0, 1)]
    figure = parameters([*runs, run_of(record_of("majority", ledger=untrained))])
    check_readable(figure)
    trained, stored, _legend = figure.axes
    assert [c[0].get_xdata(orig=False)[0] for c in trained.containers] == [20_000.0]
    assert [c[0].get_xdata(orig=False)[0] for c in stored.containers] == [1.3, 1.3]
    np.testing.assert_allclose(stored.containers[0][0].get_ydata(orig=False), [1.25 / 3])
    assert "logarithmic\nnone or not recorded: majority\n" in trained.get_xlabel()
    labels = legend_texts(figure)
    assert labels == ["adapter: 41.7", "majority: 41.7"]  # a front of one has no steps


def test_logarithmic_axes_say_so() -> None:
    """Straight growth is bent on them."""
    sizes = [sized(1, [0.1] * 3), sized(64, [0.2] * 3)]
    figures = [growth(FULL), cost(FULL), parameters(FULL), tradeoff([*FULL, *sizes])]
    figures.append(against_setting(sizes, "learner.size")[0])
    for axes in (axes for figure in figures for axes in figure.axes):
        for scale, label in (
            (axes.get_xscale(), axes.get_xlabel()),
            (axes.get_yscale(), axes.get_ylabel()),
        ):
            assert ("logarithmic" in label) == (scale == "log" and bool(label))
    assert any("logarithmic" in axes.get_xlabel() for axes in figures[-1].axes)


@pytest.mark.parametrize("ends", [(0.8, 1.7), (0.99, 1.06), (13, 19), (0.9, 6.2), (3, 90)])
def test_a_logarithmic_axis_has_numbers_however_little_it_spans(ends: tuple[float, float]) -> None:
    figure = new_figure(4, 3, "")
    axes = figure.subplots()
    axes.set_xlim(ends)
    label_log_axis(axes.xaxis, "", FuncFormatter(lambda value, _: f"{value:g}"))
    figure.draw_without_rendering()
    places = [place for place in axes.get_xticks() if ends[0] <= place <= ends[1]]
    numbers = {tick.get_text() for tick in axes.get_xticklabels()}
    assert len(places) >= 3
    assert {f"{place:g}" for place in places} <= numbers


def test_stability_curves_run_over_all_steps() -> None:
    probe = probe_of(
        *((0, 0, [0.1]), (0, 4, [0.9])),
        *((1, 0, [0.9, 0.2]), (1, 2, [0.3, 0.6]), (1, 5, [0.5, 0.8])),
        *((2, 0, [0.5, 0.8, 0.0]), (2, 2, [0.7, 0.4, 0.9])),
    )
    figure = stability([run_of(record_of(probe=probe)), run_of(record_of("frozen"))])
    check_readable(figure)
    (axes,) = figure.axes
    first, second, third, *means = axes.lines[:5]
    np.testing.assert_allclose(first.get_xdata(orig=False), [0, 4, 4, 6, 9, 9, 11])
    np.testing.assert_allclose(first.get_ydata(orig=False), [0.1, 0.9, 0.9, 0.3, 0.5, 0.5, 0.7])
    np.testing.assert_allclose(second.get_ydata(orig=False), [0.2, 0.6, 0.8, 0.8, 0.4])
    np.testing.assert_allclose(third.get_xdata(orig=False), [9, 11])
    np.testing.assert_allclose(means[0].get_ydata(orig=False), [0.9, 0.3, 0.5])
    np.testing.assert_allclose(means[1].get_ydata(orig=False), [0.65, 0.55])
    assert "(min-ACC) 35.0 %" in axes.get_title("left")  # (0.3 + 0.4) / 2
    with pytest.raises(NothingToDrawError, match=r"probe\.every=N"):
        stability([run_of(record_of())])


# --- the Pareto front


def test_the_front_has_who_is_beaten_by_nobody() -> None:
    points = [(3.0, 0.7), (1.0, 0.5), (2.0, 0.5), (math.nan, 0.9), (0.0, 0.1), (3.0, 0.7)]
    assert pareto_front(points) == [4, 1, 0, 5]  # equal ones do not beat each other


def test_the_front_is_drawn_and_named() -> None:
    def run(learner: str, trained: int, score: float) -> RecordedRun:
        rows = [ledger_row(k, trained_parameters=trained) for k in (1, 2, 3)]
        metrics = METRICS | {"average_score": score}
        return run_of(record_of(learner, ledger=ledger_of(*rows), metrics=metrics))

    runs = [
        *(run("lora", 100, 0.6), run("adapter", 1000, 0.7), run("topk", 2000, 0.65)),
        *(run("majority", 0, 0.3), run("joint", 100, 0.9)),
    ]
    figure = parameters(runs)
    check_readable(figure)
    trained, stored, _legend = figure.axes
    (steps,) = [line for line in trained.lines if str(line.get_label()).startswith("Pareto")]
    np.testing.assert_allclose(steps.get_xydata(), [[100, 0.6], [1000, 0.7]])
    label = " ".join(trained.get_xlabel().split())
    assert label.endswith("Pareto front by the means: majority; lora; adapter")
    assert stored.get_xlabel().endswith("Pareto front by the means: adapter")
    texts = legend_texts(figure)
    assert "joint, all tasks at once, not a stream: 90.0" in texts
    assert not any("Pareto" in str(line.get_label()) for line in cost(runs).axes[0].lines)


# --- against a choice


def final(learner: str, scores: list[float], seed: int = 0, **changes: Any) -> RecordedRun:
    """A run that ends with these scores."""
    matrix = [MATRIX[0], MATRIX[1], scores]
    return RecordedRun(
        Path(f"{learner}-{seed}"), record_of(learner, seed, matrix=matrix, **changes)
    )


def sized(size: int, scores: list[float], seed: int = 0, **settings: Any) -> RecordedRun:
    """An adapter run whose trained parameters grow with its size."""
    rows = [ledger_row(k, trained_parameters=1000 * size * k) for k in (1, 2, 3)]
    config = {"learner": {"size": size} | settings, "training": {"epochs": 3}}
    return final("adapter", scores, seed, config=config, ledger=ledger_of(*rows))


FULL = [final("independent", [0.5, 0.6, 0.2], 0), final("independent", [0.7, 0.6, 0.4], 1)]


def test_tradeoff_percentiles_by_hand() -> None:
    """Differences 0.3, -0.1, 0.0 from full fine-tuning's means; linear between the ranks."""
    full, adapter = build_methods([*FULL, sized(8, [0.9, 0.5, 0.3])])
    expected = [-0.1 + 0.4 * 0.1, 0.0, 0.6 * 0.3]
    np.testing.assert_allclose(relative_percentiles(adapter, full), expected, atol=1e-12)


def test_tradeoff_draws_one_line_a_learner_over_its_sizes() -> None:
    own = [sized(64, [0.9, 0.5, 0.3]), sized(8, [0.6, 0.6, 0.3]), final("topk", [0.5] * 3)]
    figure = tradeoff([*FULL, *own])
    check_readable(figure)
    heading = " ".join(figure.get_suptitle().split())
    assert heading.endswith("means over 1 to 2 seeds")  # the bars are of the tasks
    adapter, topk = (container[0] for container in figure.axes[0].containers)
    np.testing.assert_allclose(
        adapter.get_xdata(orig=False), [16_000, 128_000]
    )  # means over the tasks
    np.testing.assert_allclose(adapter.get_ydata(orig=False), [0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(topk.get_xdata(orig=False), [20_000])
    with pytest.raises(NothingToDrawError, match="no complete run is independent"):
        tradeoff(own)


def test_an_ablation_draws_every_task_with_the_band_of_full_fine_tuning() -> None:
    runs = [
        *(sized(64, [0.9, 0.5, 0.3]), sized(64, [0.7, 0.5, 0.3], 1), sized(8, [0.6, 0.6, 0.1])),
        *FULL,
    ]
    figure, left_out = against_setting(runs, "learner.size")
    check_readable(figure)
    assert left_out == []
    panel = figure.axes[0]
    points = panel.containers[0][0]
    np.testing.assert_allclose(points.get_xdata(orig=False), [8, 64])
    np.testing.assert_allclose(points.get_ydata(orig=False), [0.6, 0.8])
    bar = panel.containers[0][2][0].get_segments()[1]
    half_width = 12.706 * 0.02**0.5 / 2**0.5  # of 0.7 and 0.9; t(0.975, 1) from a table
    np.testing.assert_allclose(bar[:, 1], [0.8 - half_width, 0.8 + half_width], atol=1e-4)
    band = [line for line in panel.lines if str(line.get_label()).startswith("full")]
    np.testing.assert_allclose(band[0].get_ydata(orig=False), 0.6)
    assert panel.get_xscale() == "linear"
    assert "independent" in figure.legends[0].get_texts()[0].get_text()


def test_trained_parameters_put_learners_into_one_panel_by_task() -> None:
    runs = [sized(1, [0.1] * 3), sized(512, [0.2] * 3), final("layernorm", [0.3] * 3), *FULL]
    found = by_setting(runs, "trained_parameters")
    assert [series.label for series in found.series] == ["adapter", "layernorm"]
    assert found.positions(found.series[0], task=2) == [3000.0, 1_536_000.0]
    assert found.positions(found.series[1], task=2) == [30_000.0]
    assert found.is_log
    assert found.band is not None


def test_settings_beside_the_one_on_the_axis_are_lines_of_their_own() -> None:
    runs = [sized(size, [0.1] * 3, form=form) for form in ("a", "b") for size in (1, 2)]
    found = by_setting(runs, "learner.size")
    assert [series.label for series in found.series] == ["adapter (form=a)", "adapter (form=b)"]
    assert not by_setting(runs, "learner.form").is_numeric
    with pytest.raises(UserError, match="has several methods of adapter"):
        by_setting(runs, "trained_parameters")


def test_variants_stand_side_by_side_by_name() -> None:
    forms = ("sequential", "parallel", "$x^2$ with a name that goes on and on and on and on")
    runs = [sized(8, [0.1 * k] * 3, form=form) for k, form in enumerate(forms)]
    figure, _ = against_setting(runs, "method")
    texts = check_readable(figure)
    assert any("form=parallel" in text for text in texts)
    figure, left_out = against_setting([*runs, final("topk", [0.1] * 3)], "learner.form")
    check_readable(figure)
    assert left_out == ["left out: topk has no setting learner.form: topk-0"]


def test_an_ablation_names_what_it_cannot_use() -> None:
    runs = [sized(8, [0.1] * 3), sized(64, [0.2] * 3), final("topk", [0.3] * 3)]
    runs.append(sized(2, [0.1] * 3, 7))
    runs[-1].record.status = "partial"
    found = by_setting(runs, "learner.size")
    assert [x for series in found.series for x in series.values] == [8, 64]
    assert found.left_out == [
        "left out, not complete: adapter-7",
        "left out: topk has no setting learner.size: topk-0",
    ]
    with pytest.raises(UserError, match=r"Did you mean .learner\.size."):
        by_setting(runs, "learner.sizes")
    with pytest.raises(UserError, match=r"training\.epochs has one value in all runs"):
        by_setting(runs, "training.epochs")


def test_orders_average_seeds_and_keep_partial_runs_out() -> None:
    def ordered(
        learner: str, kind: str, score: float, seed: int = 0, **changes: Any
    ) -> RecordedRun:
        order = {"given": ORDER, "reversed": ORDER[::-1]}[kind]
        config = {"learner": {}, "order": kind}
        metrics = METRICS | {"average_score": score}
        changes |= {"order": order, "config": config, "metrics": metrics}
        return run_of(record_of(learner, seed, **changes))

    runs = [
        *(ordered("replay", "given", 0.4, 0), ordered("replay", "given", 0.6, 1)),
        *(ordered("replay", "reversed", 0.8), ordered("frozen", "given", 0.3)),
        ordered("frozen", "reversed", 0.9, status="partial"),
    ]
    expected = {"replay": [("given", 0.5), ("reversed", 0.8)], "frozen": [("given", 0.3)]}
    found = order_scores(runs)
    assert {k: [(o, pytest.approx(s)) for o, s in v] for k, v in found.items()} == expected
    texts = check_readable(orders(runs))
    assert any("range 30.0" in text for text in texts)
    with pytest.raises(NothingToDrawError, match="several orders"):
        orders(runs[3:])


@pytest.mark.parametrize(
    "draw", [forgetting, growth, cost, average], ids=lambda draw: draw.__name__
)
def test_figures_of_26_tasks_are_readable(draw: Callable[[list[RecordedRun]], Figure]) -> None:
    learners = ("adapter", "a_learner_with_a_name_of_40_letters_and_$s$", "replay", "frozen")
    texts = check_readable(draw([run_of(wide_record(name)) for name in learners]))
    assert any("generated data" in " ".join(text.split()) for text in texts)


# --- files and exit codes


def test_figures_writes_every_run_in_three_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = {"matrix": lambda record: new_figure(2, 2, record.learner)}
    monkeypatch.setattr("analysis.figures.write.FIGURES", tiny)
    monkeypatch.setitem(TOGETHER, "average", lambda runs: new_figure(2, 2, str(len(runs))))
    for number, learner in enumerate(("replay", "replay", "finetune")):
        write(tmp_path / "runs" / str(number), record_of(learner))
    out = tmp_path / "out"
    command = ["figures", str(tmp_path / "runs"), "--out", str(out), "--only", "runs,average"]
    assert main(command) == 0
    stems = ("replay_seed0_matrix", "replay_seed0_2_matrix", "finetune_seed0_matrix", "average")
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(written) == {f"{s}.{kind}" for s in stems for kind in ("png", "svg", "pdf")}
    assert written["average.pdf"].startswith(b"%PDF")
    assert len(capsys.readouterr().out.splitlines()) == len(written)
    assert main(command) == 0  # no file says when it was written
    assert {path.name: path.read_bytes() for path in out.iterdir()} == written


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn, but not written."""

    def named(figure: Figure, folder: Path, name: str, formats: tuple[str, ...]) -> list[Path]:
        del figure, formats
        return [folder / name]

    monkeypatch.setattr("analysis.figures.write.save", named)


@pytest.mark.usefixtures("unsaved")
def test_figures_draws_everything_that_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a", record_of("independent"))
    probe = probe_of((0, 0, [0.1]), (0, 2, [0.4]))
    write(tmp_path / "b", record_of("replay", probe=probe))
    write(tmp_path / "c", record_of("replay", order=[ORDER[1], ORDER[0], ORDER[2]]))
    assert main(["figures", str(tmp_path), "--out", "o"]) == 0
    output = capsys.readouterr()
    assert {Path(line).name for line in output.out.splitlines()} >= set(TOGETHER)
    assert output.err == ""
    assert main(["figures", str(tmp_path), "--out", "o", "--only", "cost"]) == 1
    output = capsys.readouterr()
    assert output.out == "o/cost\n"
    assert "order: task 1 is sst2 and crowdflower" in output.err


@pytest.mark.usefixtures("unsaved")
def test_figures_names_what_it_cannot_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write(tmp_path / "one", record_of())
    other = write(tmp_path / "other", record_of("replay", stream="glue"))
    assert main(["figures", str(one), str(other), "--out", "o"]) == 1
    output = capsys.readouterr()
    assert [Path(line).name for line in output.out.splitlines()] == [
        *(f"finetune_seed0_{name}" for name in ("matrix", "scores", "forgetting", "parameters")),
        *(f"replay_seed0_{name}" for name in ("matrix", "scores", "forgetting", "parameters")),
    ]
    stability_line, stream_line = output.err.splitlines()
    assert stability_line.startswith("figures: no figure stability: no run has a probe")
    assert stream_line.endswith("stream: custom and glue")
    for options, reason in (
        (["--only", "stability"], "nothing to draw"),
        (["--only", "matrix"], "unknown figure 'matrix'. Did you mean 'matrices'?"),
        (["--x", "learner.lr"], "learner.lr has one value in all runs"),
    ):
        assert main(["figures", str(one), "--out", "o", *options]) == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {reason}")


@pytest.mark.usefixtures("unsaved")
def test_x_draws_one_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for size in (1, 8, 64):
        write(tmp_path / str(size), sized(size, [0.1] * 3).record)
    assert main(["figures", str(tmp_path), "--out", "o", "--x", "learner.size"]) == 0
    assert capsys.readouterr().out == "o/ablation_learner.size\n"
    write(tmp_path / "topk", final("topk", [0.1] * 3).record)
    assert main(["figures", str(tmp_path), "--out", "o", "--x", "learner.size"]) == 1
    assert capsys.readouterr().err.endswith(f"no setting learner.size: {tmp_path / 'topk'}\n")
