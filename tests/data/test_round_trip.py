"""Round trips: what `csv`, pyarrow and pandas write in any dialect is read back equal."""

import csv
import gzip
import io
import json
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from stream.config.task import DialectSpec
from stream.data.sources.files import read_table
from stream.data.table import SourceTable

DELIMITERS = [",", "\t", ";", "|"]
LINE_ENDS = ["\n", "\r\n", "\r"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1", "gb18030"]
FAST = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NASTY = ["", " ", "NaN", "N/A", "null", "None", "TRUE", "1", '"', '""', "a,b", "\t", ";", "|", "'"]
NASTY += ["\n", "\r", "\r\n", " x ", "\ufeffx", "\u2028", "\x85", "\x1a", "\\", '\\"', "#", "=1+1"]
CHARS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
TEXTS = st.one_of(
    st.sampled_from(NASTY),
    st.text(CHARS, max_size=12),
    st.lists(st.sampled_from([*NASTY, "word", "é", "☃"]), max_size=6).map("".join),
)
TABLES = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8)
QUOTING = st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
PACKINGS = st.sampled_from(["plain", "gz", "zip"])


def pack(path: Path, content: bytes, packing: str) -> Path:
    """Write a file, compressed or not, and return where."""
    if packing == "gz":
        path = path.with_name(path.name + ".gz")
        path.write_bytes(gzip.compress(content, compresslevel=1))
    elif packing == "zip":
        with zipfile.ZipFile(path.with_name(path.name + ".zip"), "w") as archive:
            archive.writestr(path.name, content)
        path = path.with_name(path.name + ".zip")
    else:
        path.write_bytes(content)
    return path


def first_lines(written: list[str]) -> list[int]:
    """Return the line on which each of the records starts, counted from their own texts."""
    lines, line = [], 1
    for record in written:
        lines.append(line)
        line += record.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    return lines


def check(source: SourceTable, rows: list[tuple[str, str]]) -> None:
    assert list(zip(*source.table.to_pydict().values(), strict=True)) == rows
    assert source.ragged == ()
    assert source.table.schema.types == [pa.string(), pa.string()]


@FAST
@given(
    rows=TABLES,
    dialect=st.tuples(st.sampled_from(DELIMITERS), st.sampled_from(LINE_ENDS), QUOTING),
    encoding=st.sampled_from(ENCODINGS),
    packing=PACKINGS,
    header=st.booleans(),
)
def test_written_by_csv(tmp_path, rows, dialect, encoding, packing, header) -> None:
    delimiter, end, quoting = dialect
    rows = [tuple(t.encode(encoding, "ignore").decode(encoding) for t in row) for row in rows]
    written = []
    for row in ([("text", "label")] if header else []) + rows:
        out = io.StringIO(newline="")
        # csv quotes a carriage return only if it ends lines; with minimal quoting, let it
        ends = end if quoting == csv.QUOTE_ALL else "\r\n"
        csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=ends).writerow(row)
        written.append(out.getvalue().removesuffix(ends) + end)
    content = "".join(written).encode(encoding)
    path = pack(tmp_path / "a.csv", content, packing)
    spec = DialectSpec(encoding, delimiter, quoting=True, header=header)
    # without a header, a text that begins with U+FEFF is a byte order mark
    assume(header or not written[0].startswith("\ufeff"))
    source = read_table(path, spec)
    check(source, rows)
    assert source.lines.tolist() == first_lines(written)[int(header) :]


@FAST
@given(
    rows=TABLES,
    delimiter=st.sampled_from(DELIMITERS),
    style=st.sampled_from(["needed", "all_valid"]),
    packing=PACKINGS,
)
def test_written_by_pyarrow(tmp_path, rows, delimiter, style, packing) -> None:
    table = pa.table({"text": [t for t, _ in rows], "label": [c for _, c in rows]})
    out = io.BytesIO()
    pc.write_csv(table, out, pc.WriteOptions(delimiter=delimiter, quoting_style=style))
    path = pack(tmp_path / "a.tsv", out.getvalue(), packing)
    check(read_table(path, DialectSpec(None, delimiter, quoting=True, header=True)), rows)


