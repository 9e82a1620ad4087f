"""What is shown of a run with more tasks, or of more runs, than can be read one by one."""

import io
import logging
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from stream.formatting import MINUS
from stream.record.run_record import RunRecord
from stream.report import plots
from stream.report.many import LISTED, changed_most
from stream.report.progress import Display
from tests.analysis.made_runs import ledger_of, ledger_row, record_of
from tests.figure_texts import check_readable

T = 70


def lossy() -> RunRecord:
    """A run of 70 tasks: task 7 loses all it had after task 69, task 3 gains a little."""
    scores = np.where(np.tri(T, dtype=bool), 0.5, np.nan)
    scores[69:, 6], scores[69:, 2] = 0.0, 0.55
    names = [f"task_{number}" for number in range(1, T + 1)]
    return record_of(
        "replay",
        3,
        order=names,
        titles=names,
        matrix=[[None if np.isnan(s) else float(s) for s in row] for row in scores],
        ledger=ledger_of(*(ledger_row(number) for number in range(1, T + 1))),
    )


@pytest.mark.parametrize("name", sorted(plots.FIGURES))
def test_a_figure_of_many_tasks_can_be_read(name: str) -> None:
    figure = plots.FIGURES[name](lossy())
    assert max(figure.get_size_inches()) < 20
    texts = check_readable(figure)
    if name in ("scores", "forgetting"):
        assert any(text.startswith("7 ·") for text in texts)
        assert sum(" · " in text for text in texts) == LISTED


def test_those_that_changed_most_are_listed_in_order() -> None:
    last = np.zeros(T)
    last[[50, 9]], last[60] = (0.1, -0.2), np.nan
    assert changed_most(last) == [*range(23), 50]
    assert changed_most(last[:5]) == [0, 1, 2, 3, 4]


def test_a_row_of_many_tasks_names_those_that_changed(tmp_path: Path) -> None:
    record, shown = lossy(), io.StringIO()
    with Display(Console(file=shown, width=500), tmp_path) as display:
        record.timing.by_task.train_s = record.timing.by_task.evaluate_s = [0.0] * T
        display.row(T - 1, record)
        display.row(T - 2, record)
    said = shown.getvalue()
    titles = record.titles
    assert (
        f"changed: 2 of 69 scores, most: {titles[6]} 0.0 ({MINUS}50.0) · {titles[2]} 55.0 (+5.0)"
        in said
    )
    assert "the scores of the 68 tasks before are as they were" in said


def test_jobs_of_one_process_show_a_warning_once_and_log_it_each(tmp_path: Path) -> None:
    said = f"of {tmp_path}: rows are in two splits"
    shown = io.StringIO()
    for number, is_job in enumerate((True, True, False)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Display(Console(file=shown, width=200), folder, mode="plain", is_job=is_job):
            logging.getLogger("stream.data").warning(said)
        assert said in (folder / "run.log").read_text()
    # of a run alone it is shown whatever was before
    assert shown.getvalue().count(said) == 2
