"""Reading people's files: small files, each with one fault, and what must come of it."""

import bz2
import gzip
import io
import json
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.errors import UserError
from stream.task_spec import DialectSpec
from stream.tasks import delimited, reading
from stream.tasks.dialect import has_header, unique_names
from stream.tasks.reading import read_files, read_folder_of_classes, read_table
from stream.tasks.table import Ragged, SourceTable

AS_FOUND = DialectSpec()
PLAIN = "text,label\nfine film,good\ndull film,bad\n"
PLAIN_ROWS = [("fine film", "good"), ("dull film", "bad")]


def read(tmp_path: Path, content: bytes | str, name: str = "a.csv", **fixed) -> SourceTable:
    """Write a file and read it."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, DialectSpec(**fixed))


def rows(source: SourceTable) -> list[tuple]:
    """Return the rows; also checks what holds for every source."""
    assert len(source.lines) == source.table.num_rows
    assert source.lines.dtype == "int64"
    assert (source.lines[1:] > source.lines[:-1]).all()
    return list(zip(*source.table.to_pydict().values(), strict=True))


def zipped(members: dict[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


# Encodings

WESTERN = "text,label\nIt is a “great” café…,good\n20 € für nichts,bad\n"
WESTERN_ROWS = [("It is a “great” café…", "good"), ("20 € für nichts", "bad")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings_are_detected(tmp_path: Path, encoding: str) -> None:
    source = read(tmp_path, WESTERN.encode(encoding))
    assert rows(source) == WESTERN_ROWS
    assert source.table.column_names == ["text", "label"]
    assert source.dialect == f"{encoding.removesuffix('-sig')}, comma, quoted, header"


@pytest.mark.parametrize("order", ["le", "be"])
def test_utf16_of_both_byte_orders(tmp_path: Path, order: str) -> None:
    mark = b"\xff\xfe" if order == "le" else b"\xfe\xff"
    text = WESTERN.replace("\n", "\r\n").encode(f"utf-16-{order}")
    fixed = f"utf-16-{order}"
    for content, encoding in ((mark + text, None), (mark + text, fixed), (text, fixed)):
        source = read(tmp_path, content, encoding=encoding)
        assert rows(source) == WESTERN_ROWS
        assert source.table.column_names == ["text", "label"]
    with pytest.raises(UserError, match=r"NUL bytes.*set encoding to utf-16-le"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("encoding", "texts"),
    [
        ("latin-1", ["naïve résumé", "señor"]),
        ("cp1252", ["L'été à Paris était très agréable", "où êtes-vous allés ? Ça va bien"]),
        ("cp1252", ["Über die Straße gehen schöne Mädchen", "größer als früher"]),
        ("cp1251", ["Это очень хороший фильм, мне понравилось", "Спасибо большое за помощь"]),
        ("cp1250", ["Zażółć gęślą jaźń. Świetny film", "bardzo dobra książka, którą kupiłem"]),
        ("gb18030", ["这部电影很好看。我非常喜欢", "谢谢大家的帮助。今天天气不错"]),
        ("cp932", ["この映画はとても面白かったです", "ありがとうございました"]),
    ],
)
def test_legacy_encodings_are_guessed(tmp_path: Path, encoding: str, texts: list[str]) -> None:
    lines = "".join(f"{number % 2}\t{text}\n" for number, text in enumerate(texts * 5))
    source = read(tmp_path, lines.encode(encoding), "a.tsv")
    assert [text for _, text in rows(source)] == texts * 5


def test_one_accent_late_in_english_text(tmp_path: Path) -> None:
    """Beyond every sample: the whole file is looked at."""
    content = b"text,label\n" + b"plain words,good\n" * 100_000 + b"caf\xe9,bad\n"
    source = read(tmp_path, content)
    assert source.table["text"][-1].as_py() == "café"
    assert source.dialect.startswith("cp1252")
    assert source.lines[-1] == 100_002


def test_bytes_of_no_encoding(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.csv: line 3: byte 0x81 cannot be read as cp1252"):
        read(tmp_path, b"text,label\nfine,good\nna\x81ve caf\xe9,bad\n")
    broken = "text,label\nnaïve café ☃,good\n".encode() + b"caf\xe9,bad\n"
    with pytest.raises(UserError, match=r"line 3: byte 0xe9 is not UTF-8, which the rest"):
        read(tmp_path, broken)
    source = read(tmp_path, broken, encoding="latin-1")
    assert rows(source)[1] == ("café", "bad")


def test_fixed_encoding_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"line 2: byte 0xe9 cannot be read as utf-8"):
        read(tmp_path, b"text,label\rcaf\xe9,good\r", encoding="utf-8")
    for name in ("klingon", "base64", "hex"):
        with pytest.raises(UserError, match=f"encoding '{name}' is not one that Python knows"):
            read(tmp_path, PLAIN, encoding=name)


# Line ends, quotes and where rows start


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends(tmp_path: Path, end: str, last: bool) -> None:
    content = PLAIN.replace("\n", end)
    source = read(tmp_path, content if last else content.removesuffix(end))
    assert rows(source) == PLAIN_ROWS
    assert source.lines.tolist() == [2, 3]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_right_after_quoted_ones(tmp_path: Path, end: str) -> None:
    content = (
        'text,label\n\n"one\ntwo, three\n\nfour",good\n\n"she said ""no""",bad\nlast,good\n'
    ).replace("\n", end)
    source = read(tmp_path, content)
    assert rows(source) == [
        (f"one{end}two, three{end}{end}four", "good"),
        ('she said "no"', "bad"),
        ("last", "good"),
    ]
    assert source.lines.tolist() == [3, 8, 9]


