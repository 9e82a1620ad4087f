"""The cache of whole streams: what comes from it is what reading gives, whatever has happened."""

import json
import logging
import os
import pickle
import random
import shutil
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream.config.cut import CutSpec
from stream.config.data import FilesData, GeneratedData, Limits, StreamConfig
from stream.config.parts import parts_of
from stream.config.run import RunConfig
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.data import build
from stream.data.build import build_tasks
from stream.data.cache import contents, entries
from stream.data.cache.contents import Contents, State
from stream.data.task import Split, Task
from stream.data.text_encoder import TextEncoder
from stream.errors import UserError
from tests.builders import made_spec
from tests.data.squad import made_rows
from tests.data.squad import spec as span_spec
from tests.data.test_text_encoder import MARKS, WORDS, made_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextEncoder:
    """A tokenizer whose own cache of tokens knows a split by its rows alone."""
    folder = tmp_path_factory.mktemp("tokenizer")
    return TextEncoder(made_tokenizer(folder, MARKS["bert"]), 12, folder)


def written(folder: Path, name: str, lines: list[tuple[str, str]]) -> None:
    """Write a file of texts and labels."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("text,label\n" + "".join(f"{t},{label}\n" for t, label in lines))


def made_lines(generator: random.Random, number: int) -> list[tuple[str, str]]:
    """Short texts; some repeat, also in other files, and some are empty."""
    lines = []
    for _ in range(number):
        text = " ".join(generator.choices(WORDS, k=generator.randrange(3, 12)))
        text = generator.choice([*[text] * 8, "a b c", "d e f", "", text[:5]])
        lines.append((text, f"label {generator.randrange(2)}"))
    return lines


def files_of(title: str, splits: dict[str, str], **more: Any) -> TaskSpec:
    files = FilesSource(folder=title, text=["text"], splits=splits, **more)
    return replace(made_spec(), title=title, files=files)


def made_stream(root: Path) -> RunConfig:
    """One file divided, files by pattern, a folder of parts, one of classes, answers, two parts."""
    generator = random.Random(0)
    written(root / "one", "all.csv", made_lines(generator, 80))
    for name in ("train-1.csv", "train-2.csv", "test.csv"):
        written(root / "several", name, made_lines(generator, 60))
    for name in ("part-0.csv", "part-1.csv"):
        written(root / "parts" / "rows", name, made_lines(generator, 60))
    for number, (text, label) in enumerate(made_lines(generator, 40)):
        folder = root / "classes" / "rows" / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(text)
    written(
        root / "set",
        "all.csv",
        [(t, f"label {i % 4}") for i, (t, _) in enumerate(made_lines(generator, 100))],
    )
    (root / "spans").mkdir()
    (root / "spans" / "all.jsonl").write_text("\n".join(map(json.dumps, made_rows(60))))
    tasks = {
        "one": files_of("one", {"all": "all.csv"}),
        "several": files_of("several", {"train": "train-*.csv", "test": "test.csv"}),
        "parts": files_of("parts", {"all": "rows"}),
        "classes": files_of("classes", {"all": "rows"}),
        "spans": replace(
            span_spec(),
            files=replace(span_spec().files, folder="spans", splits={"all": "all.jsonl"}),
        ),
    }
    whole = replace(files_of("set", {"all": "all.csv"}), labels=[f"label {i}" for i in range(4)])
    tasks |= parts_of("set", whole, CutSpec(classes=2))
    return RunConfig(
        data=FilesData(root=str(root)),
        task=tasks,
        limits=Limits(eval=40, per_class=50),
        cache=str(root.parent / "cache"),
    )


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, down to the types of numbers."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, Split | Task) or hasattr(one, "char_spans"):
        return type(one) is type(other) and all(
            same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return repr(one) == repr(other)


Built = tuple[Any, ...]


def built(config: RunConfig, encoder: TextEncoder, caplog: pytest.LogCaptureFixture) -> Built:
    """All that comes of building the tasks: tasks, leaks, what is logged; or the error."""
    caplog.clear()
    try:
        tasks, leaks = build_tasks(config, encoder)
    except UserError as error:
        return ("error", str(error))
    logged = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
    return tasks, [asdict(leak) for leak in leaks], logged


def all_same(one: Built, other: Built) -> bool:
    """Whether two builds gave the same."""
    if len(one) != len(other) or one[1:] != other[1:]:
        return False
    return one == other if one[0] == "error" else all(map(same, one[0], other[0]))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows whenever sources are read."""
    found: list[str] = []
    before = build.load_tasks

    def load_tasks(*arguments: Any) -> Any:
        found.append("read")
        return before(*arguments)

    monkeypatch.setattr(build, "load_tasks", load_tasks)
    return found


