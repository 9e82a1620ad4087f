"""Small files of the kinds that people have: how each is read, or the line that refuses it.

All are invented. Each row stands for a kind of public file that was once read wrongly, or refused
for a wrong reason.
"""
# ruff: noqa: RUF001 - texts in many languages

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config.source import DialectSpec
from stream.data.sources.files import read_files
from stream.errors import UserError
from tests.data.small_files import zipped

LAMP, MAT = "the lamp is on", "a mat"
AB = [(LAMP, "a"), (MAT, "b")]
PLAIN = f"text,label\n{LAMP},a\n{MAT},b\n"
TL = ["text", "label"]


def lines_of(*texts: str) -> str:
    """Return a table with these texts, labels in turn."""
    return "text\tlabel\n" + "".join(f"{text}\t{'ab'[n % 2]}\n" for n, text in enumerate(texts))


def labelled(*texts: str) -> list[tuple[str, str]]:
    return [(text, "ab"[n % 2]) for n, text in enumerate(texts)]


def parquet(**columns) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def arrow_stream() -> bytes:
    out, table = io.BytesIO(), pa.table({"text": [LAMP, MAT], "label": ["a", "b"]})
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def zstd(raw: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(raw)
    return out.getvalue().to_pybytes()


LATE = ["the bird’s nest", "“it’s late,” she said — and left", "don’t go…"]  # punctuation only
FRENCH = ["L'été à Paris était très agréable", "où êtes-vous allés ? Ça va bien"]
GERMAN = ["Über die Straße gehen schöne Mädchen", "größer als früher"]
POLISH = ["Zażółć gęślą jaźń, świetny film", "bardzo dobra książka, którą kupiłem"]
HUNGARIAN = ["jó könyv, tetszett nekünk nagyon", "ez a film szörnyű volt, őszintén"]
TURKISH = ["çok güzel bir film, beğendim", "ışık çok az, kötü bir ürün"]
RUSSIAN = ["Это очень хороший фильм, мне понравилось", "спасибо, плохо работает"]
GREEK = ["πολύ καλή ταινία", "δεν μου άρεσε καθόλου"]
HEBREW = ["הסרט היה טוב מאוד", "לא אהבתי את זה בכלל"]
ARABIC = ["هذا الفيلم جيد جدا", "لم يعجبني هذا المنتج"]
THAI = ["หนังเรื่องนี้ดีมาก", "ไม่ชอบเลยสักนิด"]
LITHUANIAN = ["labai geras filmas, rekomenduoju žiūrėti", "ačiū už pagalbą, viskas puiku"]
CHINESE = ["这部电影很好看，我非常喜欢", "服务很差，不会再来了"]
JAPANESE = ["この映画はとても面白かったです", "ありがとうございました"]
KOREAN = ["이 영화는 정말 재미있어요", "별로예요 다시는 안 갈 거예요"]


@pytest.mark.parametrize("plain", [0, 200], ids=["short", "mostly ASCII"])
@pytest.mark.parametrize(
    ("encoding", "texts"),
    [
        ("cp1252", LATE),
        ("mac_roman", LATE),
        ("cp1252", ["a naïve plan", "the café"]),
        ("mac_roman", ["a naïve plan", "the café"]),
        ("cp1252", FRENCH),
        ("mac_roman", FRENCH),
        ("cp1252", GERMAN),
        ("mac_roman", GERMAN),
        ("cp850", GERMAN),
        ("cp1250", POLISH),
        ("iso8859_2", POLISH),
        ("cp1250", HUNGARIAN),
        ("cp1254", TURKISH),
        ("cp1251", RUSSIAN),
        ("koi8_r", RUSSIAN),
        ("cp866", RUSSIAN),
        ("cp1253", GREEK),
        ("cp1255", HEBREW),
        ("cp1256", ARABIC),
        ("cp874", THAI),
        ("cp1257", LITHUANIAN),
        ("gb18030", CHINESE),
        ("cp932", JAPANESE),
        ("euc_jp", JAPANESE),
        ("euc_kr", KOREAN),
    ],
    ids=str,
)
def test_an_encoding_is_guessed_and_said_to_be_a_guess(
    tmp_path: Path, encoding: str, texts: list[str], plain: int
) -> None:
    everything = [*["the lamp is on and we went home"] * plain, *texts]
    (tmp_path / "a.tsv").write_bytes(lines_of(*everything).encode(encoding))
    source = read_files(tmp_path, "a.tsv", DialectSpec())
    assert source.table["text"].to_pylist()[plain:] == texts
    guess = source.encoding
    assert guess is not None
    assert guess.is_guess
    assert source.dialect.startswith(f"{guess.name} (a guess: ")
    assert guess.next is not None
    ours, other = guess.example
    assert ours != other
    assert any(ours in text for text in texts)
    assert other in lines_of(*texts).encode(encoding).decode(guess.next, "replace")


LABEL_STUDIO = [
    {
        "id": number,
        "data": {"text": text},
        "annotations": [
            {
                "id": number + 90,
                "was_cancelled": False,
                "result": [
                    {
                        "from_name": "mood",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": [label]},
                    }
                ],
            }
        ],
        "predictions": [],
    }
    for number, (text, label) in enumerate(AB)
]
CHOICES = "annotations.result.value.choices"
PRODIGY = "\n".join(
    json.dumps({"text": t, "_input_hash": 7, "options": [{"id": "a"}, {"id": "b"}], "accept": [c]})
    for t, c in AB
)
DOCCANO = "\n".join(json.dumps({"id": 1, "text": t, "label": [c], "Comments": []}) for t, c in AB)


@pytest.mark.parametrize(
    ("name", "content", "columns", "expected", "said"),
    [
        # headers
        ("a.csv", "phrase,verdict\nx y,yes\nz,verdict\n", ["phrase", "verdict"], 2, ", header"),
        ("a.csv", "sentence,mood\nx y,calm\nz,mood\n", ["sentence", "mood"], 2, "comma.*, header"),
        ("a.tsv", "mood\tphrase\ncalm\tx y\nmood\tz\n", ["mood", "phrase"], 2, "tab.*, header"),
        ("a.csv", "ham,x y z\nspam,y\nham,z\n", ["column_1", "column_2"], 3, "no header"),
        ("a.csv", f"sep=;\n{PLAIN.replace(',', ';')}", TL, AB, "semicolon.*sep= line"),
        ("a.csv", f"Lamps of 2020\n\n{PLAIN}", TL, AB, "1 title row"),
        ("a.csv", f"# lamps\n# mats\n{PLAIN}", TL, AB, "2 comment lines"),
        # delimiters and quotes
        (
            "a.csv",
            PLAIN.replace("\n", ",\n").replace("label,", "label"),
            [*TL, "column_3"],
            2,
            "aft",
        ),
        ("a.csv", PLAIN.replace("label", "label,"), TL, AB, "a delimiter after the header"),
        ("a.csv", PLAIN.replace(",", "::"), TL, AB, "'::'"),
        ("a.csv", PLAIN.replace(",", " ||| "), TL, AB, r"' \|\|\| '"),
        (
            "a.tsv",
            '"x"\t0\n"the" y\t0\n',
            ["column_1", "column_2"],
            [('"x"', "0"), ('"the" y', "0")],
            "quotes are text",
        ),
        (
            "a.tsv",
            'a\t"x"\nb\t"y"\nb\t"the door, shut\na\tz\na\tso "it" goes"\n',
            ["column_1", "column_2"],
            5,
            "quotes are text",
        ),
        ("a.tsv", 'text\tlabel\n"x\ny"\ta\n"z"\tb\n', TL, [("x\ny", "a"), ("z", "b")], "quoted"),
        (
            "a.csv",
            'text,label\n"he said \\"hi, you\\" to me",a\n',
            TL,
            [('he said "hi, you" to me', "a")],
            "escaped",
        ),
        # packed
        ("a.csv.gz", gzip.compress(PLAIN.encode(), mtime=0), TL, AB, "comma"),
        ("a.csv.bz2", bz2.compress(PLAIN.encode()), TL, AB, "comma"),
        ("a.csv.xz", lzma.compress(PLAIN.encode()), TL, AB, "comma"),
        ("a.csv.zst", zstd(PLAIN.encode()), TL, AB, "comma"),
        ("a.zip", zipped({"in/t.csv": PLAIN, "README": "x"}), TL, AB, "comma"),
        # lines of fastText
        ("a.txt", f"__label__a {LAMP}\n\n__label__b , {MAT}\n", TL, AB, "lines of __label__"),
        # JSON
        (
            "a.json",
            json.dumps(LABEL_STUDIO),
            ["id", "data.text", CHOICES],
            2,
            "JSON array, lists of o",
        ),
        ("a.jsonl", PRODIGY, ["text", "accept"], AB, "one item as that item: accept"),
        ("a.jsonl", f"\ufeff{DOCCANO}", ["text", "label"], AB, "utf-8, JSON Lines, lists of one"),
        (
            "a.jsonl",
            '{"doc": {"text": "x"}, "label": "a"}\n',
            ["doc.text", "label"],
            [("x", "a")],
            "",
        ),
        ("a.jsonl", '{"text": "x", "label": "a", "note": null}\n' * 2, [*TL, "note"], 2, ""),
        (
            "a.json",
            '{"7": {"text": "x", "label": "a"}, "8": {"text": "y", "label": "b"}}',
            TL,
            [("x", "a"), ("y", "b")],
            "an object of rows",
        ),
        (
            "a.json",
            '{"text": {"0": "x", "1": "y"}, "label": {"0": "a", "1": "b"}}',
            TL,
            [("x", "a"), ("y", "b")],
            "an object of columns",
        ),
        (
            "a.json",
            '{"text": ["x", "y"], "label": ["a", "b"]}',
            TL,
            [("x", "a"), ("y", "b")],
            "columns",
        ),
        (
            "a.json",
            '{"columns": ["text", "label"], "index": [0], "data": [["x", "a"]]}',
            TL,
            [("x", "a")],
            "columns and data",
        ),
        (
            "a.json",
            '{"version": 1, "rows": [{"text": "x", "label": "a"}]}',
            TL,
            [("x", "a")],
            "under 'rows'",
        ),
        (
            "a.txt",
            '{"text": "x, y", "label": "a"}\n{"text": "z", "label": "b"}\n',
            TL,
            2,
            "JSON Lines",
        ),
        # columns with types
        (
            "a.parquet",
            parquet(text=[LAMP, MAT], label=["a", "b"], n=pa.nulls(2)),
            TL,
            AB,
            "parquet",
        ),
        (
            "a.parquet",
            parquet(text=[LAMP, MAT], label=["a", "b"], l=[["x", "y"], []], s=[{"a": 1}] * 2),
            [*TL, "s.a"],
            2,
            "parquet",
        ),
        (
            "a.parquet",
            parquet(text=[LAMP, MAT], labels=[["a"], ["b"]]),
            ["text", "labels"],
            AB,
            "one item as that item: labels",
        ),
        ("a.parquet", parquet(text=[LAMP, MAT], label=["a", "b"], raw=[b"\xff", None]), TL, AB, ""),
        (
            "a.parquet",
            parquet(
                text=pa.array([LAMP, MAT], pa.string_view()),
                label=pa.array(["a", "b"], pa.large_string()),
            ),
            TL,
            AB,
            "",
        ),
        ("a.arrow", arrow_stream(), TL, AB, "arrow"),
    ],
)
def test_a_file_is_read_right(
    tmp_path: Path, name: str, content: bytes | str, columns: list, expected: list | int, said: str
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    source = read_files(tmp_path, name, DialectSpec())
    assert set(columns) <= set(source.table.column_names)
    assert source.ragged == ()
    found = list(zip(*(source.table[column].to_pylist() for column in columns), strict=True))
    assert found == expected if isinstance(expected, list) else len(found) == expected
    assert "\n" not in source.dialect
    assert re.search(said, source.dialect), source.dialect


CONTENT = "by its content this is "


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            b"SQLite format 3\0" + bytes(84),
            f"{CONTENT}an SQLite database; export its table",
        ),
        ("a.dta", b"<stata_dta><header><release>118", f"{CONTENT}a Stata file"),
        ("a.dta", b"\x72\x02\x01\0\x03\0", f"{CONTENT}a Stata file"),
        ("a.csv", arrow_stream(), f"{CONTENT}an Arrow stream, not text; name it .arrow"),
        ("a.txt", b"1 3:0.5 7:1\n-1 2:1 9:0.25\n", f"{CONTENT}LIBSVM lines of numbers"),
        ("a.pkl", pickle.dumps({"text": ["x"]}), f"{CONTENT}a Python pickle"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", f"{CONTENT}an image"),
        ("a.pdf", b"%PDF-1.7\n", f"{CONTENT}a PDF, not data"),
        ("a.xls", b"<table><tr><td>text</td></tr></table>", "a web page that is called a table"),
        ("a.csv", b"<!DOCTYPE html>\n<html>", "a web page, not data"),
        ("a.csv", zstd(PLAIN.encode()), f"{CONTENT}zstd, not text; name it .zst"),
        ("a.csv.zst", zstd(PLAIN.encode() * 99)[:-9], "cannot be unpacked or read: Truncated"),
        ("a.txt", b"__label__a __label__b x\n__label__a y\n", "1 line with several labels"),
        ("a.json", b'{"a": [{"text": "x"}], "b": [{"text": "y"}]}', "several lists of rows"),
        ("a.csv", b'text,label\n"x",a\n"so "it" is",b\n"y, z",a\n', "line 3: the quotes"),
        ("a.tsv", b'"a"\t"x"\n' * 9 + b'"b"\t"y\n"a"\tz"\n"b"\t"w"\n', "line 10.*set quoting"),
    ],
)
def test_a_file_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        read_files(tmp_path, name, DialectSpec())
    assert "\n" not in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


