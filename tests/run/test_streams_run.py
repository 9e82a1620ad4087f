"""Whole runs on streams: a set that is cut, in a published order, from real and generated rows."""

import json
from pathlib import Path

import numpy as np
import pytest

from stream.cli.main import main
from stream.config.paths import tokenizer_location
from stream.data.build import build_tasks
from stream.data.text_encoder import TextEncoder
from stream.run.predict import Service
from stream.run.settings import compose_settings
from stream.run.verify import verify

SHARED = Path(__file__).parents[3] / "shared" / "data"
REAL = pytest.mark.skipif(not SHARED.exists(), reason="the real data are not here")
SMALL = ("backbone=tiny", "tracking=none", "training.epochs=1", "training.min_steps=0")
EMOTIONS = "task.crowdflower_emotion.cut={classes: 5}"


@REAL
def test_a_stream_in_its_published_order_on_real_rows(tmp_path: Path) -> None:
    """Banking77: one file, seven tasks, two training rows of each of 77 classes."""
    asked = ["stream=banking77", "order=published_1", "data=files", f"data.root={SHARED}"]
    limits = ["limits.per_class=2", "limits.eval=16", "backbone=tiny"]
    config, _ = compose_settings([*asked, *limits, f"cache={tmp_path}"])
    encoder = TextEncoder(tokenizer_location(config.backbone), 16, tmp_path)
    tasks, leaks = build_tasks(config, encoder)
    assert not leaks
    assert [task.name for task in tasks] == [f"banking77_{n}" for n in range(1, 8)]
    assert tasks[0].spec.title == "Banking77 1"
    for task in tasks:
        assert np.bincount(task.split("train").labels).tolist() == [2] * 11
        assert len(task.split("test")) == 16
        account = task.accounts["train"]
        assert account.read == 9027 == account.kept + account.dropped["other_class"]
    assert sum(task.accounts["train"].kept for task in tasks) == 9027


@pytest.mark.slow
def test_a_run_on_parts_goes_on_is_verified_and_predicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    asked = ["learner=adapter", *SMALL, EMOTIONS, f"hydra.run.dir={folder}", "device=cpu"]
    assert main(["run", "task=[crowdflower_emotion]", *asked]) == 0
    resumed = [f"resume={folder}", "task=[crowdflower_emotion,rte]", EMOTIONS]
    assert main(["run", *resumed]) == 0
    capsys.readouterr()
    record = json.loads((folder / "results.json").read_text())
    parts = [f"crowdflower_emotion_{n}" for n in (1, 2, 3)]
    assert record["order"] == [*parts, "rte"]
    assert all(check.ok for check in verify(folder))
    labels = record["config"]["task"][parts[1]]["labels"]
    (answer,) = Service(folder).predict(parts[1], ["a text"])
    assert answer.label in labels
