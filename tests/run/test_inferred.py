"""Runs with ``scenario=inferred``: what they record, verify, store, and serve."""

import io
import json
from pathlib import Path

import pytest

from stream.cli.main import main
from stream.config.paths import cache_folder
from stream.data.loading import load_task
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.run.load import config_on
from stream.run.predict import AUTO, Service
from stream.run.settings import compose_settings
from stream.run.verify import verify
from tests.run.learned import learned
from tests.run.program import run

pytestmark = pytest.mark.slow
TASKS = "task=[cola,crowdflower_airline,rte]"
OUTPUTS = ("scenario=inferred", "router.kind=entropy")


@pytest.fixture(scope="module", params=["features", "outputs"])
def inferred(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inferred") / "run"
    given = ("scenario=inferred",) if request.param == "features" else OUTPUTS
    code, out, err = run(folder.parent, TASKS, *given, f"hydra.run.dir={folder}")
    assert (code, err) == (0, "")
    assert "texts given to their task" in out
    return folder


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("known") / "run", TASKS)


def test_scores_with_the_known_task_are_those_of_a_run_that_knows_it(
    inferred: Path, known: Path
) -> None:
    ours, theirs = RunRecord.read(inferred), RunRecord.read(known)
    for row, other in zip(ours.cells, theirs.cells, strict=True):
        for cell, plain in zip(row, other, strict=True):
            assert (cell is None) == (plain is None)
            if cell is not None and plain is not None:
                assert (cell.score, cell.digest) == (plain.score, plain.digest)
                assert cell.routed is not None
                assert plain.routed is None
                assert sum(cell.routed.counts) == 16
    assert theirs.metrics["routing_accuracy"] is None
    stored = [(r.stored_parameters, r.stored_bytes, r.buffer_bytes) for r in ours.ledger.tasks]
    assert stored == [
        (r.stored_parameters, r.stored_bytes, r.buffer_bytes) for r in theirs.ledger.tasks
    ]


def test_the_ledger_counts_what_the_router_stores(inferred: Path) -> None:
    record = RunRecord.read(inferred)
    width = record.config["backbone"]["shape"]["hidden_size"]
    features = record.config["router"]["kind"] == "mahalanobis"
    means = [2, 5, 7]  # of two, three and two classes, one after another
    expected = [(c * width + width**2 if features else 0) for c in means]
    assert [row.router_parameters for row in record.ledger.tasks] == expected
    rows = 8 if features else 0  # their number is no parameter
    assert [r.router_bytes for r in record.ledger.tasks] == [8 * n + rows for n in expected]


def test_verify_measures_what_was_routed(inferred: Path) -> None:
    checks = list(verify(inferred, "cpu"))
    assert [check for check in checks if not check.ok] == []
    assert sum("inferred tasks" in check.what for check in checks) == 3 * 4


def test_predict_finds_the_task_as_the_evaluation_did(
    inferred: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record, service = RunRecord.read(inferred), Service(inferred, "cpu")
    config = config_on("cpu", record)
    for index, name in enumerate(record.order):
        loaded = load_task(config.data, name, config.task[name], cache_folder(None))
        answers = service.predict(AUTO, loaded.rows["test"].texts)
        cell = record.cells[-1][index]
        assert cell is not None
        assert cell.routed is not None
        found = [answer.task for answer in answers]
        assert [found.count(task) for task in record.order] == cell.routed.counts
    single = service.predict(AUTO, ["some words", ("a pair", "of texts")])
    assert single[0].task is not None
    labels = config.task[single[0].task].labels
    assert labels is not None
    assert list(single[0].probabilities) == labels
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"some words\na pair\tof texts\n"))
    )
    assert main(["predict", str(inferred), "--task", "auto", "--json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["task"], line["label"]) for line in printed] == [
        (a.task, a.label) for a in single
    ]


def test_mistakes_are_one_line(known: Path) -> None:
    with pytest.raises(UserError, match="has no router: name the task of the texts") as caught:
        Service(known, "cpu").predict(AUTO, ["some words"])
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"compares probabilities of classes.*in: stsb"):
        compose_settings([*OUTPUTS, "task=[cola,stsb]"])
