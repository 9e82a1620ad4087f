"""Every row is kept or counted, labels are exact, splits do not leak."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.config.task import FilesSource, HubSource, TaskSpec
from stream.data.prepare.leakage import handle_leaks
from stream.data.prepare.rows import account_rows
from stream.data.prepare.splits import assign_splits, part_to_divide, prepare_splits
from stream.data.table import Account, Ragged, SourceTable
from stream.data.task import LoadedTask, Rows
from stream.data.text_key import text_key
from stream.errors import UserError


def spec(**changes) -> TaskSpec:
    values = {
        "title": "film",
        "kind": "single",
        "labels": ["bad", "good"],
        "metric": "accuracy",
        "source": "made",
    }
    return TaskSpec(**{**values, **changes})


def source(columns: dict, ragged: tuple[Ragged, ...] = ()) -> SourceTable:
    table = pa.table(columns)
    return SourceTable(table, "made.csv", np.arange(2, table.num_rows + 2), ragged)


def account(columns: dict, task: TaskSpec | None = None, **meaning):
    meaning = {"text": ["text"], **meaning}
    return account_rows("film", task or spec(), FilesSource(**meaning), source(columns))


def test_every_reason_is_counted_with_its_lines() -> None:
    rows, lines, found = account(
        {
            "text": ["a", " ", "c", None, "e", "f", "A", "a", "i"],
            "label": ["good", "bad", "", "bad", None, "not sure", "good", "bad", "bd"],
        },
        exclude=["not sure"],
        drop=["unknown_label", "duplicate"],
    )
    assert rows.texts == (("a",), ("a",))
    assert rows.labels.tolist() == [1, 0]
    assert lines.tolist() == [2, 9]
    assert (found.read, found.kept) == (9, 2)
    assert found.dropped == {
        "no_text": 2,
        "no_label": 2,
        "unknown_label": 1,
        "excluded_label": 1,
        "duplicate": 1,
    }
    assert found.lines["no_text"] == [3, 5]
    assert (found.repeated, found.contradicting) == (1, 1)


VALUES = st.sampled_from(["good", "bad", "", None, "other", "GOOD", " good"])


@given(st.lists(st.tuples(st.sampled_from(["x", "y", "", "X ", None]), VALUES), max_size=30))
def test_read_is_kept_plus_dropped(rows: list[tuple]) -> None:
    columns = {
        "text": pa.array([t for t, _ in rows], pa.string()),
        "label": pa.array([v for _, v in rows], pa.string()),
    }
    kept, _, found = account(columns, drop=["unknown_label", "duplicate"])
    assert found.read == len(rows) == found.kept + sum(found.dropped.values())
    assert len(kept) == found.kept
    expected = [t for t, v in rows if t and t.strip() and v in ("good", "bad")]
    assert found.kept + found.dropped.get("duplicate", 0) == len(expected)


@pytest.mark.parametrize(
    ("labels", "values", "expected"),
    [
        (["good", "bad"], {}, [1, 0]),
        ([1, 0], {}, [1, 0]),
        (["1", "0"], {"1": "good", "0": "bad"}, [1, 0]),
        ([1, 2], {"1": "good", "2": "bad"}, [1, 0]),
        ([True, False], {"True": "good", "False": "bad"}, [1, 0]),
        (["Y", "Yes"], {"Y": "good", "Yes": "good"}, [1, 1]),
    ],
)
def test_labels_are_found_by_name(labels: list, values: dict, expected: list) -> None:
    rows, _, _ = account({"text": ["a", "b"], "label": labels}, values=values)
    assert rows.labels.tolist() == expected


@pytest.mark.parametrize("label", ["Good", " good", "0", "NaN", 2, -1, True, 1.0, "N/A"])
def test_only_exact_names_are_known(label: object) -> None:
    with pytest.raises(UserError, match=r"made\.csv line 2 has label") as caught:
        account({"text": ["a"], "label": [label]})
    assert repr(label) in str(caught.value)
    assert "'bad', 'good'" in str(caught.value)


@pytest.mark.parametrize("label", ["N/A", "null", "None", "NaN"])
def test_words_that_look_like_nothing_are_words(label: str) -> None:
    task = spec(labels=["fine", label])
    rows, _, found = account({"text": [label, "x"], "label": [label, "fine"]}, task)
    assert rows.texts[0] == (label,)
    assert rows.labels.tolist() == [1, 0]
    assert found.kept == 2


def test_regression_labels_are_numbers_in_range() -> None:
    task = spec(labels=None, score_range=[0.0, 5.0], metric="spearman")
    rows, _, _ = account({"text": ["a", "b"], "label": ["2.5", "5"]}, task)
    assert rows.labels.tolist() == [2.5, 5.0]
    for bad in ("5.5", "high", "nan"):
        with pytest.raises(UserError, match="which is not one of the task's"):
            account({"text": ["a"], "label": [bad]}, task)


def test_ragged_rows_are_errors_unless_allowed() -> None:
    table = source({"text": ["a"], "label": ["good"]}, (Ragged(3, 2, 4),))
    with pytest.raises(UserError, match="line 3 has 4 fields instead of 2"):
        account_rows("film", spec(), FilesSource(text=["text"]), table)
    allowed = FilesSource(text=["text"], drop=["ragged"])
    _, _, found = account_rows("film", spec(), allowed, table)
    assert (found.read, found.kept, found.dropped) == (2, 1, {"ragged": 1})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"txt": ["a"], "label": ["good"]}, r"has no column 'text'; it has \['txt', 'label'\]"),
        ({"text": ["a"], "y": ["good"]}, "has no column 'label'"),
        ({"text": [3], "label": ["good"]}, "column 'text' holds int64, not text"),
    ],
)
def test_missing_columns_are_named(columns: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        account(columns)


def test_the_same_text_lands_in_the_same_split_of_every_task() -> None:
    texts = [f"text number {i}" for i in range(3000)]
    first = source({"text": texts, "label": ["good", "bad"] * 1500})
    other = source({"text": [t.upper() + " " for t in texts[::-1]], "label": ["good"] * 3000})
    columns = FilesSource(text=["text"])
    a, b = (prepare_splits("film", spec(), columns, {"all": table}) for table in (first, other))
    for split in ("train", "validation", "test"):
        assert set(a.rows[split].keys) == set(b.rows[split].keys)
    sizes = {split: len(rows) for split, rows in a.rows.items()}
    assert sum(sizes.values()) == 3000
    assert abs(sizes["train"] / 3000 - 0.8) < 0.03
    assert abs(sizes["test"] / 3000 - 0.1) < 0.03
    assert sum(account.read for account in a.accounts.values()) == 3000


def test_a_group_stays_together() -> None:
    groups = [f"story {i // 10}" for i in range(500)]
    table = source({"text": [f"t{i}" for i in range(500)], "label": ["good"] * 500, "g": groups})
    loaded = prepare_splits("film", spec(), FilesSource(text=["text"], group="g"), {"all": table})
    where = {s: {int(t[0][1:]) // 10 for t in rows.texts} for s, rows in loaded.rows.items()}
    assert not where["train"] & where["test"]
    assert not where["train"] & where["validation"]


def test_given_splits_are_kept_and_missing_ones_taken_from_train() -> None:
    positions = np.linspace(0, 0.999, 1000)
    assert set(assign_splits(["train", "test"], positions)) == {"train", "validation"}
    assert len(assign_splits(["train", "test"], positions)["validation"]) == pytest.approx(
        100, abs=1
    )
    assert part_to_divide("x", {"train": "", "validation": "", "test": ""}) is None
    assert part_to_divide("x", {"train": "", "test": ""}) == "train"
    assert part_to_divide("x", {"all": ""}) == "all"
    for wrong in ({"test": ""}, {"all": "", "train": ""}, {"dev": "", "train": ""}):
        with pytest.raises(UserError, match="splits must hold train"):
            part_to_divide("x", wrong)


def test_expected_rows_are_checked() -> None:
    table = {"train": source({"text": ["a"], "label": ["good"]})}
    with pytest.raises(UserError, match="rows names test, but the source has train"):
        prepare_splits("film", spec(), FilesSource(text=["text"], rows={"test": 2}), table)
    with pytest.raises(UserError, match="has 1 rows, expected 2"):
        prepare_splits("film", spec(), FilesSource(text=["text"], rows={"train": 2}), table)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (("A  text",), ("a text ",), True),
        (("one", "two"), ("Two", "ONE"), True),
        (("one two",), ("one", "two"), False),
        (("straße",), ("STRASSE",), True),
        (("a", ""), ("", "a"), True),
        (("a",), ("b",), False),
    ],
)
def test_identity_of_texts(left: tuple, right: tuple, *, same: bool) -> None:
    assert (text_key(left) == text_key(right)) == same


def loaded(**texts: list[str]) -> LoadedTask:
    rows = {s: Rows(tuple((t,) for t in v), np.zeros(len(v), np.int64)) for s, v in texts.items()}
    lines = {s: np.arange(1, len(r) + 1) for s, r in rows.items()}
    accounts = {s: Account("made", read=len(r), kept=len(r)) for s, r in rows.items()}
    return LoadedTask(rows, lines, accounts)


@pytest.fixture
def leaky() -> dict[str, LoadedTask]:
    return {
        "a": loaded(train=["one", "two", "three"], validation=["four"], test=["five"]),
        "b": loaded(train=["FIVE ", "six", "four"], validation=["seven"], test=["two"]),
    }


def test_leaks_are_dropped_from_train_and_accounted(leaky: dict[str, LoadedTask]) -> None:
    found = {
        (leak.train_task, leak.held_out_task, leak.split): leak.count
        for leak in handle_leaks(leaky, "drop")
    }
    assert found == {("a", "b", "test"): 1, ("b", "a", "test"): 1, ("b", "a", "validation"): 1}
    assert leaky["a"].rows["train"].texts == (("one",), ("three",))
    assert leaky["b"].rows["train"].texts == (("six",),)
    assert leaky["b"].accounts["train"].dropped == {"leak": 2}
    assert leaky["b"].accounts["train"].lines == {"leak": [1, 3]}


def test_leaks_can_be_kept_or_refused(leaky: dict[str, LoadedTask]) -> None:
    assert len(handle_leaks(leaky, "warn")) == 3
    assert len(leaky["a"].rows["train"]) == 3
    with pytest.raises(UserError, match="1 in a train from b test"):
        handle_leaks(leaky, "error")


def test_dropping_does_not_depend_on_the_order_of_tasks(leaky: dict[str, LoadedTask]) -> None:
    handle_leaks(dict(reversed(leaky.items())), "drop")
    assert leaky["a"].rows["train"].texts == (("one",), ("three",))


def test_nothing_left_is_an_error() -> None:
    tasks = {"a": loaded(train=["x"], validation=["y"], test=["X"])}
    with pytest.raises(UserError, match="every training row is a leak"):
        handle_leaks(tasks, "drop")


def test_label_patterns_stand_for_long_names() -> None:
    columns = FilesSource(text=["text"], label="q1_*", values={"good*": "good", "bad": "bad"})
    table = source({"text": ["a", "b"], "q1_is_it_good": ["good: I like it", "bad"]})
    rows, _, _ = account_rows("film", spec(), columns, table)
    assert rows.labels.tolist() == [1, 0]
    two = source({"text": ["a"], "q1_a": ["good"], "q1_b": ["bad"]})
    with pytest.raises(UserError, match=r"has no column 'q1_\*'"):
        account_rows("film", spec(), columns, two)


def test_numbers_of_the_hub_are_no_indices() -> None:
    """Copies number their labels differently: there only a mapping may say what 1 means."""
    table = source({"text": ["a"], "label": [1]})
    with pytest.raises(UserError, match="has label 1"):
        account_rows("film", spec(), HubSource(text=["text"]), table)
    mapped = HubSource(text=["text"], values={"1": "bad"})
    assert account_rows("film", spec(), mapped, table)[0].labels.tolist() == [0]


def test_text_columns_of_mixed_json_types_are_refused() -> None:
    table = pa.table({"text": ["1", "x"], "label": ["good", "bad"]})
    mixed = SourceTable(table, "m.json", np.array([1, 2]), provenance={"json_text": "text, other"})
    with pytest.raises(UserError, match="several types, not text"):
        account_rows("film", spec(), FilesSource(text=["text"]), mixed)
