"""The report: its numbers, what it refuses, and that nothing in a run can get out of its place."""

import json
import re
import shlex
import subprocess
import sys
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.figures.along_stream import growth
from analysis.report.charts import average_chart, matrix_charts
from analysis.report.curves import changes_chart, loss_chart, probe_chart, scores_chart
from analysis.report.facts import run_table, settings_table
from analysis.report.rerun import commands, configured
from analysis.report.tables import headline_table, task_table
from analysis.report.text import chart_text, script_json
from analysis.report.write import render
from analysis.runs.methods import build_methods
from stream.formatting import DASH, MINUS, visible
from stream.record.parts import TaskTimes, TimingRecord
from stream.record.run_record import RunRecord
from tests.analysis.made_runs import (
    MATRIX,
    ORDER,
    data_of,
    probe_of,
    record_of,
    runs_of,
    write,
    write_broken,
)
from tests.composed import compose_run

ROOT = Path(__file__).parent.parent.parent
HOSTILE = '<img src=x onerror="alert(1)"></script>\u202e\x07\ud800{{7*7}}%{x}$a$&lt;'


def scored(score: float, seed: int, learner: str = "finetune", **changes: Any) -> RunRecord:
    """Three tasks of which each is always scored the same."""
    matrix = [[score if j <= i else None for j in range(3)] for i in range(3)]
    metrics = {"average_score": score, "learning_score": score, "bwt": 0.0, "forgetting": 0.0}
    return record_of(learner, seed, matrix=matrix, metrics=metrics, **changes)


