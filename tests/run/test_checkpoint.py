"""Checkpoints: whole or the one before, whatever happens to the files."""

import json
import logging
from pathlib import Path

import msgspec
import pytest
import torch

from stream.config.run import CheckpointConfig
from stream.data.task import Task
from stream.errors import UserError
from stream.fingerprint import tensor_digest
from stream.learners.finetune import Finetune
from stream.learners.frozen import Frozen
from stream.run import checkpoint
from stream.run.checkpoint import CheckpointStore
from stream.run.checkpoint_manager import CheckpointManager
from tests.conftest import Stream
from tests.record.made_record import made_record


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

    monkeypatch.setattr("stream.atomic_io.os.fsync", full)
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


def test_ready_json_in_the_state_is_read_as_its_values(tmp_path: Path) -> None:
    values = {"a": [1, 2.5, None, "ü\n\"'"], "b": {}, "c": {"x": [True, -0.0, 1e-17]}, "d": []}
    store = CheckpointStore(tmp_path)
    state = {"results": msgspec.Raw(msgspec.json.encode(values)), "training": None}
    digests = store.write({"shared": {"w": torch.ones(2)}}, state)
    found = store.latest()
    assert found is not None
    assert (found.state, found.groups) == ({"results": values, "training": None}, digests)


def test_the_last_manifest_is_hashed_and_not_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its groups are known; one that was changed since is found, and not counted as whole."""
    store = CheckpointStore(tmp_path)
    store.write({"shared": {"w": torch.zeros(1)}}, {"number": 0})
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.msgspec.json, "decode", lambda text: pytest.fail("parsed"))
        store.write({"shared": {"w": torch.ones(1)}}, {"number": 1})
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
    read: list[str] = []
    manager = CheckpointManager(tmp_path, CheckpointConfig())
    original = learner.task_state
    learner.task_state = lambda task: read.append(task) or original(task)
    for count in (1, 2):
        learner.start(three_tasks[count - 1])
        learner.finish(three_tasks[count - 1])
        manager.save(learner, made_record().encode())
    assert read == asked
    again = (Frozen if isolated else Finetune)()
    Stream(again, three_tasks)
    other = CheckpointManager(tmp_path, CheckpointConfig())
    saved = other.latest()
    other.load_tasks(saved, again, three_tasks[:2])
    read.clear()
    original = again.task_state
    again.task_state = lambda task: read.append(task) or original(task)
    other.save(again, made_record().encode())
    assert read == ([] if isolated else ["a", "b"])


def test_another_writer_s_manifest_is_parsed(tmp_path: Path) -> None:
    CheckpointStore(tmp_path).write({"shared": {"w": torch.zeros(1)}}, {"number": 0})
    store = CheckpointStore(tmp_path)  # as after an interruption
    store.write({"shared": {"w": torch.ones(1)}}, {"number": 1})
    assert [store.read(number).state["number"] for number in store.generations()] == [0, 1]


def test_nothing_is_pickled() -> None:
    root = Path(__file__).parent.parent.parent
    for path in [*root.glob("stream/**/*.py"), root / "run_stream.py"]:
        source = path.read_text()
        assert "torch.load" not in source, path
        assert "pickle.load" not in source, path
