"""The report in a real browser: no error, no request, and what is moved really changes the page."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.figures.forgetting_map import luminance
from analysis.report.write import render
from stream.record.parts import TaskTimes, TimingRecord
from stream.record.run_record import RunRecord
from tests.analysis import browser
from tests.analysis.made_runs import MATRIX, METRICS, ORDER, flops_of, probe_of, record_of, runs_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        browser.PATH is None, reason="no chromium: apt-get install chromium brings one"
    ),
]
LAPTOP, PHONE = (1366, 768), (390, 844)
LONG = "A title without any space: " + "x" * 80 + "<b>\u202e"
STEPS = TaskTimes(steps=[4, 4, 4])
# With those against joint runs, 14 wide columns: 20.0 ± 127.1 and the like.
MANY_METRICS = dict.fromkeys((*METRICS, "min_acc", "wc_acc"), 0.2)


def made(learner: str, seed: int, shift: float) -> RunRecord:
    """A run with everything that a report can show."""
    return record_of(
        learner,
        seed,
        titles=[LONG, "CF US economy", "CoLA"],
        timing=TimingRecord(train_s=9876.5 * seed, evaluate_s=12.0, by_task=STEPS),
        metrics={name: value * seed for name, value in MANY_METRICS.items()},
        matrix=[[s if s is None else s - shift for s in row] for row in MATRIX],
        losses={name: [1.0, 0.5, 0.4, 0.3] for name in ORDER},
        probe=probe_of(*((k, 2, [0.5] * (k + 1)) for k in range(3))),
        flops=flops_of(10**9, 10**9, 10**9),
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    learners = ("adapter", 0.0), ("finetune", 0.2), ("joint", 0.1)
    runs = [made(name, seed, shift) for name, shift in learners for seed in (1, 2)]
    file = tmp_path_factory.mktemp("report") / "report.html"
    problems = ["left out: " + "/folder" * 30]
    file.write_text(render(runs_of(*runs), problems), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    opened = browser.Browser()
    yield opened
    opened.close()


def draw_all(chromium: browser.Browser) -> None:
    chromium.run("dispatchEvent(new Event('beforeprint'))")


@pytest.mark.parametrize(("size", "is_phone"), [(LAPTOP, False), (PHONE, True)])
def test_it_opens_without_error_request_and_overflow(
    chromium: browser.Browser, page: Path, size: tuple[int, int], *, is_phone: bool
) -> None:
    chromium.open(page, *size, is_phone=is_phone)
    draw_all(chromium)
    charts = chromium.run("document.querySelectorAll('.chart').length")
    drawn = "[...document.querySelectorAll('.chart')].filter(e => e.querySelector('.main-svg .xy'))"
    assert chromium.run(f"{drawn}.length") == charts == 8
    images = "[...document.querySelectorAll('.drawing img')].map(e => e.naturalWidth > 600)"
    assert chromium.run(images) == [True] * 6
    widths = "[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"
    assert chromium.run(widths) == [size[0]] * 3
    wide = "[...document.querySelectorAll('.chart svg')].filter(e => e.clientWidth > innerWidth)"
    assert chromium.run(f"{wide}.length") == 0
    shown = "[...document.querySelectorAll('.drawing img')].every(e => e.clientWidth > 0)"
    assert chromium.run(shown)
    table = "document.getElementById('table-headline').parentElement"
    assert chromium.run(f"{table}.scrollWidth <= {table}.clientWidth")  # nothing of it is cut
    assert chromium.complaints() == []
    outside = [url for url in chromium.requests() if not url.startswith("data:")]
    assert outside == [page.resolve().as_uri()]


def test_the_slider_shows_the_rows_so_far(chromium: browser.Browser, page: Path) -> None:
    chromium.open(page, *LAPTOP)
    draw_all(chromium)
    shown = "document.getElementById('chart-matrix-0')"
    pixels = f"{shown}.querySelector('.hm image').href.baseVal"
    before = chromium.run(pixels)
    assert chromium.run(f"{shown}.data[0].z") == [[90, None, None], [80, 70, None], [60, 75, -10]]
    chromium.run(
        "{const s = document.getElementById('after'); s.value = 2;"
        "s.dispatchEvent(new Event('input'))}"
    )
    assert chromium.run(f"{shown}.data[0].z") == [[90, None, None], [80, 70, None], [None] * 3]
    assert chromium.run(pixels) != before
    captions = chromium.run(
        "[...document.querySelectorAll('[data-average]')].map(e => e.textContent)"
    )
    assert captions == ["average after 2: 75.0", "average after 2: 55.0", "average after 2: 65.0"]
    assert chromium.run("document.getElementById('after-shown').textContent") == "2"


def column(chromium: browser.Browser, table: str, number: int) -> list[str]:
    rows = f"[...document.getElementById('table-{table}').tBodies[0].rows]"
    return chromium.run(f"{rows}.map(row => row.cells[{number}].innerText.trim())")


def test_a_click_on_a_header_sorts(chromium: browser.Browser, page: Path) -> None:
    chromium.open(page, *LAPTOP)

    def click(number: int) -> str:
        header = f"document.querySelectorAll('#table-tasks th[aria-sort]')[{number}]"
        return chromium.run(f"{header}.querySelector('button').click(), {header}.ariaSort")

    assert column(chromium, "tasks", 0) == ["1", "2", "3"]
    assert click(7) == "ascending"  # score right after learning: 90, 70, -10
    assert column(chromium, "tasks", 0) == ["3", "2", "1"]
    assert click(7) == "descending"
    assert column(chromium, "tasks", 0) == ["1", "2", "3"]
    assert click(9) == "ascending"  # lost: 30, -5, unknown, which is last
    assert column(chromium, "tasks", 0) == ["2", "1", "3"]
    assert click(9) == "descending"
    assert column(chromium, "tasks", 0) == ["1", "2", "3"]
    assert click(1) == "ascending"  # titles by alphabet
    assert column(chromium, "tasks", 0) == ["1", "2", "3"]


def test_selectors_choose_what_is_drawn(chromium: browser.Browser, page: Path) -> None:
    chromium.open(page, *LAPTOP)
    draw_all(chromium)
    names = "document.getElementById('chart-scores').data.map(trace => trace.name)"
    assert chromium.run(names) == ["adapter", "finetune", "joint"]
    choose = (
        "{{const s = document.querySelector('[data-chooses=scores]'); s.value = {};"
        "s.dispatchEvent(new Event('change'))}}"
    )
    chromium.run(choose.format(json.dumps("method-1")))
    assert len(chromium.run(names)) == 3
    assert chromium.run(names)[1:] == ["2 CF US economy", "3 CoLA"]
    scores = "document.getElementById('chart-scores').data.map(trace => trace.y)"
    assert chromium.run(scores) == [[70, 60, 40], [50, 55], [-30]]


def test_forgetting_curves_can_be_chosen_by_task(chromium: browser.Browser, page: Path) -> None:
    """MATRIX: 0.8 and 0.6 after 0.9, 0.75 after 0.7; methods that are shifted change alike."""
    chromium.open(page, *LAPTOP)
    draw_all(chromium)
    changes = "document.getElementById('chart-changes').data.map(trace => trace.y)"
    assert chromium.run(changes) == [[0, -10, -30]] * 3
    chromium.run(
        "{const s = document.querySelector('[data-chooses=changes]'); s.value = 'task-1';"
        "s.dispatchEvent(new Event('change'))}"
    )
    assert chromium.run(changes) == [[0, 5]] * 3


def test_every_picture_says_what_it_is(chromium: browser.Browser, page: Path) -> None:
    """Alternative texts of images and charts, each its own, and a caption below."""
    chromium.open(page, *PHONE, is_phone=True)
    draw_all(chromium)
    texts = chromium.run(
        "[...document.querySelectorAll('.drawing img, .chart')]"
        ".map(e => e.alt ?? e.getAttribute('aria-label'))"
    )
    assert len(texts) == len(set(texts)) == 14
    assert all(len(text) > 40 for text in texts)
    captions = "[...document.querySelectorAll('figure')].map(f => f.lastElementChild.innerText)"
    assert all(len(text) > 20 for text in chromium.run(captions))


def test_letters_of_drawings_are_large_enough(chromium: browser.Browser, page: Path) -> None:
    """At least two thirds of the size they were drawn in: on a phone they are swiped sideways."""
    shown = (
        "[...document.querySelectorAll('.drawing img')]"
        ".map(e => e.clientWidth / parseFloat(e.style.maxWidth))"
    )
    for size, least in ((LAPTOP, 0.75), (PHONE, 2 / 3)):
        chromium.open(page, *size, is_phone=size == PHONE)
        assert min(chromium.run(shown)) >= least - 0.01


def test_a_method_can_be_hidden(chromium: browser.Browser, page: Path) -> None:
    chromium.open(page, *LAPTOP)
    draw_all(chromium)
    seen = "document.getElementById('chart-average').data.filter(t => t.name).map(t => t.name)"
    cells = (
        "[...document.querySelectorAll('#table-tasks td')].filter(c => c.offsetWidth > 0).length"
    )
    before = chromium.run(cells)
    chromium.run("document.querySelector('[data-toggles=\"1\"]').click()")
    assert chromium.run(seen) == ["adapter", "joint"]
    assert chromium.run(cells) == before - 9  # three columns of three tasks
    chromium.run("document.querySelector('[data-toggles=\"1\"]').click()")
    assert chromium.run(cells) == before
    assert chromium.complaints() == []


def opacities(chromium: browser.Browser, chart: str) -> dict[int, set[float]]:
    """How opaque the traces of each method are in a chart."""
    found: dict[int, set[float]] = {}
    told = (
        f"document.getElementById('chart-{chart}').data.map(t => [t.meta.method, t.opacity ?? 1])"
    )
    for method, opacity in chromium.run(told):
        found.setdefault(method, set()).add(opacity)
    return found


def test_a_method_that_is_pointed_at_stands_out(chromium: browser.Browser, page: Path) -> None:
    """By pointer and by keyboard; afterwards all are as before."""
    chromium.open(page, *LAPTOP)
    draw_all(chromium)
    before = opacities(chromium, "average")
    assert set(before) == {0, 1, 2}
    chip = "document.querySelector('[data-toggles=\"1\"]')"
    for begins, ends in (
        (f"{chip}.dispatchEvent(new Event('pointerenter'))", "'pointerleave'"),
        (f"{chip}.focus()", "'blur'"),
    ):
        chromium.run(begins)
        for chart in ("average", "scores", "changes"):
            shown = opacities(chromium, chart)
            assert max(shown[1]) == 1
            assert max(*shown[0], *shown[2]) < 0.2
        chromium.run(f"{chip}.dispatchEvent(new Event({ends}))")
        assert opacities(chromium, "average") == before
        chromium.run(f"{chip}.blur()")


def test_a_line_under_the_pointer_stands_out_and_is_named(
    chromium: browser.Browser, page: Path
) -> None:
    """With a real mouse: the label stays, although the chart is drawn anew below it."""
    chromium.open(page, *LAPTOP)
    draw_all(chromium)
    chart = "document.getElementById('chart-average')"
    chromium.run(f"{chart}.scrollIntoView({{block: 'center'}})")
    chromium.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    point = f"[...{chart}.querySelectorAll('.scatterlayer .points path')].at(-1)"
    box = chromium.run(
        f"(r => [r.x + r.width / 2, r.y + r.height / 2])({point}.getBoundingClientRect())"
    )
    method_of = "found => done(found.points[0].data.meta.method)"
    hovered = f"new Promise(done => {chart}.once('plotly_hover', {method_of}))"
    chromium.run(f"window.hovered = {hovered}; 0")
    for right in (-4, 0):
        chromium.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + right, y=box[1])
    method = chromium.run("window.hovered")
    for name in ("average", "scores"):
        shown = opacities(chromium, name)
        assert max(shown.pop(method)) == 1
        assert max(map(max, shown.values())) < 0.2
    assert chromium.run(f"{chart}.querySelectorAll('.hoverlayer .hovertext').length") == 1
    away = f"new Promise(done => {chart}.once('plotly_unhover', () => done(true)))"
    chromium.run(f"window.away = {away}; 0")
    chromium.send("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert chromium.run("window.away")
    assert {1} == set().union(*opacities(chromium, "scores").values())


def test_samples_show_the_looks_of_the_charts(chromium: browser.Browser, page: Path) -> None:
    chromium.open(page, *LAPTOP)
    draw_all(chromium)
    chips = chromium.run(
        "[...document.querySelectorAll('.chip')].map(e => ["
        "e.querySelector('line').getAttribute('stroke'),"
        "e.querySelector('path').getAttribute('fill'), e.querySelector('bdi').innerText])"
    )
    lines = chromium.run(
        "document.getElementById('chart-average').data.filter(t => !t.fill).map(t => ["
        "t.line.color, t.marker.symbol.endsWith('open') ? '#FFFFFF' : t.line.color, t.name])"
    )
    assert sorted(chips) == sorted(lines)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it, of "rgb(r, g, b)"."""
    found = []
    for colour in (one, other):
        numbers = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
        found.append(luminance(numbers) + 0.05)
    return max(found) / min(found)


def test_headings_and_contrast(chromium: browser.Browser, page: Path) -> None:
    """No level is skipped; every text stands out from its ground by 4.5 to 1 (WCAG 2, AA)."""
    chromium.open(page, *LAPTOP)
    draw_all(chromium)
    levels = chromium.run("[...document.querySelectorAll('h1,h2,h3')].map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    script = """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
        && !e.closest('svg') && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
        .map(e => { let ground = e; while (ground && getComputedStyle(ground).backgroundColor
            === 'rgba(0, 0, 0, 0)') ground = ground.parentElement;
            return [getComputedStyle(e).color, getComputedStyle(ground).backgroundColor]
        })"""
    pairs = {tuple(found) for found in chromium.run(script)}
    assert len(pairs) > 5
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []
