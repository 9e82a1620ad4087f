"""Reading people's files of other formats, packed, in folders, and what is no table at all."""

import bz2
import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config.source import DialectSpec
from stream.data.inspecting.inspection import Wanted, inspect_file
from stream.data.sources import unpacking
from stream.data.sources.class_folders import read_class_folders
from stream.data.sources.files import read_files, read_table
from stream.data.table import Ragged, SourceTable
from stream.errors import UserError
from tests.data.small_files import AS_FOUND, PLAIN, PLAIN_ROWS, read, rows, zipped

# Files that are no tables


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "a.csv", "empty, it has 0 bytes"),
        (b"\n\r\n\n", "a.csv", "empty, it has no rows"),
        (b"\xef\xbb\xbf", "a.csv", "empty, it has no rows"),
        (b"", "a.parquet", "empty, it has 0 bytes"),
        (b"\n", "a.jsonl", "empty, it has no rows"),
        (b"[]", "a.json", "empty, it has no rows"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\n", "a.csv", "git-lfs"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\n", "a.parquet", "git-lfs"),
        (b"\n <!DOCTYPE html>\n<html><body>404</body></html>", "a.csv", "a web page"),
        (b"\xef\xbb\xbf<HTML><body>404</body></html>", "a.jsonl", "a web page"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a.csv", "this is an image"),
        (bytes(range(256)) * 9, "a.txt", "binary, not text"),
        (zipped({"a": "b"}), "a.csv", r"this is a zip archive \(or a workbook\), .*name it \.zip"),
        (gzip.compress(b"a,b", mtime=0), "a.csv", "this is gzip, not text"),
        (bz2.compress(b"a,b"), "a.csv", "this is bzip2, not text; name it .bz2"),
        (b"PAR1xxxx", "a.csv", "this is Parquet, not text"),
        (b"not parquet", "a.parquet", "cannot be read as Parquet"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-9], "a.csv.gz", "cannot be unpacked"),
        (PLAIN.encode(), "a.csv.gz", "cannot be unpacked"),
        (PLAIN.encode(), "a.zip", "cannot be unpacked"),
    ],
)
def test_what_is_no_table(tmp_path: Path, content: bytes, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path, content, name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    source = read(tmp_path, "text,label\n")
    assert rows(source) == []
    assert source.table.column_names == ["text", "label"]


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_table(tmp_path / "no.csv", AS_FOUND)
    with pytest.raises(UserError, match="is not a file"):
        read_table(tmp_path, AS_FOUND)


# JSON and Parquet


def test_json_keeps_types(tmp_path: Path) -> None:
    items = [
        {"text": "2020-01-01", "label": 1, "mixed": 1, "score": 4, "flag": True, "big": 2**70},
        {"text": "N/A", "label": 0, "mixed": "1", "score": 4.5, "flag": None, "big": 1},
        {"text": "a\nb ☃", "label": 1, "mixed": True, "score": None, "list": ["a", 1]},
        {"text": "", "label": None, "mixed": None, "score": 1e3, "flag": False},
    ]
    lines = "\n\n".join(json.dumps(item) for item in items)
    array = json.dumps(items, indent=1, ensure_ascii=False)
    for content, name in ((lines, "a.jsonl"), (lines, "a.json"), (array, "a.json")):
        source = read(tmp_path, content, name)
        columns = source.table.to_pydict()
        assert columns["text"] == [item["text"] for item in items]
        assert columns["label"] == [1, 0, 1, None]
        assert columns["mixed"] == ["1", '"1"', "true", None]
        assert columns["score"] == [4.0, 4.5, None, 1000.0]
        assert columns["flag"] == [True, None, None, False]
        assert columns["big"] == [str(2**70), "1", None, None]
        assert columns["list"] == [None, None, '["a", 1]', None]
        types = dict(zip(source.table.column_names, source.table.schema.types, strict=True))
        assert types["label"] == pa.int64()
        assert types["flag"] == pa.bool_()
        assert source.provenance["json_text"] == "mixed, big, list"
        assert source.lines.tolist() == ([1, 2, 3, 4] if content == array else [1, 3, 5, 7])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_json_of_other_encodings(tmp_path: Path, encoding: str) -> None:
    content = '{"text": "“naïve” café", "label": 1}\r\n'.encode(encoding)
    source = read(tmp_path, content, "a.jsonl")
    assert rows(source) == [("“naïve” café", 1)]
    assert source.encoding.name == encoding.removesuffix("-sig")
    assert source.encoding.is_guess == (encoding == "cp1252")
    assert source.dialect.endswith(", JSON Lines")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ('{"text": "a"}\n{"text": \n', "a.jsonl", "line 2: not valid JSON"),
        ('{"text": "a"}\n\n["b", 1]\n', "a.jsonl", r"line 3: not an object: \['b', 1\]"),
        ('{"text": "a", "text": "b"}', "a.jsonl", "line 1: .* a key stands twice"),
        ('{"text": "a\\ud800"}', "a.jsonl", "'text': a text holds half a surrogate pair"),
        ('[{"text": "a"}, 3]', "a.json", "line 2: not an object: 3"),
        ('[{"text": "a"}', "a.json", "not valid JSON"),
        (
            '{"text": ["a", "b"], "label": ["c"]}',
            "a.json",
            r"lists of different .*text: 2, label: 1",
        ),
        (
            '{"a": [{"text": "a"}], "b": [{"text": "b"}]}',
            "a.json",
            r"several lists of rows \(a, b\)",
        ),
        ('[{"a.b": 1, "a": {"b": 2}}]', "a.json", "two fields of one row are both called 'a.b'"),
        ("[" * 100_000, "a.json", "not valid JSON"),
    ],
)
def test_json_faults_are_named(tmp_path: Path, content: str, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, content, name)


