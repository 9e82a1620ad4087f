"""Checkpoints: whole or the one before, whatever happens to the files."""

import json
import logging
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch

from stream.config.run import CheckpointConfig, TrainingConfig
from stream.data.task import Task
from stream.errors import UserError
from stream.files.line_log import LineLog
from stream.fingerprint import tensor_digest
from stream.learners.finetune import Finetune
from stream.learners.frozen import Frozen
from stream.record.parts import DataRecord
from stream.record.rows import row_of
from stream.run import checkpoint
from stream.run.checkpoint import CheckpointStore
from stream.run.checkpoint_manager import CheckpointManager
from stream.run.resume import check_unchanged
from stream.run.settings import as_values, compose_settings
from tests.builders import Stream, made_task
from tests.record.made_record import EXAMPLES, learn, made_record


def groups(value: float) -> dict[str, dict[str, torch.Tensor]]:
    return {"task/a": {"weight": torch.ones(3)}, "shared": {"weight": torch.full((2, 2), value)}}


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    made = CheckpointStore(tmp_path)
    for number in (1.0, 2.0, 3.0):
        made.write(groups(number), {"number": number})
    return made


def files(folder: Path, pattern: str) -> list[Path]:
    return sorted((folder / "checkpoint").rglob(pattern))


def test_the_last_two_generations_are_kept_and_what_is_the_same_is_written_once(
    store: CheckpointStore, tmp_path: Path
) -> None:
    assert store.generations() == [2, 3]
    assert len(files(tmp_path, "*.safetensors")) == 3  # task/a once, shared twice
    found = store.latest()
    assert found is not None
    assert found.state == {"number": 3.0}
    assert torch.equal(store.load(found, "shared")["weight"], torch.full((2, 2), 3.0))
    assert torch.equal(store.load(found, "task/a")["weight"], torch.ones(3))


def test_a_manifest_cut_at_any_length_falls_back_to_the_one_before(
    store: CheckpointStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = files(tmp_path, "manifest-3.json")[0]
    whole = path.read_bytes()
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with caplog.at_level(logging.WARNING, logger="stream"):
            found = store.latest()
        assert found is not None
        assert found.generation == 2, length
    assert "going on from checkpoint 2" in caplog.text


def test_a_flipped_bit_in_any_file_is_found(store: CheckpointStore, tmp_path: Path) -> None:
    for path in files(tmp_path, "*.*"):
        whole = path.read_bytes()
        path.write_bytes(whole[:-5] + bytes([whole[-5] ^ 4]) + whole[-4:])
        broken = []
        for generation in store.generations():
            try:
                store.read(generation)
            except checkpoint.BrokenCheckpointError:
                broken.append(generation)
        assert broken, path
        path.write_bytes(whole)


def test_with_both_generations_broken_nothing_is_guessed(
    store: CheckpointStore, tmp_path: Path
) -> None:
    for path in files(tmp_path, "manifest-*.json"):
        path.write_text("{}")
    with pytest.raises(UserError, match="checkpoint 3 cannot be used"):
        store.latest()


def test_a_full_disk_leaves_the_generations_before_untouched(
    store: CheckpointStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in files(tmp_path, "*.*")}

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stream.files.line_log.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.write(groups(4.0), {"number": 4.0})
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in files(tmp_path, "*.*")} == before
    found = store.latest()
    assert found is not None
    assert found.state == {"number": 3.0}


def test_a_torn_generation_does_not_push_out_a_whole_one(
    store: CheckpointStore, tmp_path: Path
) -> None:
    files(tmp_path, "manifest-3.json")[0].write_text("torn")
    store.write(groups(5.0), {"number": 5.0})
    assert store.generations() == [2, 4]
    assert store.read(2).state == {"number": 2.0}


def test_a_file_of_the_right_size_and_wrong_content_is_written_again(
    store: CheckpointStore, tmp_path: Path
) -> None:
    found = store.latest()
    assert found is not None
    path = tmp_path / "checkpoint/objects" / f"{found.groups['task/a']}.safetensors"
    path.write_bytes(b"0" * path.stat().st_size)
    store.write(groups(6.0), {"number": 6.0})
    newest = store.latest()
    assert newest is not None
    assert torch.equal(store.load(newest, "task/a")["weight"], torch.ones(3))


def test_a_manifest_is_plain_json_with_its_own_digest(
    store: CheckpointStore, tmp_path: Path
) -> None:
    text, digest = files(tmp_path, "manifest-3.json")[0].read_text().splitlines()
    assert json.loads(text)["state"] == {"number": 3.0}
    assert len(digest) == 64