def test_an_encoding_that_the_file_contradicts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(lines_of(*FRENCH), encoding="utf-8")
    with pytest.raises(UserError, match=r"is valid UTF-8 .* set to mac_roman"):
        read_files(tmp_path, "a.tsv", DialectSpec(encoding="mac_roman"))


def workbook(sheets: dict[str, list[list]]) -> bytes:
    """Return the smallest .xlsx with these sheets; None is an empty cell."""
    made = "http://schemas.openxmlformats.org"
    kinds, sheet = f"{made}/officeDocument/2006/relationships", f"{made}/spreadsheetml/2006/main"
    links = f'<Relationships xmlns="{made}/package/2006/relationships">%s</Relationships>'
    link = f'<Relationship Id="r%d" Type="{kinds}/%s" Target="%s"/>'
    type_ = "application/vnd.openxmlformats-officedocument.spreadsheetml.%s+xml"
    names = "".join(
        f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(sheets, 1)
    )
    members = {
        "[Content_Types].xml": f'<Types xmlns="{made}/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{type_ % "sheet.main"}"/></Types>',
        "_rels/.rels": links % (link % (1, "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{sheet}" xmlns:r="{kinds}">'
        f"<sheets>{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": links
        % "".join(
            link % (i, "worksheet", f"worksheets/s{i}.xml") for i in range(1, len(sheets) + 1)
        ),
    }
    for number, rows in enumerate(sheets.values(), 1):
        cells = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        members[f"xl/worksheets/s{number}.xml"] = (
            f'<worksheet xmlns="{sheet}"><sheetData>{cells}</sheetData></worksheet>'
        )
    return zipped(members)


def cell(value: object) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return "<c/>" if value is None else f"<c><v>{value}</v></c>"


def test_sheets_of_a_workbook(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    lamps = [["Lamps of 2020"], [], ["text", "label", "stars"], [LAMP, "a", 4], [MAT, None, 4.5]]
    sheets = {"Lamps": lamps, "Notes": [["text", "label"], ["x", "b"]]}
    (tmp_path / "a.xlsx").write_bytes(workbook(sheets))
    source = read_files(tmp_path, "a.xlsx", DialectSpec())
    assert source.table.to_pydict() == {
        "text": [LAMP, MAT],
        "label": ["a", ""],
        "stars": ["4", "4.5"],
    }
    assert source.lines.tolist() == [4, 5]
    assert source.dialect == "sheet 'Lamps' of 2 (Lamps, Notes), header, 1 title row"
    notes = read_files(tmp_path, "a.xlsx/Notes", DialectSpec())
    assert notes.table.to_pylist() == [{"text": "x", "label": "b"}]
    with pytest.raises(UserError, match=r"unknown sheet .*'Note'.*Did you mean 'Notes'"):
        read_files(tmp_path, "a.xlsx/Note", DialectSpec())


def test_workbooks_need_an_extra_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(UserError, match=r"pip install 'task-stream-simulator\[xlsx\]', or save"):
        read_files(tmp_path, "a.xlsx", DialectSpec())
