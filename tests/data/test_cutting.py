"""A set that is cut into parts: no row is lost, none is there twice, and it is read once."""

import json
import logging
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.config.cut import CutSpec
from stream.config.data import FilesData, GeneratedData
from stream.config.parts import parts_of, whole_of
from stream.config.source import SPLITS, FilesSource
from stream.config.task import TaskSpec
from stream.data import loading
from stream.data.loading import load_task, load_tasks
from stream.data.prepare.cutting import part_of
from stream.data.prepare.leakage import handle_leaks
from stream.data.table import Account
from stream.data.task import LoadedTask, Rows
from stream.errors import UserError
from tests.builders import made_spec

LINES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=40)


def silent(name: str, number: int) -> None:
    """Tell nobody."""


def loaded(lines: list[tuple[int, int]]) -> LoadedTask:
    """A set with one split of rows (label, number of the text), and two dropped lines."""
    texts = tuple((f"text {text}",) for _, text in lines)
    labels = np.array([label for label, _ in lines], np.int64)
    account = Account("a.csv", read=len(lines) + 2, kept=len(lines))
    account.drop("no_text", [1, 2])
    return LoadedTask(
        {"train": Rows(texts, labels)},
        {"train": np.arange(3, len(lines) + 3)},
        {"train": account},
    )


@given(LINES, st.integers(2, 6), st.none() | st.integers(0, 2))
def test_parts_have_each_row_once(lines: list[tuple[int, int]], size: int, seed: int) -> None:
    spec, whole = made_spec(6), loaded(lines)
    if size == 5:
        size = 4  # the sixth class cannot be a task
    parts = parts_of("set", spec, CutSpec(classes=size, seed=seed))
    found: Counter = Counter()
    for part in parts.values():
        own = part_of(whole, part)
        rows, account = own.rows["train"], own.accounts["train"]
        names = [(part.labels or [])[label] for label in rows.labels]
        places = own.lines["train"].tolist()
        found.update(zip(places, rows.texts, names, strict=True))
        assert places == sorted(places)
        assert account.read == len(lines) + 2
        assert account.read == account.kept + sum(account.dropped.values())
        assert account.dropped["no_text"] == 2
        assert account.dropped.get("other_class", 0) == len(lines) - len(rows)
        assert np.array_equal(rows.keys, Rows(rows.texts, rows.labels).keys)
        # Repeats are counted within the part.
        seen: dict[str, str] = {}
        firsts = [
            (seen.setdefault(text, name), name)
            for (text,), name in zip(rows.texts, names, strict=True)
        ]
        num_texts = len(set(rows.texts))
        same = sum(first == name for first, name in firsts) - num_texts
        assert (account.repeated, account.repeated + account.contradicting) == (
            same,
            len(rows) - num_texts,
        )
    expected = Counter(
        (n, (f"text {text}",), f"label {label}") for n, (label, text) in enumerate(lines, 3)
    )
    assert found == expected
    assert whole.accounts["train"].dropped == {"no_text": 2}  # the set is as it was


def parts_in_files(folder: Path, *, order: str = "abcd", **columns: object) -> dict[str, TaskSpec]:
    """Two parts of a set in one file: classes a and b, c and d; a text of each is in the other."""
    rows = [f"{order[i % 4]} text number {i},{'abcd'[i % 4]}" for i in range(120)]
    (folder / "set.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    spec = replace(
        made_spec(4),
        labels=list("abcd"),
        files=FilesSource(folder=str(folder), text=["text"], splits={"all": "set.csv"}, **columns),
    )
    return parts_of("set", spec, CutSpec(parts={"ab": ["b", "a"], "cd": [2, 3]}))