def without_cache(config: RunConfig) -> RunConfig:
    """The same run with a cache that is empty."""
    folder = Path(str(config.cache)).parent / "empty"
    shutil.rmtree(folder, ignore_errors=True)
    return replace(config, cache=str(folder))


def test_from_the_cache_everything_is_as_it_was_read(
    tmp_path: Path, tokenizer: TextEncoder, caplog: pytest.LogCaptureFixture, reads: list[str]
) -> None:
    config = made_stream(tmp_path / "data")
    for changed in (
        config,
        replace(config, leaks="warn"),
        replace(config, limits=Limits()),
        replace(config, data=GeneratedData(train=20), task={"a": made_spec(), "b": made_spec(3)}),
    ):
        fresh = built(changed, tokenizer, caplog)
        number = len(reads)
        again = built(changed, tokenizer, caplog)
        assert len(reads) == number
        assert all_same(fresh, again)
        assert fresh[0] != "error"
        for task in again[0]:
            assert all(
                type(array) is np.ndarray
                for array in vars(task.split("train")).values()
                if isinstance(array, np.ndarray)
            )
    leaks, logged = built(config, tokenizer, caplog)[1:]
    assert leaks
    assert [level for _, level, _ in logged] == [logging.WARNING] * 2  # leaks, and few rows
    assert tasks_of(config, tokenizer)["one"].accounts["train"].dropped.keys() >= {"leak"}
    # What differs from run to run has no part in it.
    number = len(reads)
    other = replace(config, seed=3, order="reversed", stream=StreamConfig(name="other"))
    names = [task.name for task in build_tasks(other, tokenizer)[0]]
    assert names == list(reversed(config.task))
    assert len(reads) == number


def tasks_of(config: RunConfig, encoder: TextEncoder) -> dict[str, Task]:
    return {task.name: task for task in build_tasks(config, encoder)[0]}


def test_a_task_of_the_cache_is_pickled_without_the_others(
    tmp_path: Path, tokenizer: TextEncoder
) -> None:
    config = made_stream(tmp_path / "data")
    tasks_of(config, tokenizer)
    for task in tasks_of(config, tokenizer).values():
        small = pickle.dumps(replace(task.split("test"), answers=None))
        assert len(small) < 2 * task.split("test").nbytes + 2000
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        assert same(pickle.loads(pickle.dumps(task)), task)