def test_separators_of_unicode_end_no_line(tmp_path: Path) -> None:
    texts = ["a\u2028b", "a\x85b", "a\x0bb", "a\x0cb", "a\x1cb"]
    source = read(tmp_path, "text,label\n" + "".join(f"{text},good\n" for text in texts))
    assert [text for text, _ in rows(source)] == texts
    assert source.lines.tolist() == [2, 3, 4, 5, 6]


def sms(count: int = 5574) -> list[tuple[str, str]]:
    """Make short messages some of which begin with a quote that never closes."""
    label = ("ham", "ham", "ham", "spam")
    texts = []
    for number in range(count):
        text = f"message {number}, call now; it's free"
        if number in (300, 301, 2000, 4000):
            text = f'"{text}'
        elif number % 97 == 5:
            text = f'he said "ok" to {text}'
        elif number % 211 == 7:
            text = f'"{text}"'
        elif number % 401 == 9:
            text = f'{text} "'
        texts.append((label[number % 4], text))
    return texts


@pytest.mark.parametrize("name", ["SMSSpamCollection", "sms.tsv", "sms.txt", "sms.csv"])
def test_quotes_that_are_text(tmp_path: Path, name: str) -> None:
    """As in SMS spam, where readers of quoted text find 5,572 rows of 5,574."""
    expected = sms()
    source = read(tmp_path, "".join(f"{label}\t{text}\n" for label, text in expected), name)
    assert rows(source) == expected
    assert source.table.column_names == ["column_1", "column_2"]
    assert source.dialect == "utf-8, tab, quotes are text, no header"
    assert source.lines.tolist() == list(range(1, 5575))