def test_parquet_may_have_two_columns_of_one_name(tmp_path: Path) -> None:
    columns = [["a lamp", "a door"], [["x"], ["y"]], [0, 1]]
    pq.write_table(pa.table(columns, names=["text", "text", "label"]), tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet", AS_FOUND).table
    assert table.to_pydict() == {"text": columns[0], "text_2": ["x", "y"], "label": columns[2]}


def test_parquet_keeps_types(tmp_path: Path) -> None:
    table = pa.table({"text": ["NaN", None], "label": pa.array([1, 0], pa.int8()), "": [1.5, 2]})
    folder = tmp_path / "label=7"  # not a partition
    folder.mkdir()
    pq.write_table(table, folder / "a.parquet")
    source = read_table(folder / "a.parquet", AS_FOUND)
    assert source.table.equals(table.rename_columns(["text", "label", "column_3"]))
    assert source.lines.tolist() == [1, 2]
    assert source.dialect == "parquet"


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        ("a.jsonl", {"delimiter": ","}),
        ("a.json", {"header": False}),
        ("a.parquet", {"encoding": "utf-8"}),
    ],
)
def test_settings_without_effect_are_refused(tmp_path: Path, name: str, fixed: dict) -> None:
    with pytest.raises(UserError, match=f"has no {next(iter(fixed))}, yet .* is set"):
        read(tmp_path, b"x", name, **fixed)


# Archives


def test_gzip_and_zip(tmp_path: Path) -> None:
    assert rows(read(tmp_path, gzip.compress(PLAIN.encode()), "a.csv.gz")) == PLAIN_ROWS
    junk = {"__MACOSX/._a.csv": b"\0", "readme": "words", ".hidden.csv": "x", "d/a.csv": PLAIN}
    source = read(tmp_path, zipped(junk), "a.zip")
    assert rows(source) == PLAIN_ROWS
    assert source.where == f"{tmp_path}/a.zip/d/a.csv"
    line = b'{"text": "a", "label": 1}'
    assert rows(read(tmp_path, gzip.compress(line, mtime=0), "a.jsonl.gz")) == [("a", 1)]
    assert rows(read(tmp_path, zipped({"only": PLAIN}), "b.zip")) == PLAIN_ROWS


def test_zip_with_several_members(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"train.csv": PLAIN, "in/test.csv": "text,label\nx,bad\n", "info": ""}))
    with pytest.raises(UserError, match=r"name one member .* it holds train.csv, in/test.csv, inf"):
        read_table(path, AS_FOUND)
    with pytest.raises(UserError, match=r"there is no 'dev.csv'; it holds train.csv"):
        read_table(path, AS_FOUND, member="dev.csv")
    assert rows(read_table(path, AS_FOUND, member="in/test.csv")) == [("x", "bad")]
    assert rows(read_files(tmp_path, "a.zip/train.csv", AS_FOUND)) == PLAIN_ROWS
    assert rows(read_files(path, "in/test.csv", AS_FOUND)) == [("x", "bad")]
    (tmp_path / "b.csv").write_text(PLAIN)
    with pytest.raises(UserError, match=r"no \.zip archive"):
        read_table(tmp_path / "b.csv", AS_FOUND, member="a")


@pytest.mark.parametrize("name", ["../a.csv", "/etc/a.csv", "x/../../a.csv", "C:/a.csv"])
def test_unsafe_members_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="refused, it has a member with an unsafe path"):
        read(tmp_path, zipped({"fine.csv": PLAIN, name: PLAIN}), "a.zip")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.zip"])
def test_bombs_are_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MAX_UNPACKED_BYTES", 3 << 20)
    zeros = b"a,b\n" * (1 << 20)
    packed = gzip.compress(zeros, mtime=0) if name.endswith("gz") else zipped({"a.csv": zeros})
    assert len(packed) < 50_000
    with pytest.raises(UserError, match="unpacks to more than 3,145,728 bytes, refused"):
        read(tmp_path, packed, name)


# Folders and patterns