def test_a_set_is_read_once_and_divided_before_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def reading(folder: Path, file: str, dialect: object):
        read.append(file)
        return before(folder, file, dialect)

    before = loading.read_files
    monkeypatch.setattr(loading, "read_files", reading)
    parts = parts_in_files(tmp_path)
    found = load_tasks(FilesData(), parts, tmp_path, silent)
    assert read == ["set.csv"]
    whole = load_task(FilesData(), "set", whole_of(parts["set_ab"]), tmp_path)
    for split in SPLITS:
        texts = [text for task in found.values() for text in task.rows[split].texts]
        assert sorted(texts) == sorted(whole.rows[split].texts)
        assert found["set_ab"].rows[split].labels.tolist() == [
            "ba".index(text[0]) for (text,) in found["set_ab"].rows[split].texts
        ]


def test_numbers_in_a_file_are_those_of_the_whole_set(tmp_path: Path) -> None:
    rows = [f"{i} words,{i % 4}" for i in range(100)]
    parts = parts_in_files(tmp_path)
    (tmp_path / "set.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    numbers = {str(n): "abcd"[n] for n in range(4)}
    spec = replace(parts["set_cd"], files=replace(parts["set_cd"].files, values=numbers))
    found = load_tasks(FilesData(), {"set_cd": spec}, tmp_path, silent)["set_cd"]
    for (text,), label in zip(found.rows["train"].texts, found.rows["train"].labels, strict=True):
        assert int(text.split()[0]) % 4 == label + 2


def test_a_label_of_no_class_is_still_an_error(tmp_path: Path) -> None:
    parts = parts_in_files(tmp_path)
    with (tmp_path / "set.csv").open("a") as file:
        file.write("one more,e\n")
    with pytest.raises(UserError, match=r"task 'set': .* line 122 has label 'e'"):
        load_tasks(FilesData(), parts, tmp_path, silent)


def test_a_part_without_rows_is_an_error(tmp_path: Path) -> None:
    parts = parts_in_files(tmp_path)
    (tmp_path / "set.csv").write_text(
        "text,label\n" + "\n".join(f"{i} x,{'ab'[i % 2]}" for i in range(99))
    )
    with pytest.raises(
        UserError, match=r"task 'set_cd': split 'train' is empty.*'other_class': \d+"
    ):
        load_tasks(FilesData(), parts, tmp_path, silent)


def test_leaks_between_parts_are_found(tmp_path: Path) -> None:
    """Texts that stand twice, with a class of either part, in splits that the files give."""
    for split, first in (("train", 0), ("validation", 40), ("test", 20)):
        rows = [f"text {first + i},{'abcd'[(i + (split == 'test')) % 4]}" for i in range(30)]
        (tmp_path / f"{split}.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    of_files = FilesSource(
        folder=str(tmp_path), text=["text"], splits={split: f"{split}.csv" for split in SPLITS}
    )
    spec = replace(made_spec(4), labels=list("abcd"), files=of_files)
    parts = parts_of("set", spec, CutSpec(classes=2))
    found = load_tasks(FilesData(), parts, tmp_path, silent)
    leaks = {(k.train_task, k.held_out_task, k.split): k.count for k in handle_leaks(found, "drop")}
    # Ten texts (20 to 29) are in train, abcdabcdab, and in test with the next class, bcdabcdabc.
    assert leaks == {
        ("set_1", "set_1", "test"): 3,
        ("set_1", "set_2", "test"): 3,
        ("set_2", "set_1", "test"): 2,
        ("set_2", "set_2", "test"): 2,
    }
    for task in found.values():
        account = task.accounts["train"]
        assert (
            account.read
            == 30
            == account.kept + account.dropped["other_class"] + account.dropped["leak"]
        )


def test_generated_sets_are_cut_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    parts = parts_of("set", made_spec(6), CutSpec(classes=3))
    found = load_tasks(GeneratedData(), parts, tmp_path, silent)
    whole = load_task(GeneratedData(), "set", made_spec(6), tmp_path)
    texts = [text for task in found.values() for text in task.rows["test"].texts]
    assert sorted(texts) == sorted(whole.rows["test"].texts)
    assert json.loads(json.dumps(found["set_2"].accounts["test"].read)) == len(texts)