@pytest.fixture
def without_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of which only the words count are put together without their figures."""
    monkeypatch.setattr("analysis.report.write.images", lambda *_: ([], []))


def headline(*records: RunRecord) -> list[dict[str, str]]:
    table = headline_table(build_methods(runs_of(*records)))
    names = [column.header for column in table.columns]
    return [dict(zip(names, (c.text for c in row), strict=True)) for row in table.rows]


def test_headline_is_mean_and_interval_over_seeds() -> None:
    values = [0.5, 0.6, 0.75]
    row = headline(*(scored(v, seed) for seed, v in enumerate(values)))[0]
    half_width = 4.3027 * stdev(values) / 3**0.5  # t(0.975, 2) from a table
    expected = f"{100 * mean(values):.1f} ± {100 * half_width:.1f}"
    assert row["average score %"] == row["learning score %"] == expected
    assert row["n"] == "3"
    assert row["memory"] == "1 of 2"  # in each run, as compare says it
    assert row["trained %/task"] == "2.00 ± 0.00"
    assert row["training s"] == "60 ± 0.0"


def test_what_some_seeds_lack_says_its_n() -> None:
    lacking = scored(0.7, 2)
    lacking.metrics["bwt"] = None
    assert headline(scored(0.5, 1), lacking)[0]["BWT %"] == "0.0 (n=1)"


@pytest.mark.usefixtures("without_drawings")
def test_repeated_seeds_and_partial_runs_are_shown_but_not_counted() -> None:
    partial = record_of(seed=3, status="partial", matrix=[MATRIX[0], [None] * 3, [None] * 3])
    runs = runs_of(scored(0.5, 1), scored(0.9, 1), scored(0.7, 2), partial)
    methods, page = build_methods(runs), render(runs)
    assert "not in a mean, seed 1 again: 1 (counted: 0)" in page
    assert "not in a mean, 1 of 3 tasks learned: 3" in page
    assert headline_table(methods).rows[0][2].text.startswith("60.0 ±")
    counted = [row[3].text for row in run_table(methods).rows]
    assert counted == ["yes", "no: seed repeated", "yes", "no: partial"]
    assert run_table(methods).rows[3][2].text == "1 of 3 PARTIAL"


@pytest.mark.usefixtures("without_drawings")
def test_a_method_with_partial_runs_only_is_marked() -> None:
    partial = record_of(status="partial", matrix=[MATRIX[0], [None] * 3, [None] * 3])
    (method,) = build_methods(runs_of(partial))
    assert (method.is_complete, method.num_learned) == (False, 1)
    assert matrix_charts([method], partial)[0].note == "PARTIAL: 1 of 3 tasks learned"
    cells = [cell.text for cell in task_table([method], partial).rows[0]][-3:]
    assert cells == ["90.0", "90.0", DASH]
    assert "PARTIAL" in render(runs_of(partial))


@pytest.mark.usefixtures("without_drawings")
def test_references_are_paired_by_seed_and_marked() -> None:
    finetune = [scored(0.5, 1), scored(0.6, 2), scored(0.1, 3)]
    rows = headline(*finetune, scored(0.8, 1, "joint"), scored(0.7, 2, "joint"))
    assert rows[0]["gap to joint %"] == "20.0 ± 127.1 (n=2)"  # 30 and 10
    assert rows[0]["intransigence (joint_final) %"] == "20.0 ± 127.1 (n=2)"
    assert rows[1]["gap to joint %"] == DASH
    page = render(runs_of(finetune[0], scored(0.8, 1, "joint")))
    assert page.count('<span class="badge">reference</span>') == 2  # headline and runs


def test_prefix_joint_gives_the_exact_intransigence() -> None:
    prefix = scored(0.8, 1, "joint", config={"learner": {"prefix": True}})
    alone = scored(0.4, 1, "independent")
    row = headline(scored(0.5, 1), prefix, alone)[0]
    assert row["intransigence %"] == "30.0"
    assert "intransigence (joint_final) %" not in row
    assert (row["gap to independent %"], row["FWT_ind %"]) == (f"{MINUS}10.0", "10.0")


def test_the_majority_answer_has_a_line_and_a_column() -> None:
    floor = [0.5, 0.2, 0.0]
    rows = headline(record_of(majority=floor), record_of("replay", majority=floor))
    assert [row["method"] for row in rows] == ["finetune", "replay", "majority answer"]
    assert rows[-1]["average score %"] == "23.3"
    record = record_of(majority=floor)
    table = task_table(build_methods(runs_of(record)), record)
    assert [row[7].text for row in table.rows] == ["50.0", "20.0", "0.0"]


def test_tasks_show_learned_end_and_lost() -> None:
    record = record_of(
        labels={ORDER[0]: ["a", "b"], ORDER[1]: ["a"] * 9, ORDER[2]: None},
        data=data_of(rows={ORDER[0]: {"train": 1500, "validation": 2, "test": 3}}),
    )
    methods = build_methods(runs_of(record, scored(0.4, 0, "majority")))
    table = task_table(methods, record)
    columns, rows = table.columns, table.rows
    texts = [cell.text for cell in rows[0]]
    assert texts[:7] == ["1", "SST-2", "accuracy", "2", "1,500", "2", "3"]
    assert texts[7:11] == ["40.0", "90.0", "60.0", "30.0"]  # majority; learned, end, lost
    assert rows[1][10].text == f"{MINUS}5.0"
    assert rows[2][10].text == DASH  # the last task had no time to be forgotten
    assert rows[2][3].key is None
    assert [column.method for column in columns[7:]] == [None, 0, 0, 0, 1, 1, 1]


def test_charts_draw_the_numbers() -> None:
    record = record_of()
    methods = build_methods(runs_of(record))
    (trace,) = average_chart(methods).figure["data"]
    np.testing.assert_allclose(trace["y"], [90, 75, 125 / 3], rtol=1e-5)
    (heat,) = matrix_charts(methods, record)[0].figure["data"]
    assert heat["z"] == [[90, None, None], [80, 70, None], [60, 75, -10]]


def test_forgetting_curves_and_chance_are_charts_by_task_and_by_method() -> None:
    labels = {ORDER[0]: ["a", "b", "c", "d"], ORDER[1]: None, ORDER[2]: ["a", "b"]}
    record = record_of(labels=labels)
    other = record_of(seed=1, matrix=[[1.0, None, None], [0.9, 0.8, None], [0.6, 0.85, 0.0]])
    methods = build_methods(runs_of(record, other))
    traces = changes_chart(methods, record).figure["data"]
    by_task = {t["meta"]["view"]: t for t in traces if t["meta"]["view"].startswith("task")}
    np.testing.assert_allclose(by_task["task-0"]["y"], [0, -10, -35], atol=1e-9)
    np.testing.assert_allclose(by_task["task-1"]["y"], [0, 5], atol=1e-9)
    half_width = 12.706 * 5 * 2**0.5 / 2**0.5  # of -30 and -40; t(0.975, 1) from a table
    assert by_task["task-0"]["customdata"][-1] == f"{MINUS}35.0 ± {half_width:.1f}"
    scores = scores_chart(methods, record)
    guessing = [t for t in scores.figure["data"] if t["name"] == "guessing"]
    levels = {t["meta"]["view"]: t["y"][0] for t in guessing}
    assert levels == {"task-0": 25, "task-2": 0}  # 1 of 4; Matthews correlation
    assert "guessing among the labels" in scores.note


def test_what_needs_no_interaction_is_a_drawing_and_else_a_sentence() -> None:
    page = Elements(without_plotly(render(runs_of(record_of(), record_of("joint")))))
    sources = [value or "" for name, value in page.attributes if name == "src"]
    drawings = [b64decode(source.partition("base64,")[2]).decode() for source in sources]
    assert len(drawings) == 6
    assert all("<svg" in text and "joint" in text for text in drawings)
    single = Elements(without_plotly(render(runs_of(record_of(order=["cola"], matrix=[[0.9]])))))
    assert single.tags.count("img") == 3
    assert "a stream of one task forgets nothing" in single.text
    assert "Who forgot what: no run has learned two tasks" in single.text


@pytest.mark.usefixtures("without_drawings")
def test_methods_look_the_same_in_chips_charts_and_drawings() -> None:
    """Which are listed last, references, does not decide the colour."""
    runs = runs_of(record_of("joint"), record_of("adapter"))
    page = without_plotly(render(runs))
    chips = re.findall(r'<button.*?stroke="(#\w+)".*?<bdi>(\w+)</bdi>', page)
    assert [name for _, name in chips] == ["adapter", "joint"]
    traces = average_chart(build_methods(runs)).figure["data"]
    assert {trace["name"]: trace["line"]["color"] for trace in traces} == {n: c for c, n in chips}
    lines = {
        line.get_label().partition(":")[0]: line.get_color() for line in growth(runs).axes[0].lines
    }
    assert {name: lines[name] for _, name in chips} == {n: c for c, n in chips}


def test_what_charts_say_is_rounded_as_in_tables() -> None:
    """By Python alone: of 31.25 its table says 31.2, and a browser would say 31.3."""
    record = record_of(matrix=[[0.3125, None, None], [0.3125, 0.325, None], [0.3125, 0.325, -0.1]])
    methods = build_methods(runs_of(record))
    (heat,) = matrix_charts(methods, record)[0].figure["data"]
    assert heat["text"] == [["31", "", ""], ["31", "32", ""], ["31", "32", f"{MINUS}10"]]
    assert heat["customdata"][1][0].endswith("31.2")
    assert heat["meta"]["averages"] == ["31.2", "31.9", "17.9"]
    (curve,) = average_chart(methods).figure["data"]
    assert curve["customdata"] == ["31.2", "31.9", "17.9"]
    curves = scores_chart(methods, record).figure["data"]
    assert curves[0]["customdata"] == ["31.2"] * 3
    charts = [
        *matrix_charts(methods, record),
        average_chart(methods),
        scores_chart(methods, record),
    ]
    templates = [
        trace.get("hovertemplate", "") for chart in charts for trace in chart.figure["data"]
    ]
    assert not [text for text in templates if re.search(r"%\{[yz]:", text)]


def test_a_matrix_without_scores_has_the_axes_of_the_others() -> None:
    nothing = record_of(status="partial", matrix=[[None] * 3] * 3)
    charts = matrix_charts(build_methods(runs_of(nothing, record_of("replay"))), nothing)
    for chart in charts:
        axes = [chart.figure["layout"][name] for name in ("xaxis", "yaxis")]
        assert [axis["range"] for axis in axes] == [[0.5, 3.5], [3.5, 0.5]]


def test_long_learning_curves_keep_their_mean() -> None:
    losses = {ORDER[0]: np.linspace(3, 1, 600).tolist()}
    chart = loss_chart(build_methods(runs_of(record_of(losses=losses))), record_of())
    assert chart is not None
    (trace,) = chart.figure["data"]
    assert len(trace["y"]) == 60
    assert trace["x"][-1] == 600
    np.testing.assert_allclose(np.mean(trace["y"]), 2.0, rtol=1e-5)


@pytest.mark.usefixtures("without_drawings")
def test_probe_curves_are_means_over_seeds_along_the_stream() -> None:
    def probed(seed: int, score: float) -> RunRecord:
        probe = probe_of((0, 4, [score]), (1, 2, [score / 2, 0.3]))
        return record_of(seed=seed, probe=probe, timing=timing)

    timing = TimingRecord(by_task=TaskTimes(steps=[4, 8, 8]))
    chart = probe_chart(build_methods(runs_of(probed(1, 0.8), probed(2, 0.4))), record_of())
    assert chart is not None
    first, second = chart.figure["data"]
    assert (first["x"], first["y"]) == ([1.0, 1.25], [60.0, 30.0])
    assert (second["x"], second["y"]) == ([1.25], [30.0])
    assert probe_chart(build_methods(runs_of(record_of())), record_of()) is None
    assert "No stability gap: no run has a probe" in render(runs_of(record_of()))


class Elements(HTMLParser):
    """Counts elements and collects attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def without_plotly(page: str) -> str:
    return re.sub(r"/\*\*\n\* plotly.js.*?</script>", "</script>", page, flags=re.DOTALL)


