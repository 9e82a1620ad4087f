"""Forgetting maps and curves: their values by hand, their colours, and that all can be read."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from analysis.figures.along_stream import growth
from analysis.figures.forgetting_curves import changes_of, forgetting_curves
from analysis.figures.forgetting_map import forgetting_map, lost_by_task, luminance, scale_of
from analysis.figures.style import NothingToDrawError
from analysis.looks import COLOURS, look_of
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import build_methods
from analysis.runs.values import metric
from stream.formatting import DASH, MINUS
from stream.metrics import forgetting as chaudhry
from stream.report.forgetting_curves import shades
from tests.analysis.made_runs import MATRIX, METRICS, record_of, runs_of
from tests.figure_texts import check_readable
from tests.metrics import worked_example

HALF = [[0.5, None, None], [0.5, 0.5, None], [0.5, 0.5, 0.5]]


# --- who forgot what


def ends_with(matrix: np.ndarray, seed: int = 0, learner: str = "finetune") -> RecordedRun:
    """A run of as many tasks as the matrix has."""
    scores = [[s if j <= i else None for j, s in enumerate(row)] for i, row in enumerate(matrix)]
    order = [f"task{n}" for n in range(len(matrix))]
    metrics = METRICS | {"forgetting": chaudhry(matrix)}
    return runs_of(record_of(learner, seed, order=order, matrix=scores, metrics=metrics))[0]


def cells_of(axes: Axes) -> list[np.ndarray]:
    """What the heat map draws: the tasks, and their means."""
    return [mesh.get_array().filled(np.nan) for mesh in axes.collections]


def test_the_heat_map_is_that_of_the_worked_example() -> None:
    """By hand: 0.90 - 0.70, 0.85 - 0.80, 0.80 - 0.60; the last task can have lost nothing."""
    figure = forgetting_map([ends_with(worked_example.R)])
    lost, means = cells_of(figure.axes[0])
    assert lost.dtype == np.float64
    np.testing.assert_allclose(lost, [[0.20, 0.05, 0.20, np.nan]], atol=1e-12)
    np.testing.assert_allclose(means, [[chaudhry(worked_example.R)]], atol=1e-12)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["20.0", "5.0", "20.0", DASH, "15.0"]


@given(arrays(np.float64, (3, 4, 4), elements=st.floats(-1, 1)))
@settings(max_examples=20, deadline=None)
def test_a_row_s_mean_is_the_forgetting_of_the_table(matrices: np.ndarray) -> None:
    runs = [ends_with(matrix, seed) for seed, matrix in enumerate(matrices)]
    (method,) = build_methods(runs)
    row = lost_by_task(method)
    assert np.isnan(row).tolist() == [False, False, False, True]
    table = method.estimate(metric("forgetting")).mean
    np.testing.assert_allclose(row[:-1].mean(), table, atol=1e-12)


def test_undefined_is_never_zero_and_least_forgetting_stands_on_top() -> None:
    partial = record_of("lwf", status="partial", matrix=[MATRIX[0], MATRIX[1], [None] * 3])
    unknown = record_of("topk", matrix=[MATRIX[0], [None, 0.7, None], MATRIX[2]])
    runs = runs_of(unknown, record_of(), partial, record_of("frozen", matrix=HALF))
    figure = forgetting_map(runs)
    check_readable(figure)
    lost, means = cells_of(figure.axes[0])
    nan = np.nan
    expected = [[0, 0, nan], [0.1, nan, nan], [0.3, -0.05, nan], [nan, nan, nan]]
    np.testing.assert_allclose(lost, expected, atol=1e-12)
    np.testing.assert_allclose(means[:, 0], [0, 0.1, 0.125, nan], atol=1e-12)
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["frozen", "lwf, partial: 2 tasks", "finetune", "topk"]
    with pytest.raises(NothingToDrawError, match="two tasks"):
        forgetting_map(runs_of(record_of(order=["cola"], matrix=[[0.9]])))


def test_white_is_for_exactly_nothing_lost() -> None:
    """Also where the most that was lost is a hundred times more; gains mirror losses."""
    colours, norm = scale_of(np.array([[0.9, 0.0, np.nan]]))

    def shade(lost: float) -> tuple[float, ...]:
        return colours(norm(lost))[:3]

    assert shade(0.0) == (1, 1, 1)
    for small in (0.0001, -0.0001):
        assert min(shade(small)) < 0.93
    darkness = [luminance(shade(lost)) for lost in (0.0, 0.1, 0.3, 0.6, 0.9)]
    assert darkness == sorted(darkness, reverse=True)  # also in grey, more is darker
    assert darkness[-1] < 0.15


# Machado, Oliveira and Fernandes 2009: sight without one kind of cone, on linear sRGB.
SIGHTS = {
    "protanopia": [
        *([0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216]),
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        *([0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413]),
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        *([1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602]),
        [0.004733, 0.691367, 0.303900],
    ],
}


def seen(colour: Any, sight: str) -> np.ndarray:
    """A colour in CIELAB, as eyes of that kind see it."""
    srgb = np.array(to_rgb(colour))
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(SIGHTS[sight]) @ linear if sight in SIGHTS else linear, 0, 1)
    if sight == "grey":
        linear = np.full(3, linear @ [0.2126, 0.7152, 0.0722])
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = (np.array(to_xyz) @ linear) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", ["full", *SIGHTS])
def test_colours_are_told_apart_by_all_eyes(sight: str) -> None:
    """CIELAB distances (1976): 10 is plain to see. In grey, methods are told by their shapes."""
    colours, norm = scale_of(np.array([[1.0]]))
    loss, gain, none = (seen(colours(norm(lost))[:3], sight) for lost in (0.5, -0.5, 0.0))
    assert np.linalg.norm(loss - gain) > 30
    assert min(np.linalg.norm(loss - none), np.linalg.norm(gain - none)) > 30
    labs = [seen(colour, sight) for colour in COLOURS]
    for one, other in itertools.combinations(range(len(COLOURS)), 2):
        assert np.linalg.norm(labs[one] - labs[other]) > 10
        assert look_of(one).marker != look_of(other).marker


def test_curves_go_from_dark_to_light_also_in_grey() -> None:
    light = [seen(colour, "grey")[0] for colour in shades(26)]
    assert light == sorted(light)
    assert light[-1] - light[0] > 50
    assert light[-1] < 85  # and still stand out on white


# --- forgetting curves


def test_a_method_s_curves_are_means_over_its_seeds() -> None:
    """The worked example, and a run that loses nothing: half of the changes by hand."""
    constant = np.tile(np.diag(worked_example.R), (4, 1))
    runs = [ends_with(worked_example.R, 0), ends_with(constant, 1)]
    (method,) = build_methods(runs)
    nan = np.nan
    by_hand = [[0, nan, nan, nan], [-5, 0, nan, nan], [-2.5, -5, 0, nan], [-10, -2.5, -10, 0]]
    np.testing.assert_allclose(changes_of(method), np.array(by_hand) / 100, atol=1e-12)
    figure = forgetting_curves([*runs, ends_with(constant, 0, "frozen")])
    check_readable(figure)
    panel, still, _bar = figure.axes
    drawn = [line.get_ydata(orig=False) for line in panel.lines[1:-1]]
    np.testing.assert_allclose(drawn[0], [0, -0.05, -0.025, -0.10], atol=1e-12)
    np.testing.assert_allclose(drawn[2], [0, -0.10], atol=1e-12)
    mean = panel.lines[-1].get_ydata(orig=False)
    np.testing.assert_allclose(mean, [nan, -0.05, -0.0375, -0.075], atol=1e-12)
    title = "finetune\nmost lost: 1 · task0 -10.0\n3 · task2 -10.0"
    assert panel.get_title("left") == title.replace("-", MINUS)
    assert still.get_title("left") == "frozen\nno task is worse at the end"
    with pytest.raises(NothingToDrawError, match="one task"):
        forgetting_curves(runs_of(record_of(order=["cola"], matrix=[[0.9]])))


def test_names_are_never_cut() -> None:
    """Neither of 26 long task titles nor of a learner with many settings."""
    given = {f"a_setting_with_a_long_name_{n}": "some value" for n in range(3)}
    titles = [f"A task with a title of fifty-odd letters, number {n:02}" for n in range(26)]
    names = {"order": [f"t{n}" for n in range(26)], "titles": titles}
    several = record_of("replay", config={"learner": given}, **names)
    usual = [record_of("replay", seed, config={"learner": {}}, **names) for seed in (0, 1)]
    runs = runs_of(several, *usual)
    several, usual = build_methods(runs)
    assert [several.label, usual.label] == ["replay #1", "replay #2"]
    assert len(several.settings) == 121
    for draw in (forgetting_map, forgetting_curves, growth):
        texts = check_readable(draw(runs))
        together = " ".join(" ".join(texts).split())
        assert {"replay #1", "replay #2"} <= {part[:9] for part in texts}
        assert several.settings in together
        if draw is not forgetting_curves:
            assert {f"{n} · {title}" for n, title in enumerate(titles, start=1)} <= set(texts)
