"""How delimited files are written by Excel, Spark, MySQL, R and by hand: detected, set, said."""

import re
from pathlib import Path

import pytest

from stream.config.source import DialectSpec, FilesSource
from stream.data.prepare.rows import account_rows
from stream.errors import UserError
from tests.data.small_files import read, rows
from tests.data.test_prepare import spec

GOOD, BAD = ("fine, film", "good"), ("dull", "bad")


@pytest.mark.parametrize(
    ("content", "expected", "first", "said"),
    [
        # above the table
        ("sep=;\ntext;label\nfine, film;good\ndull;bad\n", [GOOD, BAD], 3, "sep= line"),
        ('\ufeff"sep=\t"\r\ntext\tlabel\r\nfine, film\tgood\r\n', [GOOD], 3, "tab, .*sep= line"),
        ('\n# a\n#b, c\n\ntext,label\n"fine, film",good\n', [GOOD], 6, "2 comment lines"),
        ("# a\n# b\nx;y\nfine, film;good\ndull;bad\n", [GOOD, BAD], 4, "2 comment lines"),
        ("A survey\n\ntext,label\ndull,bad\n#x,bad\n", [BAD, ("#x", "bad")], 4, "1 title row"),
        ("A survey;\n;\ntext;label\nfine, film;good\ndull;bad\n", [GOOD, BAD], 4, "2 title rows"),
        ("Survey, 2020\nlabel,text\nbad,dull\n", [("bad", "dull")], 3, "1 title row"),
        # no comment and no title
        ("#text,label\ndull,bad\n", [BAD], 2, "header$"),
        ("#a,good\n#b,bad\ndull,bad\n", [("#a", "good"), ("#b", "bad"), BAD], 1, "no header$"),
        (",text\n0,dull\n1,fine\n", [("0", "dull"), ("1", "fine")], 2, "header$"),
        # escapes
        ('text,label\n"a \\"b, c\\" d",good\n', [('a "b, c" d', "good")], 2, r"escaped with \\"),
        ('text,label\n"a \\", b",good\n', [('a ", b', "good")], 2, r"escaped with \\"),
        (
            'text,label\n"a, b",good\nc \\"d\\",bad\n',
            [("a, b", "good"), ('c "d"', "bad")],
            2,
            "esc",
        ),
        ('text,label\n"a \\" \\n \\\\",good\n', [('a " \\n \\', "good")], 2, r"escaped with \\"),
        ("a\\\tb\tgood\nc\\\nd\tbad\ne\tbad\n", [("a\tb", "good"), ("c\nd", "bad")], 1, "escaped"),
        (
            '"a\tgood\nb\\\tc\tbad\n' + "d\tbad\n" * 4,
            [('"a', "good"), ("b\tc", "bad")],
            1,
            "quotes are text",
        ),
        ("text,label\na\\\\b,good\n", [("a\\\\b", "good")], 2, "backslashes are text"),
        ("text,label\nC:\\new,good\n", [("C:\\new", "good")], 2, "header$"),
        ('text,label\n"in C:\\",good\ndull,bad\n', [("in C:\\", "good"), BAD], 2, "are text"),
        # other quotes
        ("text,label\n'fine, film','good'\n'it''s','bad'\n", [GOOD, ("it's", "bad")], 2, "with '"),
        (
            "'text','label'\n'it\\'s, x','good'\n'dull','bad'\n",
            [("it's, x", "good"), BAD],
            2,
            "esc",
        ),
        ("text,label\n'a; b','good'\n'c; d','bad'\n", [("a; b", "good"), ("c; d", "bad")], 2, "'"),
        ("text,label\n'fine, film',good\ndull,bad\n", [GOOD, BAD], 2, "quoted with '"),
        (
            "text,label\n'tis,good\n'a' b,bad\n",
            [("'tis", "good"), ("'a' b", "bad")],
            2,
            "quoted, he",
        ),
        ('"a; b","good"\n"c; d","bad"\n', [("a; b", "good"), ("c; d", "bad")], 1, "comma, quoted"),
        # long delimiters
        ("text::label\nfine, film::good\ndull::bad\n", [GOOD, BAD], 2, "'::'"),
        ('text::label\n"a::b"::good\ndull::bad\n', [("a::b", "good"), BAD], 2, "'::'"),
        ("text ||| label\nfine, film ||| good\n", [GOOD], 2, r"' \|\|\| '"),
        # row numbers, delimiters that end rows
        ('"text" "label"\n"1" "a b" "good"\n"2" "c" "bad"\n', [("1", "a b", "good")], 2, "row n"),
        ("text\tlabel\n1\tdull\tbad\n2\ta\tbad\n", [("1", "dull", "bad")], 2, "row numbers"),
        ("text,label\ndull,bad,\na,bad,\n", [("dull", "bad", "")], 2, "delimiter after each row"),
        ("text,label,,\ndull,bad,,\n,,,\n", [("dull", "bad", "", ""), ("",) * 4], 2, "header$"),
    ],
)
def test_dialects_are_detected_and_said(
    tmp_path: Path, content: str, expected: list, first: int, said: str
) -> None:
    source = read(tmp_path, content)
    assert rows(source)[: len(expected)] == expected
    assert source.lines[0] == first
    assert source.ragged == ()
    assert re.search(said, source.dialect), source.dialect