def test_hostile_text_stays_text() -> None:
    """The same elements as with harmless text of the same form, and nothing that hides."""

    def page_with(text: str) -> str:
        record = record_of(
            text,
            titles=[text] * 3,
            metric_names=[text] * 3,
            stream=text,
            backbone=text,
            device=text,
            versions={text: text},
            config={"learner": {text: text}, "data": {"root": text}},
        )
        return without_plotly(render(runs_of(record), [text]))

    page = page_with(HOSTILE)
    hostile, plain = Elements(page), Elements(page_with("plain"))
    assert hostile.tags == plain.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in plain.attributes]
    assert visible(HOSTILE) in hostile.text
    assert not set("\u202e\x07\ud800") & set(page)
    labels = json.dumps(json.loads(re.findall(r'id="figures">(.*?)</script>', page)[0]))
    assert "<img" not in labels
    assert "%{x}$" not in labels.replace("\\u202e", "")


def test_text_with_a_meaning_for_plotly_loses_it() -> None:
    assert chart_text("<a href='x'>b</a>") == "&lt;a href='x'&gt;b&lt;/a&gt;"
    assert visible("a\nb\u2066c") == "a\\nb\\u2066c"
    assert visible("é 漢 שלום") == "é 漢 שלום"
    assert len(visible("x" * 999, 50)) == 50


