"""A finished run, served again: the same bits, and what its adapters contribute."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score

from stream.errors import UserError
from stream.evaluation.evaluate import evaluate
from stream.run.layer_ablation import majority_score, span_scores
from stream.run.load import reopen
from tests.run.program import run

pytestmark = pytest.mark.slow

AIRLINE = "crowdflower_airline"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "run"
    code, _, err = run(folder.parent, f"hydra.run.dir={folder}")
    assert (code, err) == (0, "")
    return folder


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
    run_again = reopen(kept, ["stsb", AIRLINE], device="cpu")
    last = run_again.results["cells"][-1]
    for task in run_again.tasks:
        cell = evaluate(run_again.parts.learner, task, "test", 2048, run_again.parts.device)
        recorded = last[run_again.results["order"].index(task.name)]
        assert (cell.digest, cell.score) == (recorded["digest"], recorded["score"])
        assert cell.correct == recorded["correct"]


def test_spans_start_from_the_run_and_end_without_adapters(kept: Path) -> None:
    run_again = reopen(kept, [AIRLINE], device="cpu")
    (task,) = run_again.tasks
    scores = span_scores(run_again, task, "test")
    index = run_again.results["order"].index(AIRLINE)
    assert scores.full == run_again.results["matrix"][-1][index]
    learner = run_again.parts.learner
    layers = len(learner.model.encoder.layers())
    assert scores.spans.shape == (layers, layers)
    assert np.isnan(scores.spans[np.tril_indices(layers, -1)]).all()
    assert not np.isnan(scores.spans[np.triu_indices(layers)]).any()
    again = evaluate(learner, task, "test", 2048, run_again.parts.device)
    assert again.score == scores.full  # the adapters are back


def test_the_majority_line_is_that_of_a_dummy_classifier(kept: Path) -> None:
    (task,) = reopen(kept, [AIRLINE], device="cpu").tasks
    train, test = task.split("train").labels, task.split("test").labels
    dummy = DummyClassifier(strategy="most_frequent").fit(train[:, None], train)
    expected = accuracy_score(test, dummy.predict(test[:, None]))
    assert majority_score(task, "test") == pytest.approx(expected)


def test_what_cannot_be_reopened_is_told_in_one_line(changed: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run at"):
        reopen(tmp_path / "nowhere", ["stsb"])
    with pytest.raises(UserError, match="unknown task of this run 'stbs'"):
        reopen(changed, ["stbs"], "cpu")
    edit(changed, "config", "data", "seed", value=7)
    with pytest.raises(UserError, match="the data changed since the run"):
        reopen(changed, [AIRLINE], "cpu")
    edit(changed, "config", "data", "seed", value=0)
    shutil.rmtree(changed / "checkpoint")
    with pytest.raises(UserError, match="has no checkpoint"):
        reopen(changed, [AIRLINE], "cpu")
    edit(changed, "learner", value="nobody")
    with pytest.raises(UserError, match="no record of a run with a learner"):
        reopen(changed, [AIRLINE], "cpu")