def folder_of_classes(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def test_folder_of_classes(tmp_path: Path) -> None:
    root = folder_of_classes(
        tmp_path / "news",
        {
            "sci.space/2": b"From: a\r\n\r\nmoon\r\n",
            "sci.space/10": "naïve ☃".encode(),
            "alt.atheism/1": "Un été à Paris… où êtes-vous ?".encode("cp1252"),
            "alt.atheism/3": b"",
            "alt.atheism/.DS_Store": b"\0\0",
            "README": b"about",
        },
    )
    source = read_class_folders(root, AS_FOUND)
    assert source.table.to_pydict() == {
        "text": ["Un été à Paris… où êtes-vous ?", "", "naïve ☃", "From: a\r\n\r\nmoon\r\n"],
        "label": ["alt.atheism", "alt.atheism", "sci.space", "sci.space"],
    }
    assert source.lines.tolist() == [1, 2, 3, 4]
    assert source.provenance == {"not_rows": "1"}
    assert source.dialect.startswith("cp1252 (a guess: 'été'; ")
    assert source.dialect.endswith(", utf-8, a folder per class")
    assert read_files(tmp_path, "news", AS_FOUND).table.equals(source.table)
    assert rows(read_files(tmp_path, "news", DialectSpec(encoding="latin-1")))[3][1] == "sci.space"
    with pytest.raises(UserError, match="a folder per class has no header"):
        read_files(tmp_path, "news", DialectSpec(header=True))


def test_folder_faults_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no sub-folders"):
        read_class_folders(tmp_path, AS_FOUND)
    (tmp_path / "pos").mkdir()
    with pytest.raises(UserError, match="hold no files"):
        read_class_folders(tmp_path, AS_FOUND)
    folder_of_classes(tmp_path, {"pos/1": b"bad \x81 byte \xe9"})
    with pytest.raises(UserError, match=r"pos/1: line 1: byte 0x81 cannot be read as cp1252"):
        read_class_folders(tmp_path, DialectSpec(encoding="cp1252"))
    folder_of_classes(tmp_path, {"pos/deep/2": b"x"})
    with pytest.raises(UserError, match="pos/deep: a folder inside a class folder"):
        read_class_folders(tmp_path, AS_FOUND)
    with pytest.raises(UserError, match="no such folder"):
        read_class_folders(tmp_path / "no", AS_FOUND)


def test_patterns(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "train-2.csv").write_text("text,label\nc,bad\nd\n")
    (tmp_path / "d" / "train-1.csv").write_bytes("text;label\n\nä;good\n".encode("utf-16"))
    (tmp_path / "d" / ".train-3.csv").write_text("hidden")
    (tmp_path / "d" / "odd[1].csv").write_text(PLAIN)
    source = read_files(tmp_path, "d/train-*.csv", AS_FOUND)
    assert source.table.to_pydict() == {"text": ["ä", "c"], "label": ["good", "bad"]}
    assert source.lines.tolist() == [3, 2]  # each in its own file
    assert source.ragged == (Ragged(3, 2, 1),)
    assert source.dialect == "utf-16, semicolon, quoted, header; utf-8, comma, quoted, header"
    assert source.provenance["files"] == "train-1.csv (1 rows), train-2.csv (1 rows)"
    assert source.where == f"{tmp_path / 'd/train-*.csv'} (2 files)"
    assert rows(read_files(tmp_path, "**/train-1.csv", AS_FOUND)) == [("ä", "good")]
    assert rows(read_files(tmp_path, "d/odd[1].csv", AS_FOUND)) == PLAIN_ROWS
    (tmp_path / "d" / "train-4.csv").write_text("texts,label\nc,bad\n")
    with pytest.raises(UserError, match=r"train-4.csv: columns \['texts', 'label'\] are not those"):
        read_files(tmp_path, "d/train-*.csv", AS_FOUND)


def test_patterns_of_other_types(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"text": "a", "label": null}')
    (tmp_path / "2.jsonl").write_text('{"text": "b", "label": 1}')
    assert rows_of(read_files(tmp_path, "*.jsonl", AS_FOUND)) == [("a", None), ("b", 1)]
    (tmp_path / "3.jsonl").write_text('{"text": "b", "label": "1"}')
    with pytest.raises(UserError, match="columns differ in type"):
        read_files(tmp_path, "*.jsonl", AS_FOUND)


def rows_of(source: SourceTable) -> list[tuple]:
    return list(zip(*source.table.to_pydict().values(), strict=True))


def test_nothing_matches(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing matches 'a/\*.csv' in .*; it holds nothing"):
        read_files(tmp_path, "a/*.csv", AS_FOUND)
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=r"only folders match '\*' in .*; it holds x, y"):
        read_files(tmp_path, "*", AS_FOUND)
    for pattern in ("../a.csv", "/etc/passwd", "a/../../b", ""):
        with pytest.raises(UserError, match="is not a path or pattern below"):
            read_files(tmp_path, pattern, AS_FOUND)
    with pytest.raises(UserError, match="no is not a folder"):
        read_files(tmp_path / "no", "a", AS_FOUND)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(PLAIN)
    path.chmod(0)
    with pytest.raises(UserError, match="cannot be unpacked or read"):
        read_table(path, AS_FOUND)


def test_a_pipe_is_no_file_and_nothing_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe is a pipe or a device"):
        inspect_file(tmp_path / "pipe", "mine", Wanted())
