"""Many methods in one figure: told apart by their looks, and by the names beside their lines."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.text import Annotation, Text

from analysis.figures.along_stream import are_bands_clear, average, growth
from analysis.figures.forgetting_marks import forgetting
from analysis.figures.line_ends import spread
from analysis.figures.matrices import matrices
from analysis.figures.score_against import cost, parameters
from analysis.figures.style import far_below
from analysis.looks import DASHES, MARKERS, look_of
from analysis.runs.collect import RecordedRun
from stream.formatting import TIMES, percent
from tests.analysis.made_runs import ledger_of, ledger_row, record_of, runs_of
from tests.analysis.test_forgetting import SIGHTS, seen
from tests.figure_texts import check_readable, legend_texts

NUMBER = 32
PLAIN_TO_SEE = 10  # distance in CIELAB


@pytest.mark.parametrize("sight", ["full", *SIGHTS])
def test_any_two_of_32_lines_and_marks_differ_for_all_eyes(sight: str) -> None:
    looks = [look_of(index) for index in range(NUMBER)]
    labs = [seen(look.colour, sight) for look in looks]
    for one, other in itertools.combinations(range(NUMBER), 2):
        is_plain = np.linalg.norm(labs[one] - labs[other]) > PLAIN_TO_SEE
        first, second = looks[one], looks[other]
        assert is_plain or first.dashes != second.dashes
        assert is_plain or (first.marker, first.is_hollow) != (second.marker, second.is_hollow)


def test_a_look_is_the_same_in_all_its_languages() -> None:
    """No two shapes or patterns have one name in any of them; outlines fill the square of 12."""
    for values in (MARKERS, DASHES):
        for language in ("matplotlib", "plotly", "svg"):
            assert len({getattr(value, language) for value in values}) == len(values)
    for marker in MARKERS:
        assert MarkerStyle(marker.matplotlib).get_path() is not None
    assert look_of(8).symbol == f"{look_of(8).marker.plotly}-open"
    assert (look_of(0).filling, look_of(8).filling) == (look_of(0).colour, "#FFFFFF")


@given(
    st.lists(st.floats(-2, 3), min_size=1, max_size=20),
    st.floats(0.001, 0.2),
)
def test_names_are_spread_as_little_as_need_be(wanted: list[float], room: float) -> None:
    """Against their definition: apart, in order, inside; and no name moves without a neighbour."""
    places = spread(np.array(wanted), room)
    ordered = places[np.argsort(wanted, kind="stable")]
    assert (np.diff(ordered) >= room - 1e-9).all()
    low, high = room / 2, 1 - room / 2
    if room * len(wanted) <= 1:
        assert low - 1e-9 <= ordered[0]
        assert ordered[-1] <= high + 1e-9
    else:
        assert ordered[0] + ordered[-1] == pytest.approx(1)  # as far above as below
        return
    for place, want in zip(places, wanted, strict=True):
        if place == pytest.approx(np.clip(want, low, high)):
            continue
        others = np.sort(np.abs(places - place))[1:2]
        assert others == pytest.approx(room)  # it touches one


def many(number: int, num_seeds: int = 2, num_tasks: int = 3) -> list[RecordedRun]:
    """Runs of methods whose scores, sizes and times all differ."""
    generator = np.random.default_rng(0)
    records = []
    for method in range(number):
        for seed in range(num_seeds):
            scores = generator.uniform(0, 1, (num_tasks, num_tasks)).round(4)
            matrix = [
                [float(s) if j <= i else None for j, s in enumerate(row)]
                for i, row in enumerate(scores)
            ]
            rows = [
                ledger_row(k + 1, stored_parameters=1_000_000 + 10_000 * (method + 1) * (k + 1))
                for k in range(num_tasks)
            ]
            metrics = {
                "average_score": float(scores[-1].mean()),
                **dict.fromkeys(("learning_score", "bwt", "forgetting"), 0.0),
            }
            order = [f"task_{n}" for n in range(num_tasks)]
            changes: dict[str, Any] = {"ledger": ledger_of(*rows), "metrics": metrics}
            records.append(
                record_of(f"method_{method:02}", seed, matrix=matrix, order=order, **changes)
            )
    return runs_of(*records)


@pytest.mark.parametrize("number", [1, 3, 12, 30])
@pytest.mark.parametrize("draw", [average, growth, forgetting, cost, parameters, matrices])
def test_figures_of_many_methods_can_be_read(
    draw: Callable[[list[RecordedRun]], Figure], number: int
) -> None:
    texts = " ".join(check_readable(draw(many(number))))
    assert all(f"method_{method:02}" in texts for method in range(number))


@pytest.mark.parametrize("number", [3, 30])
def test_every_line_has_its_name_at_its_end(number: int) -> None:
    """Read back: each name stands beside a sample of its line, and is joined to where that ends."""
    runs = many(number)
    figure = average(runs)
    figure.draw_without_rendering()
    axes, room = figure.axes
    names = [text for text in room.texts if not isinstance(text, Annotation)]
    joins = [text for text in room.texts if isinstance(text, Annotation)]
    samples = room.lines
    assert len(axes.lines) == len(names) == len(joins) == len(samples) == number
    heights = {}
    for line, name, join, sample in zip(axes.lines, names, joins, samples, strict=True):
        assert name.get_text() == line.get_label()
        assert (sample.get_color(), sample.get_linestyle()) == (
            line.get_color(),
            line.get_linestyle(),
        )
        assert sample.get_marker() == line.get_marker()
        assert sample.get_markerfacecolor() == line.get_markerfacecolor()
        end = line.get_xydata()[-1]
        np.testing.assert_allclose(join.xy, end)
        heights[end[1]] = name.get_position()[1]
        average_score = end[1]
        assert f": {percent(average_score)} ± " in name.get_text()
    ordered = [heights[end] for end in sorted(heights)]
    assert ordered == sorted(ordered)  # the highest line has the highest name


def test_bands_are_left_out_where_they_would_hide_the_lines() -> None:
    line = np.array([0.5, 0.6])
    narrow = [(line + 0.1 * n, np.full(2, 0.001)) for n in range(10)]
    wide = [(line + 0.1 * n, np.full(2, 0.2)) for n in range(10)]
    assert are_bands_clear(narrow)
    assert not are_bands_clear(wide)
    assert are_bands_clear(wide[:4])
    assert len(average(many(4)).axes[0].collections) == 4
    assert not average(many(12)).axes[0].collections
    assert "± half of the 95% t interval" in average(many(12)).get_suptitle()


def test_who_stores_next_to_nothing_leaves_the_axis_to_others() -> None:
    nothing = ledger_of(
        *(ledger_row(k, stored_parameters=4, trained_parameters=1) for k in (1, 2, 3))
    )
    runs = [*many(4, 1), *runs_of(record_of("majority", ledger=nothing))]
    figure = growth(runs)
    check_readable(figure)
    axes, room = figure.axes
    assert axes.get_ylim()[0] > 0.5
    texts = [text.get_text() for text in room.texts]
    assert f"majority: < 0.001{TIMES}, below this axis" in texts
    figure = parameters(runs)
    check_readable(figure)
    trained, stored, _legend = figure.axes
    assert stored.get_xlim()[0] > 0.5
    assert trained.get_xlim()[0] > 100
    assert "far left of this axis: majority (1)" in trained.get_xlabel()
    assert "majority: 41.7" in legend_texts(figure)  # its score is known all the same


def test_few_values_are_far_below() -> None:
    assert far_below([2.0, 300.0, 400.0, 500.0]) == {0}
    assert far_below([2.0, 150.0, 400.0, 500.0]) == set()
    assert far_below([2.0, 3.0, 400.0, 500.0]) == set()  # half of all are not few
    assert far_below([0.0, 300.0, 400.0, 500.0]) == set()


def test_who_forgets_nothing_is_listed_without_marks() -> None:
    still = [[0.5, None, None], [0.5, 0.5, None], [0.5, 0.5, 0.5]]
    runs = runs_of(record_of("adapter", matrix=still), record_of("finetune"))
    figure = forgetting(runs)
    check_readable(figure)
    assert legend_texts(figure) == ["finetune: 12.5 on average", "adapter: exactly 0 for each task"]
    assert len(figure.axes[0].containers) == 1
    alone = forgetting(runs[:1])
    assert len(alone.axes[0].containers) == 1  # not an empty figure


def test_one_task_shows_its_intervals_and_says_that_nothing_can_be_forgotten() -> None:
    from stream.report.plots import forgetting_curves

    runs = runs_of(*(record_of(seed=s, order=["cola"], matrix=[[0.5 + 0.1 * s]]) for s in (0, 1)))
    axes = average(runs).axes[0]
    (bar,) = axes.containers
    half = 12.7062 * 0.05  # t(0.975, 1) from a table, times the standard error by hand
    np.testing.assert_allclose(
        bar[2][0].get_segments()[0][:, 1], [0.55 - half, 0.55 + half], rtol=1e-4
    )
    texts = [t.get_text() for t in forgetting_curves(runs[0].record).findobj(Text)]
    assert any("one task forgets nothing" in text for text in texts)


def test_small_heat_maps_are_numbered_and_not_written_in() -> None:
    figure = matrices(many(12, 1, num_tasks=8))
    check_readable(figure)
    *panels, _bar = figure.axes
    assert not any(axes.texts for axes in panels)
    labels = [label.get_text() for label in panels[0].get_yticklabels()]
    assert labels == [str(n) for n in range(1, 9)]
    assert figure.get_size_inches().max() < 25