def test_other_settings_are_other_entries(
    tmp_path: Path, tokenizer: TextEncoder, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change alone is read anew, and what was there before is found again."""
    config = made_stream(tmp_path / "data")
    one = config.task["one"]
    values = {"label 0": "label 1", "label 1": "label 0"}
    others = [
        replace(config, leaks="warn"),
        replace(config, limits=replace(config.limits, seed=1)),
        replace(config, limits=replace(config.limits, eval=5)),
        replace(config, task={**config.task, "one": replace(one, labels=one.labels[::-1])}),
        replace(
            config,
            task={**config.task, "one": replace(one, files=replace(one.files, values=values))},
        ),
        replace(config, task=dict(reversed(config.task.items()))),
        replace(config, task={name: s for name, s in config.task.items() if name != "one"}),
        replace(config, data=FilesData(root=f"{config.data.root}/../data")),  # accounts say where
    ]
    for number, changed in enumerate([config, *others], 1):
        build_tasks(changed, tokenizer)
        assert len(reads) == number
    for changed in (config, *others):
        build_tasks(changed, tokenizer)
    assert len(reads) == 1 + len(others)
    monkeypatch.setattr(tokenizer, "key", "another tokenizer")
    build_tasks(config, tokenizer)
    entries._pipeline.cache_clear()
    monkeypatch.setattr(entries, "FORMAT", -1)
    build_tasks(config, tokenizer)
    entries._pipeline.cache_clear()
    assert len(reads) == 3 + len(others)


def test_the_code_of_the_pipeline_is_part_of_the_name() -> None:
    found = {p for pattern in entries.OWN for p in Path(build.__file__).parents[1].glob(pattern)}
    for module in (build, contents, entries):
        assert Path(module.__file__) in found
    names = {path.name for path in found}
    assert {"seeding.py", "errors.py", "task.py", "leakage.py", "rows.py", "dialect.py"} <= names


def edited(generator: random.Random, path: Path) -> None:
    """Change one letter; size and time of the change stay as they were."""
    before, raw = path.stat(), bytearray(path.read_bytes())
    at = generator.randrange(len(raw))
    raw[at] = generator.choice(b"abcdef") if raw[at] in b"abcdef" else raw[at]
    path.write_bytes(bytes(raw))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def touched(generator: random.Random, path: Path) -> None:
    """Change no more than the time."""
    os.utime(path, (generator.randrange(10**9),) * 2)


def replaced(generator: random.Random, path: Path) -> None:
    """Put another file with other rows in its place."""
    other = path.with_name(".other")
    other.write_bytes(path.read_bytes() + path.read_bytes()[-generator.randrange(40, 80) :])
    other.replace(path)


def linked(generator: random.Random, path: Path) -> None:
    """Make it a link to what another file of its folder holds."""
    others = [p for p in path.parent.iterdir() if p.is_file() and p.suffix == path.suffix]
    target = path.with_name(f".target-{generator.randrange(10**9)}")
    shutil.copy(generator.choice(others), target)
    path.unlink()
    path.symlink_to(target.name)


def added(generator: random.Random, path: Path) -> None:
    """Put a copy beside it, which a pattern or a folder may find."""
    shutil.copy(path, path.with_name(f"{path.stem}-{generator.randrange(10**6)}{path.suffix}"))


def removed(_: random.Random, path: Path) -> None:
    path.unlink()


def renamed(_: random.Random, path: Path) -> None:
    """Swap the contents of two files by their names."""
    other = max(p for p in path.parent.iterdir() if p.suffix == path.suffix and p.is_file())
    if other != path:
        path.rename(path.with_name(".swap"))
        other.rename(path)
        path.with_name(".swap").rename(other)


CHANGES: list[Callable[[random.Random, Path], None]] = [
    edited,
    edited,
    touched,
    replaced,
    linked,
    added,
    renamed,
    removed,
]


def test_after_any_change_of_files_what_is_built_is_what_is_there(
    tmp_path: Path,
    tokenizer: TextEncoder,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Random changes, one after another, against reading without a cache."""
    config, generator = made_stream(tmp_path / "data"), random.Random(0)
    root, outcomes = tmp_path / "data", set()
    for step in range(12):
        if step:
            # Half of the time, a state is trusted as soon as it was seen.
            monkeypatch.setattr(contents, "SETTLED_S", 60.0 * (step > 7))
            below = root / generator.choice(sorted(path.name for path in root.iterdir()))
            files = sorted(p for p in below.rglob("*") if p.is_file() and p.name[0] != ".")
            shutil.copytree(root, tmp_path / "kept", symlinks=True)
            CHANGES[step % len(CHANGES)](generator, generator.choice(files))
        fresh = built(without_cache(config), tokenizer, caplog)
        assert all_same(fresh, built(config, tokenizer, caplog)), step
        assert all_same(fresh, built(config, tokenizer, caplog)), step
        outcomes.add(repr(fresh[1] if fresh[0] == "error" else [t.hashes for t in fresh[0]]))
        if fresh[0] == "error":  # go on from where it was right
            shutil.rmtree(root)
            (tmp_path / "kept").rename(root)
        shutil.rmtree(tmp_path / "kept", ignore_errors=True)
    assert len(outcomes) > 5  # most changes did change something


def test_a_file_that_was_only_touched_or_copied_is_not_read(
    tmp_path: Path, tokenizer: TextEncoder, reads: list[str]
) -> None:
    config = made_stream(tmp_path / "data")
    build_tasks(config, tokenizer)
    os.utime(tmp_path / "data/one/all.csv")
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "copy").rename(tmp_path / "data")
    build_tasks(config, tokenizer)
    assert len(reads) == 1


def test_accounts_count_files_that_are_no_data(tmp_path: Path, tokenizer: TextEncoder) -> None:
    config = made_stream(tmp_path / "data")
    for number in range(3):
        account = tasks_of(config, tokenizer)["parts"].accounts["train"]
        assert account.provenance.get("not_rows") == (str(number) if number else None)
        (tmp_path / f"data/parts/rows/notes-{number}.md").write_text("about the rows")