def test_what_is_final_stands_in_a_log_that_only_grows(tmp_path: Path) -> None:
    """A manifest is as long after a hundred tasks as after one."""
    store, log = CheckpointStore(tmp_path), tmp_path / "checkpoint/groups.jsonl"
    sizes, logs = [], []
    for number in range(100, 140):
        own = {f"task/{number}": {"weight": torch.full((2,), float(number))}}
        shared = {"shared": {"weight": torch.full((2,), -float(number))}}
        store.write({**own, **shared}, {"number": number}, final=[*own])
        sizes.append(files(tmp_path, f"manifest-{number - 99}.json")[0].stat().st_size)
        logs.append(log.read_bytes())
    assert max(sizes) - min(sizes) <= 8  # digits of numbers
    assert all(new.startswith(old) and len(new) > len(old) for old, new in pairwise(logs))
    found = store.latest()
    assert found is not None
    assert len(found.groups) == 41
    assert len(files(tmp_path, "*.safetensors")) == 40 + 2  # shared ones
    for number in (100, 139):
        assert torch.equal(
            store.load(found, f"task/{number}")["weight"], torch.full((2,), float(number))
        )


def test_a_log_longer_than_the_manifest_says_is_written_over(tmp_path: Path) -> None:
    """As after a kill between the two; a group is then that of the second time."""
    store, log = CheckpointStore(tmp_path), tmp_path / "checkpoint/groups.jsonl"
    store.write({"task/a": {"w": torch.zeros(1)}}, {"number": 0}, final=["task/a"])
    before = log.read_bytes()
    log.write_bytes(before + b'["task/b","' + b"0" * 64 + b'"]\n["task/c')
    again = CheckpointStore(tmp_path)
    found = again.latest()
    assert found is not None
    again.go_on(found)
    assert dict(again.final) == found.groups
    again.write({"task/b": {"w": torch.ones(1)}}, {"number": 1}, final=["task/b"])
    assert log.read_bytes().startswith(before)
    newest = CheckpointStore(tmp_path).latest()
    assert newest is not None
    assert newest.state == {"number": 1}
    assert torch.equal(again.load(newest, "task/b")["w"], torch.ones(1))


def test_a_generation_whose_rows_were_cut_is_not_whole(tmp_path: Path) -> None:
    rows, store = LineLog(tmp_path / "rows.jsonl"), CheckpointStore(tmp_path)
    for number in range(2):
        rows.append([b"row %d" % number])
        store.write({"shared": {}}, {"number": number}, rows=rows.extent)
    whole = (tmp_path / "rows.jsonl").read_bytes()
    found = store.latest()
    assert found is not None
    assert store.rows(found) == [b"row 0", b"row 1"]
    for content in (whole[:-1], whole.replace(b"1", b"7"), whole[:8]):
        (tmp_path / "rows.jsonl").write_bytes(content)
        found = store.latest()
        assert found is not None
        assert found.state == {"number": 0}
    (tmp_path / "rows.jsonl").unlink()
    with pytest.raises(UserError, match="checkpoint 2 cannot be used: rows"):
        store.latest()


