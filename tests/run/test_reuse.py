"""evaluation.reuse: the same scores with fewer evaluations, where nothing changed."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from stream.errors import IsolationError
from stream.report.progress import Display
from stream.report.tracking import NoTracking
from stream.run import bench, runner
from stream.run.settings import with_learner
from tests.cli.test_command_line import results
from tests.composed import compose_run
from tests.run.learned import learned
from tests.run.program import ROOT, TINY, run_plain

pytestmark = pytest.mark.slow


def states(folder: Path) -> list[list[str]]:
    return [
        ["reused" if isinstance(cell, int) else cell["state"] for cell in row if cell is not None]
        for row in results(folder)["cells"]
    ]


def evidence(folder: Path) -> list[list[tuple[float, str]]]:
    """Of each cell, found by hand where another row has it."""
    rows = results(folder)["cells"]
    cells = [[rows[c][on] if isinstance(c, int) else c for on, c in enumerate(row)] for row in rows]
    return [[(cell["score"], cell["digest"]) for cell in row if cell] for row in cells]


@pytest.mark.parametrize("learner", ["adapter", "finetune"])
def test_reused_cells_are_those_that_would_be_measured(tmp_path: Path, learner: str) -> None:
    for reuse in ("off", "on", *(["verify"] if learner == "adapter" else [])):
        learned(tmp_path / reuse, f"learner={learner}", f"evaluation.reuse={reuse}")
    assert evidence(tmp_path / "on") == evidence(tmp_path / "off")
    one, two, three = ["measured"], ["measured"] * 2, ["measured"] * 3
    assert states(tmp_path / "off") == [one, two, three]
    if learner == "adapter":
        assert evidence(tmp_path / "verify") == evidence(tmp_path / "off")
        again = ["reused", "measured"]
        assert states(tmp_path / "on") == [one, again, ["reused", *again]]
        assert states(tmp_path / "verify") == [one, again, three]
        assert results(tmp_path / "on")["memory"] == results(tmp_path / "off")["memory"]
    else:  # learning changes what serves earlier tasks, so nothing can be reused
        assert states(tmp_path / "on") == [one, two, three]


def test_linear_probes_are_those_of_a_run_that_did_not_stop(tmp_path: Path) -> None:
    """They change no score, the first tasks' are kept, and those at the end are of the end."""
    given = ["learner=finetune", "evaluation.linear_probe=true", "evaluation.baseline=false"]
    for name, tasks in (("whole", "[cola,stsb]"), ("grown", "[cola]")):
        learned(tmp_path / name, *given, f"task={tasks}")
    (record,) = (tmp_path / "grown").rglob("results.json")
    longer = [f"resume={record.parent}", "task=[cola,stsb]"]
    assert run_plain(tmp_path, *longer)[::2] == (0, "")
    whole, grown = results(tmp_path / "whole"), results(tmp_path / "grown")
    assert evidence(tmp_path / "whole") == evidence(tmp_path / "grown")
    probes = whole["linear_probe"]
    for name in ("learned", "final"):
        assert probes[name] == grown["linear_probe"][name]
        assert len(probes[name]) == 2
    lost = probes["learned"][0] - probes["final"][0]
    assert whole["metrics"]["representation_forgetting"] == pytest.approx(lost)
    assert whole["majority"] == grown["majority"]


def test_verify_stops_where_equal_tensors_give_other_logits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, calls = bench.evaluate, []

    def drifting(*arguments):
        calls.append(arguments)
        return replace(measured(*arguments), digest=f"{len(calls):064}")

    monkeypatch.setattr(bench, "evaluate", drifting)
    given = [*TINY, "task=[cola,stsb]", "tracking=none", "evaluation.reuse=verify"]
    config = with_learner(compose_run(ROOT / "conf", given)[0])
    refused = pytest.raises(IsolationError, match="'cola' was served with the same tensors")
    with Display(Console(quiet=True), tmp_path) as display, refused:
        runner.run_stream(config, tmp_path, tracker=NoTracking(), display=display)