@pytest.mark.parametrize(
    ("content", "setting", "expected"),
    [
        ("text§label\nfine, film§good\n", {"delimiter": "§"}, [GOOD]),
        ("text, label\nfine film, good\n", {"delimiter": ", "}, [("fine film", "good")]),
        ("text label\n'a b' good\n", {"delimiter": "space", "quote": "'"}, [("a b", "good")]),
        ("text,label\n|fine, film|,good\n", {"quote": "|"}, [GOOD]),
        ('text,label\n"a ^" b",good\n', {"escape": "^"}, [('a " b', "good")]),
        ("text,label\na\\\\b,good\n", {"escape": "\\"}, [("a\\b", "good")]),
        ("a\\,b,good\n", {"escape": "\\", "quoting": False, "header": False}, [("a,b", "good")]),
        ("x,y\nz\ntext,label\ndull,bad\n", {"skip": 2}, [BAD]),
        ('text,label\n#x "\n"a\n#b",bad\n# c,d\n', {"comment": "#"}, [("a\n#b", "bad")]),
        ("text,label\n\\N,\\N\nNA,bad\n", {"null_value": "\\N"}, [("", ""), ("NA", "bad")]),
    ],
)
def test_dialects_are_set(tmp_path: Path, content: str, setting: dict, expected: list) -> None:
    source = read(tmp_path, content, **setting)
    assert rows(source) == expected
    assert "comment" not in setting or "2 comment lines" in source.dialect
    assert source.settled is not None
    again = DialectSpec(**{**vars(source.settled), "encoding": None})
    assert rows(read(tmp_path, content, **vars(again))) == expected  # settled in full


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"quote": "''"}, r"dialect\.quote must be one ASCII character"),
        ({"escape": ""}, r"dialect\.escape must be one ASCII character"),
        ({"quote": "'", "quoting": False}, "has no effect with dialect.quoting=false"),
        ({"quote": "'", "escape": "'"}, "must differ"),
        ({"skip": -1}, r"dialect\.skip must be at least 0, got -1"),
        ({"comment": "#\n"}, r"dialect\.comment must be text of one line"),
        ({"skip": 3}, r"a\.csv: has 2 lines, dialect\.skip is 3"),
    ],
)
def test_settings_that_cannot_be_are_named(tmp_path: Path, setting: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, "text,label\ndull,bad\n", **setting)


@pytest.mark.parametrize(
    "content",
    [
        "text,label\ndull,bad\n# note\nfine,good\n",  # a comment among the rows
        "A survey\nwords,mark\ndull,bad\nfine,good\n",  # a title above an uncertain header
        "text,label\nwell, fine film,good\nno, dull,bad\n",  # no row names
        "text,label\n1,a,good\n3,b,bad\n",  # nor row numbers
        "text,label\n'Hello,' he said,good\n'twas,bad\n",
    ],
)
def test_rows_that_do_not_fit_are_refused_with_the_setting_that_helps(
    tmp_path: Path, content: str
) -> None:
    columns = FilesSource(text=["text"])
    with pytest.raises(UserError, match=r"skip.*lines above the table") as caught:
        account_rows("film", spec(), columns, read(tmp_path, content))
    assert "\n" not in str(caught.value)