def test_quotes_that_swallow_rows_without_breaking(tmp_path: Path) -> None:
    """Opened at one message's start, closed at a later one's end: well-formed, and wrong."""
    expected = [("ham", f"message {n}") for n in range(50)]
    expected[10], expected[13] = ("ham", '"so he said'), ("ham", 'and left"')
    content = "".join(f"{label}\t{text}\n" for label, text in expected)
    assert rows(read(tmp_path, content)) == expected
    assert len(rows(read(tmp_path, content, quoting=True))) == 47
    with pytest.raises(UserError, match=r"line 11: a quoted field runs over.*set quoting to true"):
        read(tmp_path, content.replace("\t", ","))


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_quotes_around_a_few_whole_texts(tmp_path: Path, delimiter: str) -> None:
    """Enclosing that serves no purpose is text; one doubled quote or an empty field shows one."""
    texts = [f"message {number}" for number in range(50)]
    texts[7] = '"so he said"'
    for content, expected in (
        (texts, '"so he said"'),
        ([*texts, '"he said ""no"""'], "so he said"),
        ([*texts, '""'], "so he said"),
        ([*texts, *['"wrapped"'] * 30], "so he said"),
    ):
        source = read(tmp_path, "".join(f"{text}{delimiter}ham\n" for text in content))
        assert source.table["column_1"][7].as_py() == expected
        assert source.table.num_rows == len(content)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('text,label\n"a, b",good\n"never closed, b,bad\nlast, one,good\n', 3),
        ('text,label\n"a, b",good\nfine,bad\n"cut off', 4),
        ('text,label\n"a, ""b""",good\n"a, "b" c",bad\n', 3),
        ('text,label\n"a, b",good\n"he said \\"b, c\\"",bad\n', 3),
    ],
)
def test_broken_quotes_are_named(tmp_path: Path, content: str, line: int) -> None:
    for quoting in (None, True):
        with pytest.raises(UserError, match=rf"line {line}: the quotes of the row that starts"):
            read(tmp_path, content, quoting=quoting)


def test_one_broken_quote_in_a_quoted_file(tmp_path: Path) -> None:
    """Every line by itself is regular, but the quotes are clearly no text."""
    content = '"text","label"\n' + '"fine","good"\n' * 30 + '"so "fine" it is","good"\n'
    with pytest.raises(UserError, match="line 32: the quotes"):
        read(tmp_path, content)


def test_cells_longer_than_any_buffer(tmp_path: Path) -> None:
    text = "word, " * 2_000_000
    source = read(tmp_path, f'text,label\n"{text}",good\nshort,bad\n')
    assert rows(source) == [(text, "good"), ("short", "bad")]

    source = read(tmp_path, f'text,label\n"{text}\n{text}",good\nshort,bad\n')
    assert source.table["text"].to_pylist() == [f"{text}\n{text}", "short"]
    assert source.lines.tolist() == [2, 4]


