"""The real data of all 27 tasks, and the generated twins, through the whole loading path."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stream.config.data import FilesData, GeneratedData, HubData
from stream.config.task import TaskSpec
from stream.data.loading import load_task
from stream.data.prepare.leakage import handle_leaks
from stream.errors import UserError

SHARED = Path(__file__).parents[3] / "shared" / "data"
REAL = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no real data at {SHARED}")


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": None},
        {"labels": ["one"]},
        {"labels": ["a", "a"]},
        {"kind": "triple"},
        {"metric": "spearman"},
        {"metric": "f1", "labels": ["a", "b", "c"]},
        {"labels": None, "score_range": [5.0, 0.0], "metric": "spearman"},
    ],
)
def test_contradictory_specifications_are_refused(wrong: dict) -> None:
    right = {"title": "t", "kind": "single", "labels": ["a", "b"], "metric": "accuracy"}
    TaskSpec(**right, source="made")
    with pytest.raises(UserError):
        TaskSpec(**{**right, **wrong}, source="made")


def with_twin(specs: dict[str, TaskSpec]) -> dict[str, TaskSpec]:
    """Questions and their answers have no generated twin."""
    return {name: spec for name, spec in specs.items() if spec.kind != "span"}


def test_generated_rows_have_the_shape_of_the_task(
    all_specs: dict[str, TaskSpec], tmp_path: Path
) -> None:
    sizes = {"train": 40, "validation": 20, "test": 20}
    data = GeneratedData(**sizes)
    for name, spec in with_twin(all_specs).items():
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
    specs = with_twin(all_specs)
    loaded = {name: load_task(data, name, spec, tmp_path) for name, spec in specs.items()}
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
    assert set(published) == set(with_twin(all_specs))  # SQuAD is not among the real data
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


def test_files_are_taken_as_published(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    """Stand-ins in the shape of the originals: names, columns, separators, label first."""
    sms = [("ham" if i % 3 else "spam", f'"message {i} never closes') for i in range(300)]
    lines = "".join(f"{label}\t{text}\n" for label, text in sms)
    (tmp_path / "SMSSpamCollection").write_text(lines, encoding="utf-8")
    spec = all_specs["sms_spam"]
    assert spec.original.rows == {"all": 5574}  # the file as published; the stand-in is smaller
    spec = replace(spec, original=replace(spec.original, rows={}))
    loaded = load_task(FilesData(root=str(tmp_path)), "sms_spam", spec, tmp_path)
    assert sum(account.read for account in loaded.accounts.values()) == 300
    texts = {text for rows in loaded.rows.values() for (text,) in rows.texts}
    assert texts == {text for _, text in sms}

    nested = tmp_path / "crowdflower" / "progressive-tweet-sentiment.csv"
    nested.parent.mkdir()
    stance = "q1_from_reading_the_tweet_which_is_the_stance_towards_the_target"
    answers = ["FOR: for it", "AGAINST: against it", "NEUTRAL: neither", "NONE OF THE ABOVE: none"]
    body = "".join(f'"été, tweet {i}",{answers[i % 4]}\n' for i in range(400))
    nested.write_text(f"tweet,{stance}\n{body}", encoding="latin-1")
    name = "crowdflower_progressive_stance"
    loaded = load_task(FilesData(root=str(tmp_path)), name, all_specs[name], tmp_path)
    assert sum(account.kept for account in loaded.accounts.values()) == 400
    row = loaded.rows["train"].texts[0][0]
    number = int(row.rpartition(" ")[2])
    label = all_specs[name].labels[loaded.rows["train"].labels[0]]
    assert row.startswith("été, tweet")
    assert answers[number % 4].startswith(label)


def test_every_task_says_where_it_is_on_the_hub(all_specs: dict[str, TaskSpec]) -> None:
    for name, spec in all_specs.items():
        assert (spec.hub.id is None) == (spec.hub.missing is not None), name
        assert spec.hub.text, name
        assert spec.hub.revision in (None, "refs/convert/parquet"), name
        assert "test" not in spec.hub.splits.values() or "glue" not in str(spec.hub.id), name
    no_id = {name for name, spec in all_specs.items() if spec.hub.id is None}
    assert all(all_specs[name].original.text for name in no_id)


def test_no_hub_id_is_said_with_the_way_on(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no hub id is known.*newsCorpora\.csv.*data=files"):
        load_task(HubData(), "news_aggregator", all_specs["news_aggregator"], tmp_path)
