"""The real data of all 27 tasks, and the generated twins, through the whole loading path."""

import json
from pathlib import Path

import numpy as np
import pytest

from stream.config import FilesData, GeneratedData
from stream.errors import UserError
from stream.task_spec import TaskSpec
from stream.tasks.leaks import handle_leaks
from stream.tasks.loading import load_task

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
REAL = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no real data at {SHARED}")


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": None},
        {"labels": ["one"]},
        {"labels": ["a", "a"]},
        {"kind": "triple"},
        {"metric": "spearman"},
        {"labels": None, "score_range": [5.0, 0.0], "metric": "spearman"},
    ],
)
def test_contradictory_specifications_are_refused(wrong: dict) -> None:
    right = {"title": "t", "kind": "single", "labels": ["a", "b"], "metric": "accuracy"}
    TaskSpec(**right, source="made")
    with pytest.raises(UserError):
        TaskSpec(**{**right, **wrong}, source="made")


def test_generated_rows_have_the_shape_of_the_task(
    all_specs: dict[str, TaskSpec], tmp_path: Path
) -> None:
    sizes = {"train": 40, "validation": 20, "test": 20}
    data = GeneratedData(**sizes)
    for name, spec in all_specs.items():
        loaded = load_task(data, name, spec, tmp_path)
        again = load_task(data, name, spec, tmp_path)
        assert {s: len(r) for s, r in loaded.rows.items()} == sizes
        train = loaded.rows["train"]
        assert train.digest() == again.rows["train"].digest()
        assert all(len(texts) == len(spec.files.text) for texts in train.texts)
        if spec.labels is not None:
            assert set(train.labels) == set(range(len(spec.labels)))
    other = load_task(GeneratedData(seed=1, train=40), "sst2", all_specs["sst2"], tmp_path)
    first = load_task(data, "sst2", all_specs["sst2"], tmp_path)
    assert other.rows["train"].texts != first.rows["train"].texts


def test_generated_tasks_do_not_leak(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    data = GeneratedData()
    loaded = {name: load_task(data, name, spec, tmp_path) for name, spec in all_specs.items()}
    assert handle_leaks(loaded, "error") == []


def test_a_root_that_is_not_there(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        load_task(FilesData(root=str(tmp_path / "no")), "sst2", all_specs["sst2"], tmp_path)
    with pytest.raises(UserError, match="sst2"):
        load_task(FilesData(root=str(tmp_path)), "sst2", all_specs["sst2"], tmp_path)


@REAL
def test_every_real_task_loads_without_a_drop(
    all_specs: dict[str, TaskSpec], tmp_path: Path
) -> None:
    published = json.loads((SHARED / "tasks.json").read_text())
    assert set(published) == set(all_specs)
    loaded = {}
    for name, facts in published.items():
        spec = all_specs[name]
        assert (spec.kind, spec.labels) == (facts["kind"], facts["labels"])
        assert (spec.metric, spec.files.text) == (facts["metric"], facts["columns"])
        loaded[name] = load_task(FilesData(root=str(SHARED)), name, spec, tmp_path)
        for split, rows in facts["rows"].items():
            account = loaded[name].accounts[split]
            assert (account.read, account.kept, account.dropped) == (rows, rows, {})
            if spec.labels is not None:
                found = np.unique(loaded[name].rows[split].labels)
                assert set(found) == set(range(len(spec.labels)))
    found = handle_leaks(loaded, "drop")
    leaks = {(leak.train_task, leak.held_out_task, leak.split): leak.count for leak in found}
    # The counts of pairs in ../shared/data/README.md, "Shared texts".
    assert leaks["stsb", "mrpc", "test"] == 498
    assert leaks["stsb", "mrpc", "validation"] == 48
    assert leaks["mrpc", "stsb", "test"] == 119
    assert leaks["mrpc", "stsb", "validation"] == 110
    assert {(a, b) for a, b, _ in leaks} == {("stsb", "mrpc"), ("mrpc", "stsb")}
    train = loaded["stsb"].accounts["train"]
    assert train.read == train.kept + train.dropped["leak"] == published["stsb"]["rows"]["train"]
