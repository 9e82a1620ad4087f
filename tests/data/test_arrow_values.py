"""Parquet and Arrow files: values are what their types stand for, names of classes decide."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.data.prepare.rows import account_rows
from stream.data.prepare.splits import prepare_splits
from stream.data.sources.files import read_files, read_table
from stream.data.table import SourceTable
from stream.errors import UserError
from tests.data.small_files import AS_FOUND
from tests.data.test_prepare import spec


def written(folder: Path, label: object, names: list[str] | None = None, **columns) -> SourceTable:
    """Write a Parquet file with a label column (Arrow, for categories), and read it."""
    values = label if isinstance(label, pa.Array) else pa.array(label)
    table = pa.table({"text": [f"t{i}" for i in range(len(values))], "label": values, **columns})
    if names is not None:
        features = {"label": {"names": names, "_type": "ClassLabel"}}
        stored = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": stored})
    if pa.types.is_dictionary(values.type):  # Parquet has no null among categories
        pyarrow.feather.write_feather(table, str(folder / "a.feather"))
        return read_table(folder / "a.feather", AS_FOUND)
    pq.write_table(table, folder / "a.parquet")
    return read_table(folder / "a.parquet", AS_FOUND)


def labels_of(source: SourceTable, task: TaskSpec | None = None, **meaning) -> list[str | None]:
    """Return the label of each row, or None where it is missing."""
    columns = FilesSource(text=["text"], **meaning)
    kept, lines, found = account_rows("film", task or spec(), columns, source)
    assert set(found.dropped) <= {"no_label", "excluded_label"}
    names = (task or spec()).labels or []
    by_line = dict(zip(lines.tolist(), kept.labels.tolist(), strict=True))
    return [names[by_line[n]] if n in by_line else None for n in range(1, found.read + 1)]


@pytest.mark.parametrize(
    ("numbers", "names", "meaning", "expected"),
    [
        ([0, 1, None, -1], ["good", "bad"], {}, ["good", "bad", None, None]),
        ([0, 1], ["neg", "pos"], {"values": {"neg": "bad", "pos": "good"}}, ["bad", "good"]),
        ([0, 1], ["neg", "pos"], {"values": {"0": "bad", "1": "good"}}, ["bad", "good"]),
        ([0, 1], ["good", "bad"], {"values": {"0": "good"}}, ["good", "bad"]),
        ([0, 1], ["1", "0"], {"values": {"0": "bad", "1": "good"}}, ["good", "bad"]),
        ([0, 1, 2], ["good", "bad", "?"], {"exclude": ["?"]}, ["good", "bad", None]),
        ([0, 1, 2], ["good", "bad", "?"], {"exclude": ["2"]}, ["good", "bad", None]),
    ],
)
def test_class_names_of_the_file_decide(
    tmp_path: Path, numbers: list, names: list, meaning: dict, expected: list
) -> None:
    source = written(tmp_path, numbers, names)
    assert labels_of(source, **meaning) == expected
    assert source.dialect == "parquet, class names of 'label' in the file"
    assert source.class_names == {"label": names}


@pytest.mark.parametrize(
    ("names", "meaning", "message"),
    [
        (["neg", "pos"], {}, r"label 'neg', which is not .*'bad', 'good'"),
        (
            ["good", "bad"],
            {"values": {"0": "bad"}},
            r"class 0 of 'label' 'good', but .*'0' is 'bad'",
        ),
        (["good"], {}, "class number 1, but its schema names only 1 classes: good"),
    ],
)
def test_contradictory_names_are_named(
    tmp_path: Path, names: list, meaning: dict, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        labels_of(written(tmp_path, [0, 1], names), **meaning)
    assert str(tmp_path / "a.parquet") in str(caught.value)


@pytest.mark.parametrize(
    "stored",
    [
        "{nonsense",
        '"text"',
        '{"info": null}',
        '{"info": {"features": {"label": {"_type": "ClassLabel"}}}}',
        '{"info": {"features": {"label": {"_type": "ClassLabel", "names": {"0": "bad"}}}}}',
    ],
)
def test_a_schema_that_says_nonsense_of_classes_is_one_line(tmp_path: Path, stored: str) -> None:
    table = pa.table({"text": ["a", "b"], "label": [0, 1]})
    pq.write_table(table.replace_schema_metadata({"huggingface": stored}), tmp_path / "a.parquet")
    with pytest.raises(
        UserError, match=r"a\.parquet: what its schema says of classes .* cannot be"
    ):
        read_table(tmp_path / "a.parquet", AS_FOUND)


def test_parts_with_names_and_with_numbers_only_must_agree(tmp_path: Path) -> None:
    named, numbered = (written(tmp_path, [0, 1], n) for n in (["good", "bad"], None))
    tables = {"train": named, "validation": numbered, "test": numbered}
    with pytest.raises(UserError, match=r"names its classes good, bad, .* only numbers them"):
        prepare_splits("film", spec(), FilesSource(text=["text"]), tables)
    task = spec(labels=["good", "bad"])
    loaded = prepare_splits("film", task, FilesSource(text=["text"]), tables)
    assert loaded.rows["train"].labels.tolist() == loaded.rows["test"].labels.tolist() == [0, 1]


def dictionary(values: list, kind: pa.DataType) -> pa.Array:
    """Return a categorical column with a null among its categories, and one among its codes."""
    categories = pa.array([*values, None], kind)
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), categories)


WORDS, GAPS = ["good", "bad", None], ["good", "bad", None, None]
NUMBERED = {"1": "good", "0": "bad"}


@pytest.mark.parametrize(
    ("label", "values", "expected"),
    [
        (dictionary(["good", "bad"], pa.string()), {}, GAPS),
        (dictionary(["good", "bad"], pa.large_string()), {}, GAPS),
        (dictionary(["good", "bad"], pa.string_view()), {}, GAPS),
        (dictionary([b"good", b"bad"], pa.binary()), {}, GAPS),
        (dictionary([1, 0], pa.int64()), {}, GAPS),
        (pa.array(WORDS, pa.string_view()), {}, WORDS),
        (pa.array(WORDS, pa.large_string()), {}, WORDS),
        (pa.array([b"good", b"bad", None], pa.large_binary()), {}, WORDS),
        (pa.array([1, 0, None], pa.uint8()), {}, WORDS),
        (pa.array([1.0, 0.0, None]), {}, WORDS),
        (pa.array([1.0, 0.0, float("nan")]), {}, WORDS),
        (pa.array([1.0, 0.0, None]), {"1.0": "good", "0": "bad"}, WORDS),
        (pa.array([True, False, None]), {"true": "good", "False": "bad"}, WORDS),
        (pa.array([Decimal(1), Decimal(0), None], pa.decimal128(5)), {}, WORDS),
        (pa.array([Decimal("1.00"), Decimal(0), None], pa.decimal128(5, 2)), NUMBERED, WORDS),
        (pa.array([1, 0, None], pa.date32()), {"1970-01-02": "good", "1970-01-01": "bad"}, WORDS),
        (pa.nulls(3), {}, [None] * 3),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_labels_are_the_values_that_types_stand_for(
    tmp_path: Path, label: pa.Array, values: dict, expected: list
) -> None:
    beside = {
        "nested": [[1]] * len(label),
        "none": pa.nulls(len(label)),
        "o": [{"a": 1}] * len(label),
    }
    assert labels_of(written(tmp_path, label, **beside), values=values) == expected


@pytest.mark.parametrize(
    ("label", "labels", "expected"),
    [
        ([1, 3, 2], ["1", "2", "3"], ["1", "3", "2"]),  # 3 is a name only, so the others are
        ([1.0, None, 2.0], ["1", "2"], ["1", None, "2"]),
        ([0, 1], ["0", "1"], ["0", "1"]),
        ([True, False], ["False", "True"], ["True", "False"]),
        ([1, 0], ["a", "1"], ["1", "a"]),
    ],
)
def test_numbers_that_are_names_of_labels(
    tmp_path: Path, label: list, labels: list, expected: list
) -> None:
    assert labels_of(written(tmp_path, label), spec(labels=labels)) == expected


def test_numbers_that_are_names_and_positions_are_refused(tmp_path: Path) -> None:
    source = written(tmp_path, [1, 2])
    with pytest.raises(UserError, match=r"label 1 is the name of one label and the position of an"):
        labels_of(source, spec(labels=["1", "2", "3"]))
    assert labels_of(source, spec(labels=["1", "2", "3"]), values={"1": "1", "2": "2"}) == [
        "1",
        "2",
    ]


def test_texts_are_read_from_every_kind_of_text(tmp_path: Path) -> None:
    texts = ["a", None, "NA", "None", "null", "nan", "é"]
    dictionaries = pa.array(texts).dictionary_encode()
    raw = pa.array([None if text is None else text.encode() for text in texts], pa.binary())
    for column in (dictionaries, raw, pa.array(texts, pa.string_view())):
        table = pa.table({"text": column, "label": ["good"] * len(texts)})
        pq.write_table(table, tmp_path / "a.parquet")
        pyarrow.feather.write_feather(table, str(tmp_path / "a.feather"))
        with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as writer:
            writer.write_table(table)
        for name in ("a.parquet", "a.feather", "a.arrow"):
            source = read_table(tmp_path / name, AS_FOUND)
            kept, _, found = account_rows("film", spec(), FilesSource(text=["text"]), source)
            assert [text for (text,) in kept.texts] == [text for text in texts if text]
            assert found.dropped == {"no_text": 1}


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": [b"\xff"], "label": ["good"]}), tmp_path / "a.parquet")
    source = read_table(tmp_path / "a.parquet", AS_FOUND)
    with pytest.raises(UserError, match=r"'text' holds bytes that are not UTF-8, not text"):
        account_rows("film", spec(), FilesSource(text=["text"]), source)
    (tmp_path / "b.csv").write_bytes(b"ARROW1\0\0")
    with pytest.raises(UserError, match="this is an Arrow file, not text"):
        read_files(tmp_path, "b.csv", AS_FOUND)