@pytest.mark.parametrize("block", [64, 100, 1000])
def test_rows_across_blocks(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", block)
    texts = [f"a, {number}\n" * (number % 5) for number in range(300)]
    content = "text,label\n" + "".join(f'"{text}",good\n' for text in texts) + "x\n"
    source = read(tmp_path, content)
    assert rows(source) == [(text, "good") for text in texts]
    assert source.ragged == (Ragged(content.count("\n"), 2, 1),)


# Ragged rows, columns, headers


def test_ragged_rows_are_reported(tmp_path: Path) -> None:
    content = 'text,label\na,good\nb\n"c\nd",bad\ne,f,good\n  \ng,bad\n\n'
    source = read(tmp_path, content)
    assert rows(source) == [("a", "good"), ("c\nd", "bad"), ("g", "bad")]
    assert source.lines.tolist() == [2, 4, 8]
    assert source.ragged == (Ragged(3, 2, 1), Ragged(6, 2, 3), Ragged(7, 2, 1))


def test_ragged_rows_beyond_the_sample(tmp_path: Path) -> None:
    content = "text,label\n" + "plain words,good\n" * 200_000 + "a,b,c\n" + "end,bad\n"
    source = read(tmp_path, content)
    assert source.table.num_rows == 200_001
    assert source.ragged == (Ragged(200_002, 2, 3),)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a"])
def test_delimiters_are_detected(tmp_path: Path, delimiter: str, name: str) -> None:
    content = "label;text;id\ngood;Well, well, fine;1\nbad;No, thanks;2\n"
    source = read(tmp_path, content.replace(";", delimiter).replace(", ", ": "), name)
    assert source.table.column_names == ["label", "text", "id"]
    assert rows(source)[1] == ("bad", "No: thanks", "2")
    if delimiter != ",":
        source = read(tmp_path, content.replace(";", delimiter), name)
        assert rows(source)[1] == ("bad", "No, thanks", "2")


def test_fixed_delimiters(tmp_path: Path) -> None:
    content = "text^label\na,b^good\n"
    assert rows(read(tmp_path, content, delimiter="^")) == [("a,b", "good")]
    for delimiter in ("\t", "tab"):
        source = read(tmp_path, content.replace("^", "\t"), delimiter=delimiter)
        assert rows(source) == [("a,b", "good")]
    for delimiter in ("", "::", "\n", '"', "é"):
        with pytest.raises(UserError, match=r"delimiter .* cannot be used; valid: one ASCII"):
            read(tmp_path, content, delimiter=delimiter)


def test_values_that_look_like_nothing_are_texts(tmp_path: Path) -> None:
    words = ["N/A", "null", "None", "NaN", "nan", "NA", "", "TRUE", "False", "1", "01", "1.0", "-"]
    words += [" blank ", "#N/A", "2020-01-01", "1e5", "\\N"]
    content = "text,label\n" + "".join(f"{word},{word}\n" for word in words)
    source = read(tmp_path, content)
    assert rows(source) == [(word, word) for word in words]
    assert source.table.schema.types == [pa.string(), pa.string()]
    assert [c.null_count for c in source.table.columns] == [0, 0]


def test_label_first_without_header(tmp_path: Path) -> None:
    content = "pos\tfine film\nneg\tdull film\npos\tgood one\n"
    assert read(tmp_path, content).table.column_names == ["column_1", "column_2"]
    source = read(tmp_path, content, header=True)
    assert source.table.column_names == ["pos", "fine film"]
    assert source.lines.tolist() == [2, 3]
    assert len(rows(read(tmp_path, PLAIN, header=False))) == 3


def test_unnamed_and_repeated_columns(tmp_path: Path) -> None:
    source = read(tmp_path, ",text,label,text,\n0,a,good,b,\n1,c,bad,d,\n")
    assert source.table.column_names == ["column_1", "text", "label", "text_2", "column_5"]
    assert rows(source)[0] == ("0", "a", "good", "b", "")
    assert unique_names(["a", "a_2", "a", "a", " a "]) == ["a", "a_2", "a_3", "a_4", "a_5"]
    assert unique_names(["", "column_1"]) == ["column_1", "column_1_2"]


@pytest.mark.parametrize(
    ("first", "rest", "expected"),
    [
        (["v1", "v2"], [["ham", "hello"]], True),
        (["label", "text"], [["label", "text of it"]], True),
        (["", "text"], [["0", "fine"]], True),
        (["_unit_id", "choose_one:confidence"], [["77", "0.9"]], True),
        (["words", "value"], [["fine film", "1"], ["dull", "0"]], True),
        (["tweet_text", "existence"], [["Warming is real.", "Yes"], ["It's not!", "N"]], True),
        (["1", "fine film"], [["0", "dull film"]], False),
        (["ham", "Go until jurong point, crazy.."], [["spam", "Win!"], ["ham", "ok"]], False),
        (["What a lovely, lovely film!", "pos"], [["Dull.", "neg"]], False),
        (["comment", "I say"], [["question", "Who?"], ["comment", "So"]], False),
        (["text", "label"], [], True),
        (["0", "a text"], [], False),
    ],
)
def test_headers_are_told_from_rows(first: list, rest: list, expected: bool) -> None:
    assert has_header([first, *rest]) is expected


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
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a.csv", "binary, not text"),
        (bytes(range(256)) * 9, "a.txt", "binary, not text"),
        (zipped({"a": "b"}), "a.csv", r"this is a zip archive \(or a workbook\)"),
        (gzip.compress(b"a,b", mtime=0), "a.csv", "this is gzip, not text"),
        (bz2.compress(b"a,b"), "a.csv.bz2", "this is bzip2, not text"),
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
    assert source.dialect == f"{encoding.removesuffix('-sig')}, JSON Lines"


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ('{"text": "a"}\n{"text": \n', "a.jsonl", "line 2: not JSON"),
        ('{"text": "a"}\n\n["b", 1]\n', "a.jsonl", r"line 3: not an object: \['b', 1\]"),
        ('{"text": "a", "text": "b"}', "a.jsonl", "line 1: .* a key stands twice"),
        ('{"text": "a\\ud800"}', "a.jsonl", "'text': a text holds half a surrogate pair"),
        ('[{"text": "a"}, 3]', "a.json", "line 2: not an object: 3"),
        ('[{"text": "a"}', "a.json", "not JSON"),
        ('{"text": {"0": "a"}, "label": {"0": 1}}', "a.json", "one JSON object of columns"),
        ('{"data": [{"text": "a"}]}', "a.json", "one JSON object of columns"),
        ("[" * 100_000, "a.json", "not JSON"),
    ],
)
def test_json_faults_are_named(tmp_path: Path, content: str, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, content, name)


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
    (tmp_path / "b.csv").write_text(PLAIN)
    with pytest.raises(UserError, match=r"no \.zip archive"):
        read_table(tmp_path / "b.csv", AS_FOUND, member="a")


