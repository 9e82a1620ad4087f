"""Report and figures about runs with more tasks than can be read one by one."""

from pathlib import Path

import numpy as np
import pytest

from analysis.figures.along_stream import growth
from analysis.figures.forgetting_map import forgetting_map
from analysis.figures.forgetting_marks import forgetting
from analysis.report.charts import matrix_charts
from analysis.report.curves import changes_chart, scores_chart
from analysis.runs.collect import RecordedRun
from analysis.runs.methods import build_methods
from stream.report.many import LISTED
from tests.figure_texts import check_readable
from tests.report.test_many import lossy


@pytest.fixture(scope="module")
def runs() -> list[RecordedRun]:
    """One run of 70 tasks, of which tasks 3 and 7 changed."""
    return [RecordedRun(Path("run"), lossy())]


@pytest.mark.parametrize("draw", [forgetting_map, forgetting, growth])
def test_a_figure_of_many_tasks_can_be_read(draw, runs: list[RecordedRun]) -> None:  # type: ignore[no-untyped-def]
    figure = draw(runs)
    assert max(figure.get_size_inches()) < 20
    texts = check_readable(figure)
    if draw is forgetting:
        assert {"3 · task_3", "7 · task_7"} <= set(texts)
        assert sum(" · " in text for text in texts) == LISTED


def test_the_report_has_curves_of_the_tasks_that_changed_most(runs: list[RecordedRun]) -> None:
    methods = build_methods(runs)
    for chart in (scores_chart(methods, runs[0].record), changes_chart(methods, runs[0].record)):
        views = {trace["meta"]["view"] for trace in chart.figure["data"]}
        assert {"task-2", "task-6"} <= views
        assert len(views) == LISTED + 1  # a view a task, and that of the method
        assert [view for view, _ in chart.choices[0][1]] == sorted(
            views - {"method-0"}, key=lambda view: int(view.partition("-")[2])
        )


def test_a_thinned_matrix_has_the_averages_of_all_tasks(
    runs: list[RecordedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.report.charts.MOST_CELLS", 20)
    (chart,) = matrix_charts(build_methods(runs), runs[0].record)
    (heat,) = chart.figure["data"]
    scores = 100 * runs[0].record.scores
    assert heat["y"] == list(range(4, 71, 4))
    assert np.array(heat["z"], dtype=float) == pytest.approx(scores[3::4, 3::4], nan_ok=True)
    assert heat["meta"]["averages"][69] == f"{scores[69].mean():.1f}"