def test_json_in_the_page_cannot_end_its_element() -> None:
    text = script_json({"</script>": "<!-- & \u2028"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"</script>": "<!-- & \u2028"}


@pytest.mark.usefixtures("without_drawings")
def test_generated_data_are_said_loudly() -> None:
    assert render(runs_of(record_of())).count("<strong>GENERATED DATA") == 2
    assert "GENERATED" not in without_plotly(render(runs_of(record_of(source="files"))))


def test_settings_that_differ_are_listed_by_method() -> None:
    small = record_of(config={"learner": {"lr": 1e-4, "size": 8}, "training": {"epochs": 3}})
    large = record_of(config={"learner": {"lr": 1e-4, "size": 64}, "training": {"epochs": 3}})
    found = {m.label: own for m, own in settings_table(build_methods(runs_of(small, large)))}
    sizes = ("learner.size", "8"), ("learner.size", "64")
    assert found == {"finetune (size=8)": [sizes[0]], "finetune (size=64)": [sizes[1]]}


@pytest.mark.parametrize(
    "chosen",
    [
        ["experiment=smoke", "learner=replay", "learner.budget=all", "probe.every=2"],
        ["learner=joint", "learner.head_lr=null", "data=files", "data.root='a b/c,d'"],
        ["order=random", "order_seed=3", "limits.train=200", "evaluation.split=validation"],
        ["'task=[sst2,cola]'", "backbone=folder", "backbone.location=x", "training.epochs=7"],
    ],
)
def test_the_command_composes_to_the_recorded_configuration(chosen: list[str]) -> None:
    from dataclasses import asdict

    chosen = [text.strip("'") if text.startswith("'") else text for text in chosen]
    config = compose_run(ROOT / "conf", chosen)[0]
    record = record_of(
        config.learner.name,
        stream=config.stream_name,
        backbone=config.backbone.name,
        source=config.data.source,
        order=list(config.task),
        config=asdict(config),
    )
    again = asdict(compose_run(ROOT / "conf", list(configured(record)))[0])
    for values in (again, record.config):
        for name in ("tracking", "experiment"):
            values.pop(name)
    assert again == record.config


def test_one_command_names_all_seeds() -> None:
    (line,) = commands(runs_of(record_of(seed=2), record_of(seed=5)))
    assert line.startswith("python run_stream.py -m learner=finetune")
    assert line.endswith("seed=2,5")


def test_a_command_is_what_the_record_was_given() -> None:
    """What differs beside the seed gets a command of its own."""
    given = (
        ["learner=lora", "'task=[a b]'", "seed=3"],
        ["learner=lora", "seed=4", "device=cpu"],
    )
    lines = commands(runs_of(*(record_of(seed=k, overrides=o) for k, o in enumerate(given, 3))))
    assert [shlex.split(line)[2:] for line in lines] == [
        ["learner=lora", "'task=[a b]'", "seed=3"],
        ["learner=lora", "device=cpu", "seed=4"],
    ]


# --- the command line


@pytest.mark.usefixtures("without_drawings")
def test_the_largest_group_is_reported_and_the_rest_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "0", record_of(data=data_of("b" * 64)))
    good = [write(tmp_path / str(seed), record_of(seed=seed)) for seed in (1, 2)]
    broken = write_broken(tmp_path / "3", "{")
    foreign = write_broken(tmp_path / "4", {"accuracy": 1})
    (tmp_path / "empty").mkdir()
    out = tmp_path / "new" / "report.html"
    paths = map(str, [other, *good, broken, foreign, tmp_path / "empty"])
    assert main(["report", *paths, "--out", str(out)]) == 1
    output = capsys.readouterr()
    assert output.out == f"{out}\n"
    lines = output.err.splitlines()
    assert len(lines) == 4
    page = without_plotly(out.read_text())
    for folder, reason in ((broken, "truncated"), (foreign, "schema")):
        assert any(str(folder) in line and reason in line for line in lines)
        assert str(folder) in page
    assert any(line.startswith(f"report: left out: {other}") for line in lines)
    assert "data hash" in page
    assert "1 method, 2 runs" in page
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_nothing_to_report_writes_nothing(tmp_path: Path, capsys: Any) -> None:
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "r.html")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}: no results.json in or below it\n"
    assert not (tmp_path / "r.html").exists()


def test_without_plotly_one_line_names_the_extra(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    run = write(tmp_path / "1", record_of())
    assert main(["report", str(run), "--out", str(tmp_path / "r.html")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{sys.executable} -m pip install 'plotly>=7'" in line
    assert "pip install -e '.[report]'" in line


def test_reporting_imports_no_torch(tmp_path: Path) -> None:
    write(tmp_path / "1", record_of())
    code = (
        "import sys; from analysis.__main__ import main; "
        f"main(['report', {str(tmp_path)!r}, '--out', {str(tmp_path / 'r.html')!r}]); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