@pytest.mark.parametrize("name", ["../a.csv", "/etc/a.csv", "x/../../a.csv", "C:/a.csv"])
def test_unsafe_members_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="refused, it has a member with an unsafe path"):
        read(tmp_path, zipped({"fine.csv": PLAIN, name: PLAIN}), "a.zip")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.zip"])
def test_bombs_are_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_UNPACKED_BYTES", 3 << 20)
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
    source = read_folder_of_classes(root, AS_FOUND)
    assert source.table.to_pydict() == {
        "text": ["Un été à Paris… où êtes-vous ?", "", "naïve ☃", "From: a\r\n\r\nmoon\r\n"],
        "label": ["alt.atheism", "alt.atheism", "sci.space", "sci.space"],
    }
    assert source.lines.tolist() == [1, 2, 3, 4]
    assert source.provenance == {"not_rows": "1"}
    assert source.dialect == "cp1252, utf-8, a folder a class"
    assert read_files(tmp_path, "news", AS_FOUND).table.equals(source.table)
    assert rows(read_files(tmp_path, "news", DialectSpec(encoding="latin-1")))[3][1] == "sci.space"
    with pytest.raises(UserError, match="a folder a class has no header"):
        read_files(tmp_path, "news", DialectSpec(header=True))


def test_folder_faults_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no sub-folders"):
        read_folder_of_classes(tmp_path, AS_FOUND)
    (tmp_path / "pos").mkdir()
    with pytest.raises(UserError, match="hold no files"):
        read_folder_of_classes(tmp_path, AS_FOUND)
    folder_of_classes(tmp_path, {"pos/1": b"bad \x81 byte \xe9"})
    with pytest.raises(UserError, match=r"pos/1: line 1: byte 0x81 cannot be read as cp1252"):
        read_folder_of_classes(tmp_path, AS_FOUND)
    folder_of_classes(tmp_path, {"pos/deep/2": b"x"})
    with pytest.raises(UserError, match="pos/deep: a folder inside a class folder"):
        read_folder_of_classes(tmp_path, AS_FOUND)
    with pytest.raises(UserError, match="no such folder"):
        read_folder_of_classes(tmp_path / "no", AS_FOUND)


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
