"""One table in several files: Spark's folders, partitions, headers in each part or in none."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config.source import DialectSpec
from stream.data.sources.files import read_files
from stream.errors import UserError
from tests.data.small_files import AS_FOUND


def folder_of(root: Path, files: dict[str, str | list[str]]) -> Path:
    """Write text files, and Parquet files with a column of texts."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            pq.write_table(pa.table({"text": content}), path)
        else:
            path.write_text(content, encoding="utf-8")
    return root


SPARK = {"_SUCCESS": "", "._SUCCESS.crc": "x", ".part-0.csv.crc": "crc"}
ONE, TWO = "fine film,good\nwell film,bad\n", "dull film,bad\n"
ALL = [("fine film", "good"), ("well film", "bad"), ("dull film", "bad")]


@pytest.mark.parametrize(
    ("parts", "names", "expected"),
    [
        ([f"text,label\n{ONE}", f"text,label\n{TWO}", ""], ["text", "label"], ALL),
        ([ONE, TWO, ""], ["column_1", "column_2"], ALL),
        (
            ['text,label\n"a \\"b, c\\"",good\n', 'text,label\n"C:\\\\d, \\n",bad\n"",bad\n'],
            ["text", "label"],
            [('a "b, c"', "good"), ("C:\\d, \\n", "bad"), ("", "bad")],
        ),
    ],
)
def test_parts_of_spark(tmp_path: Path, parts: list, names: list, expected: list) -> None:
    """The second file would be read in another way by itself."""
    files = {f"part-{number}.csv": content for number, content in enumerate(parts)}
    folder_of(tmp_path / "t.csv", {**SPARK, **files})
    for pattern in ("t.csv", "t.csv/part-*", "t.csv/*.csv"):
        source = read_files(tmp_path, pattern, AS_FOUND)
        assert source.table.column_names == names
        assert list(zip(*source.table.to_pydict().values(), strict=True)) == expected
        assert source.where == f"{tmp_path / pattern} ({len(parts)} files)"
        assert source.provenance["files"].count("part-") == len(parts)


def test_headers_that_differ_are_refused(tmp_path: Path) -> None:
    folder_of(tmp_path / "t", {"part-0": f"text,label\n{ONE}", "part-1": TWO})
    with pytest.raises(UserError, match=r"columns \['dull film', 'bad'\] are not those .*header"):
        read_files(tmp_path, "t", AS_FOUND)
    source = read_files(tmp_path, "t", DialectSpec(header=False))
    assert source.table.num_rows == 4


def test_partitions_are_columns(tmp_path: Path) -> None:
    files = {
        "label=good/lang=en/part-0.parquet": ["a", "b"],
        "label=so%20so/lang=de/part-0.parquet": ["c"],
        "label=__HIVE_DEFAULT_PARTITION__/lang=de/part-0.parquet": ["d"],
    }
    folder_of(tmp_path / "t", {"_SUCCESS": "", "notes.md": "x", **files})
    expected = {
        "text": ["d", "a", "b", "c"],
        "label": [None, "good", "good", "so so"],
        "lang": ["de", "en", "en", "de"],
    }
    source = read_files(tmp_path, "t", AS_FOUND)
    assert source.table.to_pydict() == expected
    assert source.provenance["not_rows"] == "1"
    assert source.dialect.endswith(
        "'label' from the folders' names, 'lang' from the folders' names"
    )
    assert read_files(tmp_path, "t/**/*.parquet", AS_FOUND).table.to_pydict() == expected
    single = read_files(tmp_path, "t/label=good/lang=en/part-0.parquet", AS_FOUND)
    assert single.table["label"].to_pylist() == ["good", "good"]
    folder_of(tmp_path / "u", {"text=x/a.parquet": ["own"]})  # its own column stays
    assert read_files(tmp_path, "u", AS_FOUND).table.to_pydict() == {"text": ["own"]}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.csv": TWO, "b.json": "[]"}, r"t: has files of several formats \(\.csv, \.json\)"),
        ({"part-0.csv": "", "part-1.csv": ""}, "all of its 2 parts are empty"),
        ({"a.csv": TWO, "b.csv": ""}, r"b\.csv: empty, it has 0 bytes"),
        ({"l=a/x.csv": TWO, "x.csv": TWO}, "has files of data beside folders of them"),
        ({"README.md": "x"}, "has no sub-folders, one is needed for each class"),
    ],
)
def test_folders_that_are_no_table(tmp_path: Path, files: dict, message: str) -> None:
    folder_of(tmp_path / "t", files)
    with pytest.raises(UserError, match=message) as caught:
        read_files(tmp_path, "t", AS_FOUND)
    assert "\n" not in str(caught.value)


def test_folders_of_texts_stay_classes(tmp_path: Path) -> None:
    folder_of(tmp_path / "t", {"l=good/1.txt": "fine", "l=bad/1.txt": "dull"})
    source = read_files(tmp_path, "t", AS_FOUND)
    assert source.table.to_pydict() == {"text": ["dull", "fine"], "label": ["l=bad", "l=good"]}