@FAST
@given(
    rows=TABLES,
    delimiter=st.sampled_from(DELIMITERS),
    end=st.sampled_from(LINE_ENDS),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    index=st.booleans(),
)
def test_written_by_pandas(tmp_path, rows, delimiter, end, encoding, index) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=["text", "label"], dtype="object")
    path = tmp_path / "a.csv"
    options = {"quoting": csv.QUOTE_ALL} if end != "\r\n" else {}
    frame.to_csv(path, index=index, sep=delimiter, lineterminator=end, encoding=encoding, **options)
    source = read_table(path, DialectSpec(delimiter=delimiter, quoting=True, header=True))
    if index:
        assert source.table.column_names == ["column_1", "text", "label"]
        assert source.table["column_1"].to_pylist() == [str(row) for row in range(len(rows))]
    check(
        SourceTable(source.table.select(["text", "label"]), "", source.lines, source.ragged), rows
    )


@FAST
@given(rows=TABLES, end=st.sampled_from(LINE_ENDS))
def test_quotes_as_text(tmp_path, rows, end) -> None:
    """Without quoting, tabs and line ends cannot be carried, everything else can."""
    forbidden = str.maketrans("", "", "\t\r\n\ufeff")
    rows = [tuple(text.translate(forbidden) for text in row) for row in rows]
    path = tmp_path / "a.tsv"
    path.write_bytes("".join(f"{a}\t{b}{end}" for a, b in rows).encode())
    source = read_table(path, DialectSpec("utf-8", "tab", quoting=False, header=False))
    check(source, rows)
    assert source.lines.tolist() == list(range(1, len(rows) + 1))


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.sampled_from(["1", "0", "true"])
)


@FAST
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    data=st.data(),
    lines=st.booleans(),
    ascii_only=st.booleans(),
    packing=PACKINGS,
)
def test_json(tmp_path, texts, data, lines, ascii_only, packing) -> None:
    labels = [data.draw(VALUES) for _ in texts]
    items = [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]
    dump = partial(json.dumps, ensure_ascii=ascii_only)
    content = "\n".join(map(dump, items)) if lines else dump(items)
    name = "a.jsonl" if lines else "a.json"
    source = read_table(pack(tmp_path / name, content.encode(), packing), DialectSpec())
    assert source.table["text"].to_pylist() == texts
    found = source.table["label"].to_pylist()
    if "json_text" in source.provenance:
        found = [None if value is None else json.loads(value) for value in found]
    assert [(type(v), v) for v in found] == [(type(v), v) for v in labels]


WORDS = st.sampled_from(
    ("the", "film", "fine,", "dull;", "good\nand", "she", "said", '"wow"', "it's", "naïve", "€5")
)
SENTENCES = st.lists(WORDS, min_size=3, max_size=15).map(" ".join)
REALISTIC = st.lists(
    st.tuples(SENTENCES, st.sampled_from(["good", "bad"])), min_size=60, max_size=80
)


@settings(FAST, max_examples=40)
@given(
    rows=REALISTIC,
    dialect=st.tuples(st.sampled_from(DELIMITERS), QUOTING),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    header=st.booleans(),
    packing=PACKINGS,
)
def test_realistic_text_is_detected(tmp_path, rows, dialect, encoding, header, packing) -> None:
    delimiter, quoting = dialect
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting)
    writer.writerows(([("text", "label")] if header else []) + rows)
    path = pack(tmp_path / "a.csv", out.getvalue().encode(encoding), packing)
    source = read_table(path, DialectSpec())
    check(source, rows)
    expected = ["text", "label"] if header else ["column_1", "column_2"]
    assert source.table.column_names == expected
    assert np.all(np.diff(source.lines) >= 1)