def test_a_document_is_kept_as_long_as_a_generation_names_it(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    for number in range(4):
        document = store.write_document(b"%d" % (number // 2))
        store.write({"shared": {}}, {}, document=document)
    assert len(files(tmp_path, "*.json")) == 2 + 1
    assert store.document(store.read(4)) == b"1"


def test_a_manifest_changed_since_does_not_count_as_whole(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    for number in range(2):
        store.write({"shared": {"w": torch.full((1,), float(number))}}, {"number": number})
    path = tmp_path / "checkpoint/manifest-2.json"
    path.write_bytes(path.read_bytes().replace(b'"number":1', b'"number":7'))
    store.write({"shared": {"w": torch.full((1,), 2.0)}}, {"number": 2})
    assert store.generations() == [1, 3]
    assert torch.equal(store.load(store.read(1), "shared")["w"], torch.zeros(1))
    (tmp_path / "checkpoint/manifest-3.json").write_bytes(b"{")
    found = store.latest()
    assert found is not None
    assert found.state == {"number": 0}


def test_tensors_come_back_with_their_types_and_bits(tmp_path: Path) -> None:
    """Places and masks, half precision, what is not a number, and what is not contiguous."""
    tensors = {
        "places": torch.tensor([0, 2**31 - 1], dtype=torch.int32),
        "labels": torch.tensor([2**62 + 1]),
        "mask": torch.tensor([True, False]),
        "half": torch.tensor([1.0, 1 / 3], dtype=torch.bfloat16),
        "double": torch.tensor([1 / 3], dtype=torch.float64),
        "odd": torch.tensor([float("nan"), -0.0, float("inf"), 1e-45]),
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(7.0),
    }
    store = CheckpointStore(tmp_path)
    store.write({"shared": tensors}, {})
    found = store.load(store.read(1), "shared")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert tensor_digest(found[name]) == tensor_digest(tensor), name


@pytest.mark.parametrize(("isolated", "asked"), [(True, ["a", "b"]), (False, ["a", "a", "b"])])
def test_what_isolated_tasks_own_is_written_once(
    tmp_path: Path, *, isolated: bool, asked: list[str], three_tasks: list[Task]
) -> None:
    """By the run that learned it, and by one that goes on from its files."""
    learner = (Frozen if isolated else Finetune)()
    Stream(learner, three_tasks)
    names = [task.name for task in three_tasks]
    rows = {name: {"test": EXAMPLES} for name in names}
    record = made_record(order=names, data=DataRecord(source="made", hash="", rows=rows))
    read: list[str] = []
    manager = CheckpointManager(tmp_path, CheckpointConfig())
    original = learner.task_state
    learner.task_state = lambda task: read.append(task) or original(task)
    for index in range(2):
        learner.start(three_tasks[index])
        learner.finish(three_tasks[index])
        learn(record, index)
        manager.commit_row(learner, record, index)
    assert read == asked
    again = (Frozen if isolated else Finetune)()
    Stream(again, three_tasks)
    other = CheckpointManager(tmp_path, CheckpointConfig())
    saved = other.latest()
    assert saved is not None
    other.load_tasks(saved, again, three_tasks[:2])
    other.go_on(saved)
    read.clear()
    original = again.task_state
    again.task_state = lambda task: read.append(task) or original(task)
    other.save(again, saved.record)
    assert read == ([] if isolated else ["a", "b"])


def test_another_writer_s_manifest_is_parsed(tmp_path: Path) -> None:
    CheckpointStore(tmp_path).write({"shared": {"w": torch.zeros(1)}}, {"number": 0})
    store = CheckpointStore(tmp_path)  # as after an interruption
    store.write({"shared": {"w": torch.ones(1)}}, {"number": 1})
    assert [store.read(number).state["number"] for number in store.generations()] == [0, 1]


def test_nothing_on_disk_is_pickled() -> None:
    """What a process hands to its own workers may be."""
    root = Path(__file__).parent.parent.parent
    paths = [*root.glob("stream/**/*.py"), root / "run_stream.py"]
    for path in [path for path in paths if path.parent != root / "stream/workers"]:
        source = path.read_text()
        assert "torch.load" not in source, path
        assert "pickle.load" not in source, path


@pytest.mark.parametrize(
    ("done", "enabled", "goes_on"),
    [(0, False, True), (1, True, True), (1, False, False), (2, True, False)],
)
def test_one_row_without_a_checkpoint_is_that_of_a_kill_between_the_two(
    tmp_path: Path, *, done: int, enabled: bool, goes_on: bool
) -> None:
    """It is computed again; a run that keeps no checkpoint, or whose were taken away, is told."""
    record = made_record(config={"checkpoint": {"enabled": enabled}})
    record.write(tmp_path)
    rows = LineLog(tmp_path / "rows.jsonl")
    for index in range(done):
        learn(record, index)
        rows.append([msgspec.json.encode(row_of(record, index, {}))])
    run: Any = None  # nothing of it is looked at
    if goes_on:
        check_unchanged(run, tmp_path, None)
        return
    with pytest.raises(UserError, match=f"kept no checkpoint, and its {done} rows are done"):
        check_unchanged(run, tmp_path, None)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"figures": False, "device": "cpu"}, None),
        ({"seed": 7}, r"not that of the checkpoint beside it: seed was 0, now 7; a run goes on"),
        ({"training": TrainingConfig(epochs=9)}, r"training\.epochs was 3, now 9"),
        ({"task": ["cola", "stsb", "rte"]}, None),  # a run may go on with more
        ({"task": ["cola"]}, "task was cola, stsb; now cola"),
    ],
)
def test_a_run_goes_on_with_the_settings_that_its_checkpoint_has(
    tmp_path: Path, changes: dict[str, Any], told: str | None
) -> None:
    """Whoever edits results.json of an unfinished run would get rows of two configurations."""
    tasks = {name: made_task(name).spec for name in ("cola", "stsb", "rte")}
    two = {name: tasks[name] for name in ("cola", "stsb")}
    began = replace(compose_settings(["task=[cola]", "backbone=tiny"])[0], task=two)
    if "task" in changes:
        changes = {"task": {name: tasks[name] for name in changes["task"]}}
    record = made_record(config=as_values(began))
    run: Any = SimpleNamespace(config=replace(began, **changes), record=record)
    saved: Any = SimpleNamespace(record=record)
    if told is None:
        check_unchanged(run, tmp_path, saved)
        return
    with pytest.raises(UserError, match=told):
        check_unchanged(run, tmp_path, saved)
