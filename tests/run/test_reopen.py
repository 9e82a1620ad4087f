"""A finished run, served again: the same bits, and what its adapters contribute."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score

from benchmarks.evidence.layers import remove_layers
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.run.layer_ablation import layer_range_scores, majority_score
from stream.run.load import open_run
from tests.run.learned import learned

pytestmark = pytest.mark.slow

AIRLINE = "crowdflower_airline"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("kept") / "run")


@pytest.fixture
def changed(kept: Path, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(kept, tmp_path / "copy"))


def edit(folder: Path, *keys: str, value: object) -> None:
    path = folder / "results.json"
    results = json.loads(path.read_text())
    node = results
    for key in keys[:-1]:
        node = node[key]
    node[keys[-1]] = value
    path.write_text(json.dumps(results))


def test_a_reopened_task_gives_the_digest_of_the_last_row(kept: Path) -> None:
    run_again = open_run(kept, ["stsb", AIRLINE], device="cpu")
    for name in ("stsb", AIRLINE):
        cell, recorded = (
            run_again.measure(run_again.task(name)),
            run_again.record.score_matrix.last(name),
        )
        assert (cell.digest, cell.score) == (recorded.digest, recorded.score)
        assert cell.correct == recorded.correct


def test_layer_ranges_start_from_the_run_and_end_without_adapters(kept: Path) -> None:
    run_again = open_run(kept, [AIRLINE], device="cpu")
    task = run_again.task(AIRLINE)
    scores = layer_range_scores(run_again, task, "test")
    assert scores.full == run_again.record.score_matrix.last(AIRLINE).score
    layers = len(run_again.learner.model.encoder.layers())
    assert scores.without.shape == (layers, layers)
    assert np.isnan(scores.without[np.tril_indices(layers, -1)]).all()
    assert not np.isnan(scores.without[np.triu_indices(layers)]).any()
    assert run_again.measure(task).score == scores.full  # the adapters are back


def test_ranges_of_layers_are_kept_beside_a_record_of_the_comparison(changed: Path) -> None:
    """Of every task, on the rows of its score: those are the scores without any range."""
    remove_layers(changed)
    found = json.loads((changed / "layer_ranges.json").read_text())
    record = RunRecord.read(changed)
    assert [*found] == record.order
    assert [of["full"] for of in found.values()] == record.matrix[-1]
    assert {of["split"] for of in found.values()} == {record.split}


def test_the_majority_line_is_that_of_a_dummy_classifier(kept: Path) -> None:
    task = open_run(kept, [AIRLINE], device="cpu").task(AIRLINE)
    train, test = task.split("train").labels, task.split("test").labels
    dummy = DummyClassifier(strategy="most_frequent").fit(train[:, None], train)
    expected = accuracy_score(test, dummy.predict(test[:, None]))
    assert majority_score(task, "test") == pytest.approx(expected)


def test_what_cannot_be_reopened_is_told_in_one_line(changed: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run at"):
        open_run(tmp_path / "nowhere", ["stsb"])
    with pytest.raises(UserError, match="unknown task of this run 'stbs'"):
        open_run(changed, ["stbs"], "cpu")
    edit(changed, "config", "data", "seed", value=7)
    with pytest.raises(UserError, match="the data changed since the run"):
        open_run(changed, [AIRLINE], "cpu")
    edit(changed, "config", "data", "seed", value=0)
    shutil.rmtree(changed / "checkpoint")
    with pytest.raises(UserError, match="has no checkpoint"):
        open_run(changed, [AIRLINE], "cpu")
    edit(changed, "learner", value="nobody")
    with pytest.raises(UserError, match="unknown learner 'nobody'"):
        open_run(changed, [AIRLINE], "cpu")
