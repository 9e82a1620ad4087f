"""Run folders that commit 1098926 wrote: read, compared, verified, served and gone on with.

``complete`` is a run of `adapter`, ``stopped`` one of `shared_adapter` that was stopped in its
second task; both of ``experiment=smoke device=cpu data.train=64``. Digests hold on machines that
compute the same bits as the one that wrote the folders; elsewhere tests that need them are skipped.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.__main__ import main
from benchmarks.stress.kill import comparable
from stream.evaluation.evaluate import digest
from stream.record.run_record import RunRecord, read_values
from stream.run.predict import Service
from stream.run.verify import verify
from tests.run.learned import learned
from tests.run.program import run_plain

pytestmark = pytest.mark.slow

WRITTEN = Path(__file__).parent / "written_by_1098926"
LEARNERS = {"complete": "adapter", "stopped": "shared_adapter"}
TASK = "crowdflower_airline"


@pytest.fixture(params=LEARNERS)
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of one of the folders."""
    return Path(shutil.copytree(WRITTEN / request.param, tmp_path / request.param))


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same runs made by this version, without an interruption; skips on other machines."""
    room = tmp_path_factory.mktemp("now")
    for name, learner in LEARNERS.items():
        learned(room / name, "data.train=64", f"learner={learner}")
    first, then = (RunRecord.read(f / "complete").cells[0][0] for f in (room, WRITTEN))
    assert first is not None
    assert then is not None
    if first.digest != then.digest:
        pytest.skip("this machine computes other bits than the one that wrote the folders")
    return {name: room / name for name in LEARNERS}


def test_they_are_records_without_what_came_later(older: Path) -> None:
    record = RunRecord.read(older)
    assert record.overrides is None
    assert record.learner == LEARNERS[older.name]
    assert record.score_matrix.rows_done() == {"complete": 3, "stopped": 1}[older.name]
    now = json.loads(record.encode()) | {"schema": 1}
    assert _of(now, read_values(older)) == read_values(older)


def _of(now: Any, older: Any) -> Any:
    """Return JSON values without the keys that older ones do not have."""
    if isinstance(now, dict) and isinstance(older, dict):
        return {key: _of(now[key], value) for key, value in older.items()}
    if isinstance(now, list) and isinstance(older, list):
        return [_of(*pair) for pair in zip(now, older, strict=True)]
    return now


def test_verify_agrees(older: Path, now: dict[str, Path]) -> None:
    del now  # only where bits are the same
    checks = list(verify(older, "cpu"))
    assert [check for check in checks if not check.ok] == []
    assert len(checks) > 10 or older.name == "stopped"


def test_a_stopped_run_that_says_complete_is_found(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(WRITTEN / "stopped", tmp_path / "stopped"))
    record = RunRecord.read(folder)
    record.status = "complete"
    record.write(folder)
    checks = {check.what: check for check in verify(folder, "cpu")}
    assert not checks["status"].ok


def test_compare_reads_them(older: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(older)]) == 0
    assert LEARNERS[older.name] in capsys.readouterr().out


def test_the_complete_one_serves_its_tasks(now: dict[str, Path]) -> None:
    texts = ["the first text", "another one"]
    then, same = (Service(path, "cpu") for path in (WRITTEN / "complete", now["complete"]))
    assert list(then.tasks) == list(same.tasks)
    logits = then.logits(TASK, texts)
    assert np.isfinite(logits).all()
    assert digest(logits) == digest(same.logits(TASK, texts))


def test_the_stopped_one_goes_on_to_the_same_end(now: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(WRITTEN / "stopped", tmp_path / "stopped"))
    code, _, err = run_plain(tmp_path, f"resume={folder}")
    assert (code, err) == (0, "")
    assert comparable(folder) == comparable(now["stopped"])
    assert RunRecord.read(folder).overrides == [f"resume={folder}"]