def test_what_changes_while_it_is_read_is_not_kept(
    tmp_path: Path, tokenizer: TextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = made_stream(tmp_path / "data")
    path = tmp_path / "data/one/all.csv"
    first = path.read_bytes()
    before = build.load_tasks

    def meanwhile(*arguments: Any) -> Any:
        path.write_bytes(first + b"a a a,label 1\n" * 3)
        return before(*arguments)

    monkeypatch.setattr(build, "load_tasks", meanwhile)
    other = tasks_of(config, tokenizer)["one"].hashes
    monkeypatch.undo()
    path.write_bytes(first)
    wanted = tasks_of(without_cache(config), tokenizer)["one"].hashes
    assert tasks_of(config, tokenizer)["one"].hashes == wanted != other


def test_a_damaged_entry_is_read_from_the_source_and_written_again(
    tmp_path: Path, tokenizer: TextEncoder, caplog: pytest.LogCaptureFixture, reads: list[str]
) -> None:
    config = made_stream(tmp_path / "data")
    fresh = built(config, tokenizer, caplog)
    (entry,) = [path for path in (tmp_path / "cache/tasks").iterdir() if path.is_dir()]
    names = sorted(path.name for path in entry.iterdir())
    assert names == ["int32.npy", "int64.npy", "tasks.json"]
    for number, name in enumerate([*names, *names]):
        path = entry / name
        if number < len(names):
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-9])
        assert all_same(fresh, built(config, tokenizer, caplog))
        assert len(reads) == 2 + number
        assert all_same(fresh, built(config, tokenizer, caplog))
        assert len(reads) == 2 + number
    for note in (tmp_path / "cache/tasks").glob("*.json"):
        note.write_text('{"/x": [1, 2]}')
    assert all_same(fresh, built(config, tokenizer, caplog))


def test_few_entries_are_kept(
    tmp_path: Path, tokenizer: TextEncoder, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "MOST_ENTRIES", 3)
    config = RunConfig(data=GeneratedData(train=9), task={"a": made_spec()}, cache=str(tmp_path))
    seeds = [replace(config, data=replace(config.data, seed=seed)) for seed in range(5)]
    stale = tmp_path / "tasks" / ".writing-x"
    stale.mkdir(parents=True)
    os.utime(stale, (0, 0))
    for number, changed in enumerate(seeds):
        build_tasks(changed, tokenizer)
        for at, path in enumerate(p for p in (tmp_path / "tasks").iterdir() if p.is_dir()):
            os.utime(path, (number + at,) * 2)
    assert len([path for path in (tmp_path / "tasks").iterdir() if path.is_dir()]) == 3
    monkeypatch.setattr(entries, "MOST_BYTES", 0)
    build_tasks(replace(config, leaks="warn"), tokenizer)
    assert len([path for path in (tmp_path / "tasks").iterdir() if path.is_dir()]) == 1


def test_a_cache_that_cannot_be_written_is_none(
    tmp_path: Path, tokenizer: TextEncoder, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    config = made_stream(tmp_path / "data")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/tasks").write_text("in the way")
    assert same(tasks_of(config, tokenizer), tasks_of(config, tokenizer))
    assert len(reads) == 2


# Which files are read again.


def test_only_a_state_that_tells_a_change_stands_for_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is faked: it stays as it is, whatever the file holds."""
    path, note, now = tmp_path / "file", tmp_path / "note.json", 10**9

    def hashed(changed_at: float, content: str) -> str:
        state = State(1, 2, 3, int(5e9), int(changed_at * 1e9))
        monkeypatch.setattr(contents, "_state", lambda _: state)
        monkeypatch.setattr(contents.time, "time_ns", lambda: now * 10**9)
        path.write_text(content)
        found = Contents(note)
        digest = found.sha256(path)
        assert found.unchanged()
        path.write_text(f"{content}?")
        assert found.unchanged() == (changed_at < now - contents.SETTLED_S)
        found.save()
        return digest

    recent, old = now - contents.SETTLED_S / 2, now - contents.SETTLED_S * 2
    assert hashed(recent, "a") != hashed(recent, "b")
    assert hashed(now + 5.0, "a") != hashed(now + 5.0, "b")  # a clock that is ahead
    assert hashed(old, "a") == hashed(old, "b")  # not read again
    assert hashed(old - 1, "c") != hashed(old - 2, "d")
    note.unlink()
    assert hashed(old, "a") != hashed(recent, "c")


def test_the_time_of_a_change_cannot_be_put_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a")
    with path.open("rb") as file:
        before = contents._state(file.fileno())
    while path.stat().st_ctime_ns == before.changed_ns:  # the clock of the file system is coarse
        edited(random.Random(0), path)
    with path.open("rb") as file:
        after = contents._state(file.fileno())
    assert after.modified_ns == before.modified_ns
    assert after.size == before.size
    assert after != before
