"""Delimited files as people have them: encodings, line ends, quotes, delimiters, headers."""

from pathlib import Path

import pyarrow as pa
import pytest

from stream.data.sources import delimited
from stream.data.sources.dialect import has_header, unique_names
from stream.data.table import Ragged
from stream.errors import UserError
from tests.data.small_files import PLAIN, PLAIN_ROWS, read, rows

# Encodings

WESTERN = "text,label\nIt is a “great” café…,good\n20 € für nichts,bad\n"
WESTERN_ROWS = [("It is a “great” café…", "good"), ("20 € für nichts", "bad")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings_are_detected(tmp_path: Path, encoding: str) -> None:
    source = read(tmp_path, WESTERN.encode(encoding))
    assert rows(source) == WESTERN_ROWS
    assert source.table.column_names == ["text", "label"]
    name = encoding.removesuffix("-sig")
    guess = " (a guess: '“great”'; mac_roman would give 'ìgreatî')" if name == "cp1252" else ""
    assert source.dialect == f"{name}{guess}, comma, quoted, header"


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


def test_one_accent_late_in_english_text(tmp_path: Path) -> None:
    """Beyond every sample: the whole file is looked at."""
    content = b"text,label\n" + b"plain words,good\n" * 100_000 + b"caf\xe9,bad\n"
    source = read(tmp_path, content)
    assert source.table["text"][-1].as_py() == "café"
    assert source.dialect.startswith("cp1252")
    assert source.lines[-1] == 100_002


def test_bytes_of_no_encoding(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.csv: line 3: byte 0x81 cannot be read as cp1252"):
        read(tmp_path, b"text,label\nfine,good\nna\x81ve caf\xe9,bad\n", encoding="cp1252")
    broken = "text,label\nnaïve café ☃,good\n".encode() + b"caf\xe9,bad\n"
    with pytest.raises(UserError, match=r"line 3: byte 0xe9 is not UTF-8, which the rest"):
        read(tmp_path, broken)
    with pytest.raises(UserError, match=r"line 1: byte 0x74 cannot be read as utf-16"):
        read(tmp_path, PLAIN, encoding="utf-16")
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
        ('text,label\n"a, b",good\n"he said \\"b, c\\"" she,bad\n', 3),
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


def test_cells_longer_than_any_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 20)
    text = "word, " * 400_000
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
    for delimiter in ("", "\n", '"', ':"'):
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
    assert source.dialect.endswith("header, several columns called 'text'")
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
