"""The report: its numbers, what it refuses, and that nothing in a run can get out of its place."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.report.charts import cost_charts, forgetting_chart, growth_chart
from analysis.report.rerun import command, overrides
from analysis.report.curves import loss_chart, matrix_charts, probe_chart
from analysis.report.facts import run_table, settings_table
from analysis.runs.methods import build_methods
from analysis.report.tables import headline_table, task_table
from analysis.text import chart_text, script_json, visible
from analysis.report.write import render
from analysis.runs.collect import Run
from stream.config.compose import compose_run
from stream.formatting import DASH, MINUS
from tests.analysis.made_runs import BASE, MATRIX, METRICS, ORDER, results_of, write

ROOT = Path(__file__).parent.parent.parent
HOSTILE = '<img src=x onerror="alert(1)"></script>\u202e\x07\ud800{{7*7}}%{x}$a$&lt;'


def runs_of(*results: dict[str, Any]) -> list[Run]:
    return [Run(Path(f"run{i}"), r) for i, r in enumerate(results)]


def scored(score: float, seed: int, learner: str = "finetune", **changes: Any) -> dict[str, Any]:
    """Three tasks of which each is always scored the same."""
    matrix = [[score if j <= i else None for j in range(3)] for i in range(3)]
    metrics = {"average_score": score, "learning_score": score, "bwt": 0.0, "forgetting": 0.0}
    return results_of(learner, seed, matrix=matrix, metrics=metrics, **changes)


def headline(*results: dict[str, Any]) -> list[dict[str, str]]:
    columns, rows = headline_table(build_methods(runs_of(*results)))
    names = [column.header for column in columns]
    return [dict(zip(names, (c.text for c in row), strict=True)) for row in rows]


def test_headline_is_mean_and_sample_deviation_over_seeds() -> None:
    values = [0.5, 0.6, 0.75]
    row = headline(*(scored(v, seed) for seed, v in enumerate(values)))[0]
    expected = f"{100 * mean(values):.1f} ± {100 * stdev(values):.1f}"
    assert row["average score %"] == row["learning score %"] == expected
    assert row["n"] == "3"
    assert row["memory"] == "3 of 6"  # 1 of 2 in each run
    assert row["trained %/task"] == "2.00 ± 0.00"
    assert row["training s"] == "60 ± 0.0"


def test_what_some_seeds_lack_says_its_n() -> None:
    lacking = scored(0.7, 2)
    lacking["metrics"]["bwt"] = None
    assert headline(scored(0.5, 1), lacking)[0]["BWT %"] == "0.0 (n=1)"


def test_repeated_seeds_and_partial_runs_are_shown_but_not_counted() -> None:
    partial = results_of(seed=3, status="partial", matrix=[MATRIX[0], [None] * 3, [None] * 3])
    methods = build_methods(runs_of(scored(0.5, 1), scored(0.9, 1), scored(0.7, 2), partial))
    assert headline_table(methods)[1][0][2].text.startswith("60.0 ±")
    counted = [row[3].text for row in run_table(methods)[1]]
    assert counted == ["yes", "no: seed repeated", "yes", "no: partial"]
    assert run_table(methods)[1][3][2].text == "1 of 3 PARTIAL"


def test_a_method_with_partial_runs_only_is_marked() -> None:
    partial = results_of(status="partial", matrix=[MATRIX[0], [None] * 3, [None] * 3])
    (method,) = build_methods(runs_of(partial))
    assert method.partial == 1
    assert matrix_charts([method], partial)[0].note == "PARTIAL: 1 of 3 tasks learned"
    cells = [cell.text for cell in task_table([method], partial)[1][0]][-3:]
    assert cells == ["90.0", "90.0", DASH]
    assert "PARTIAL" in render(runs_of(partial))


def test_references_are_paired_by_seed_and_marked() -> None:
    finetune = [scored(0.5, 1), scored(0.6, 2), scored(0.1, 3)]
    rows = headline(*finetune, scored(0.8, 1, "joint"), scored(0.7, 2, "joint"))
    assert rows[0]["gap to joint %"] == "20.0 ± 14.1 (n=2)"  # 30 and 10
    assert rows[0]["intransigence (joint_final) %"] == "20.0 ± 14.1 (n=2)"
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


def test_tasks_show_learned_end_and_lost() -> None:
    results = results_of(
        labels={ORDER[0]: ["a", "b"], ORDER[1]: ["a"] * 9, ORDER[2]: None},
        data={"hash": "a" * 64, "rows": {ORDER[0]: {"train": 1500, "validation": 2, "test": 3}}},
    )
    methods = build_methods(runs_of(results, scored(0.4, 0, "majority")))
    columns, rows = task_table(methods, results)
    texts = [cell.text for cell in rows[0]]
    assert texts[:7] == ["1", "SST-2", "accuracy", "2", "1,500", "2", "3"]
    assert texts[7:11] == ["40.0", "90.0", "60.0", "30.0"]  # majority; learned, end, lost
    assert rows[1][10].text == f"{MINUS}5.0"
    assert rows[2][10].text == DASH  # the last task had no time to be forgotten
    assert rows[2][3].key is None
    assert [column.method for column in columns[7:]] == [None, 0, 0, 0, 1, 1, 1]


def test_charts_draw_the_numbers() -> None:
    results = results_of()
    methods = build_methods(runs_of(results))
    (trace,) = forgetting_chart(methods, results).figure["data"]
    np.testing.assert_allclose(trace["x"], [30.0, -5.0])
    stored, copies = growth_chart(methods, results).figure["data"]
    np.testing.assert_allclose(stored["y"], [(BASE + 1e5 * k) / BASE for k in (1, 2, 3)])
    assert copies["y"] == [1, 2, 3]
    (heat,) = matrix_charts(methods, results)[0].figure["data"]
    assert heat["z"] == [[90, None, None], [80, 70, None], [60, 75, -10]]
    (cost,) = cost_charts(methods)
    assert cost.figure["data"][0]["x"] == [60.0]
    np.testing.assert_allclose(cost.figure["data"][0]["y"], 100 * METRICS["average_score"], 1e-5)
    flops = {"train": [1e9, 2e9, 3e9], "one_pass": [1e9] * 3, "epochs": [1] * 3}
    _, counted = cost_charts(build_methods(runs_of(results_of(flops=flops), results_of("other"))))
    assert counted.figure["data"][0]["x"] == [6e9]
    assert counted.note.endswith("Without: other.")


def test_long_learning_curves_keep_their_mean() -> None:
    losses = {ORDER[0]: np.linspace(3, 1, 600).tolist()}
    chart = loss_chart(build_methods(runs_of(results_of(losses=losses))), results_of())
    assert chart is not None
    (trace,) = chart.figure["data"]
    assert len(trace["y"]) == 60
    assert trace["x"][-1] == 600
    np.testing.assert_allclose(np.mean(trace["y"]), 2.0, rtol=1e-5)


def test_probe_curves_are_means_over_seeds_along_the_stream() -> None:
    def probed(seed: int, score: float) -> dict[str, Any]:
        points = [{"task": 0, "step": 4, "scores": [score]}]
        points.append({"task": 1, "step": 2, "scores": [score / 2, 0.3]})
        return results_of(seed=seed, probe={"every": 2, "points": points}, timing=TIMING)

    TIMING = {"train_s": 1.0, "evaluate_s": 1.0, "by_task": {"steps": [4, 8, 8]}}  # noqa: N806
    chart = probe_chart(build_methods(runs_of(probed(1, 0.8), probed(2, 0.4))), results_of())
    assert chart is not None
    first, second = chart.figure["data"]
    assert (first["x"], first["y"]) == ([1.0, 1.25], [60.0, 30.0])
    assert (second["x"], second["y"]) == ([1.25], [30.0])
    assert probe_chart(build_methods(runs_of(results_of())), results_of()) is None
    assert "No stability gap: no run has a probe" in render(runs_of(results_of()))


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
        results = results_of(
            text,
            titles=[text] * 3,
            metric_names=[text] * 3,
            stream=text,
            backbone=text,
            device=text,
            versions={text: text},
            config={"learner": {text: text}, "data": {"root": text}},
        )
        return without_plotly(render([Run(Path("a"), results)], [text]))

    hostile, plain = Elements(page_with(HOSTILE)), Elements(page_with("plain"))
    assert hostile.tags == plain.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in plain.attributes]
    assert visible(HOSTILE) in hostile.text
    assert not set("\u202e\x07\ud800") & set(page_with(HOSTILE))
    labels = json.dumps(
        json.loads(re.findall(r'id="figures">(.*?)</script>', page_with(HOSTILE))[0])
    )
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


def test_generated_data_are_said_loudly() -> None:
    assert render(runs_of(results_of())).count("<strong>GENERATED DATA") == 2
    assert "GENERATED" not in without_plotly(render(runs_of(results_of(source="files"))))


def test_settings_that_differ_are_listed_by_method() -> None:
    small = results_of(config={"learner": {"lr": 1e-4, "size": 8}, "training": {"epochs": 3}})
    large = results_of(config={"learner": {"lr": 1e-4, "size": 64}, "training": {"epochs": 3}})
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
    results = {
        "learner": config.learner.name,
        "stream": config.stream_name,
        "backbone": config.backbone.name,
        "source": config.data.source,
        "order": list(config.task),
        "config": asdict(config),
    }
    again = asdict(compose_run(ROOT / "conf", overrides(results))[0])
    for values in (again, results["config"]):
        for name in ("tracking", "experiment"):
            values.pop(name)
    assert again == results["config"]


def test_the_command_names_all_seeds() -> None:
    line = command(runs_of(results_of(seed=2), results_of(seed=5)))
    assert line.startswith("python run_stream.py -m learner=finetune")
    assert line.endswith("seed=2,5")


# --- the command line


def test_the_largest_group_is_reported_and_the_rest_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "0", results_of(data={"hash": "b" * 64}))
    good = [write(tmp_path / str(seed), results_of(seed=seed)) for seed in (1, 2)]
    broken, foreign = write(tmp_path / "3", "{"), write(tmp_path / "4", '{"accuracy": 1}')
    (tmp_path / "empty").mkdir()
    out = tmp_path / "new" / "report.html"
    paths = map(str, [other, *good, broken, foreign, tmp_path / "empty"])
    assert main(["report", *paths, "--out", str(out)]) == 1
    output = capsys.readouterr()
    assert output.out == f"{out}\n"
    lines = output.err.splitlines()
    assert len(lines) == 4
    page = without_plotly(out.read_text())
    for folder, reason in ((broken, "not valid JSON"), (foreign, "no key 'schema'")):
        assert any(str(folder) in line and reason in line for line in lines)
        assert str(folder) in page
    assert any(line.startswith(f"analysis: left out: {other}") for line in lines)
    assert "data hash" in page
    assert "1 method, 2 runs" in page
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_nothing_to_report_writes_nothing(tmp_path: Path, capsys: Any) -> None:
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "r.html")]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "analysis: no usable run"
    assert not (tmp_path / "r.html").exists()


def test_without_plotly_one_line_names_the_extra(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    run = write(tmp_path / "1", results_of())
    assert main(["report", str(run), "--out", str(tmp_path / "r.html")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'task-stream-simulator[report]'" in line


def test_reporting_imports_no_torch(tmp_path: Path) -> None:
    write(tmp_path / "1", results_of())
    code = (
        "import sys; from analysis.__main__ import main; "
        f"main(['report', {str(tmp_path)!r}, '--out', {str(tmp_path / 'r.html')!r}]); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
