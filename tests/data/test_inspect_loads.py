"""What `inspect` writes loads, whatever the file is like: its printed command reads its rows."""

import csv
import gzip
import io
import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stream.cli.main import main
from stream.config.data import FilesData
from stream.config.task_yaml import read_task
from stream.data.loading import load_task
from tests.config.test_task_yaml import TEXTS
from tests.data.small_files import zipped
from tests.data.test_inspect_choices import filled

N = 60
FORMS = ["csv", "tsv", "csv.gz", "jsonl", "json", "parquet", "zip", "zip/member", "folder"]
TYPED = ("jsonl", "json", "parquet")  # whose first line needs no guess
# A task of the program, a number, what a shell, YAML, Hydra or a glob takes for more than a name.
STEMS = ["rte", "2024", "a b", "${x}", "it's [1]*", "null", "defaults", "-m", "\u00fc=1,2"]
NAMES = ["is it ${good}?", "doc.text", "a b", 'the "x"', "it's", "???", "", "#", "null", "*", "-t"]


def _delimited(names: list[str], rows: list[tuple], delimiter: str, *, header: bool) -> str:
    """Return delimited text in which all fields are quoted."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([names] * header + rows)
    return out.getvalue()


def _as_bytes(form: str, names: list[str], rows: list[tuple]) -> bytes:
    """Return a table in one of `FORMS`."""
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    if form == "jsonl":
        return "\n".join(map(json.dumps, objects)).encode()
    if form == "json":
        return json.dumps(objects).encode()
    if form == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), sink)
        return sink.getvalue().to_pybytes()
    text = _delimited(names, rows, "\t" if form == "tsv" else ",", header=True)
    if form.startswith("zip"):
        return zipped({"in/a.csv": text, **({"b.csv": "x"} if form == "zip/member" else {})})
    return gzip.compress(text.encode()) if form == "csv.gz" else text.encode()


def _written(folder: Path, form: str, stem: str, names: list[str], rows: list[tuple]) -> Path:
    """Write a table, in a folder as the three splits of a task; return what to inspect."""
    if form == "folder":
        path = folder / stem
        path.mkdir()
        for split, part in (("train", rows[:40]), ("dev", rows[40:50]), ("test", rows[50:])):
            (path / f"my-{split}.csv").write_bytes(_as_bytes("csv", names, part))
        return path
    path = folder / f"{stem}.{form.partition('/')[0]}"
    path.write_bytes(_as_bytes(form, names, rows))
    return path / "in" / "a.csv" if form == "zip/member" else path


def _counts(shown: str) -> tuple[int, int, list[str]]:
    """Return the rows that were read and kept, and how many of each label, as `show` says."""
    read = sum(int(n.replace(",", "")) for n in re.findall(r"([\d,]+) read =", shown))
    kept = sum(int(n.replace(",", "")) for n in re.findall(r"= ([\d,]+) kept", shown))
    return read, kept, re.findall(r"of them cut; (.*)", shown)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return the names of the columns text, label and another one, and rows, the last one blank."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=3, unique=True))
    label = TEXTS.filter(lambda text: text.strip() == text != "")
    labels = draw(st.lists(label, min_size=2, max_size=3, unique=True))
    texts = [f"the film number {i} was fine, they said" for i in range(N - 1)]
    rows = [(text, labels[i % len(labels)], f"u{i}x{i}") for i, text in enumerate(texts)]
    return names, [*rows, (draw(st.sampled_from(["", "  "])), labels[0], "none")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a name for a shell, a glob and an interpolation to trip over."""
    path = tmp_path / "in $HOME; [0] ${y}"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=1,
    phases=[Phase.generate],  # an example is a whole file and says enough; shrinking is slow
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
@given(stem=st.sampled_from(STEMS), table=tables(), is_asked=st.booleans())
def test_the_printed_commands_read_what_was_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], form: str, stem: str, table, is_asked: bool
) -> None:
    names, rows = table
    path = _written(folder, form, stem, names, rows)
    asked = [] if form in TYPED else ["--header"]
    if is_asked or "text" in names[1]:  # no label is looked for in a column that is called a text
        asked += [f"--text={names[0] or 'column_1'}", f"--label={names[1] or 'column_2'}"]
    out = "my o'ut $HOME"
    assert main(["tasks", "inspect", f"./{path.relative_to(folder)}", "--out", out, *asked]) == 0
    printed = capsys.readouterr().out
    assert f"a run keeps {N - 1} of {N} rows" in printed
    look, run = [line.partition(": ")[2] for line in printed.splitlines()[-2:]]
    assert main(shlex.split(look)[1:]) == 0
    read, kept, counts = _counts(capsys.readouterr().out)
    assert (read, kept) == (N, N - 1)
    expected = Counter(label for _, label, _ in rows[:-1])
    found = Counter[str]()
    for line in counts:
        for label in expected:
            found[label] += int(re.findall(re.escape(repr(label)) + r" (\d+)(?:,|$)", line)[0])
    assert found == expected
    assert shlex.split(run)[:4] == ["task-stream", "run", "--config-dir", out]


@pytest.mark.parametrize(
    ("content", "given", "kept"),
    [
        ("the lamp \u0142 <i>;<a|b>", ["--encoding", "cp1250", "--no-header"], N),
        ("the lamp <i> ~ <a|b>", ["--delimiter", " ~ ", "--no-header"], N),
        ("calm<i>,<calm|odd>", ["--header", "--text", "calm0", "--label", "calm"], N - 1),
        ("'the lamp, <i>',<a|b>", ["--quote", "'", "--quoting", "--no-header"], N),
        ("# a note <i>\nthe lamp <i>,<a|b>", ["--comment", "#", "--no-header"], N),
        ("the lamp <i>,<a|b|NIL>", ["--null-value", "NIL", "--no-header"], 40),
        ("<i>,the lamp <i>,<a|b>,<x|y>", ["--label", "column_4", "--no-header"], N),
    ],
)
def test_what_was_given_is_written(
    tmp_path: Path, monkeypatch, capsys, content: str, given: list[str], kept: int
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "\n".join(filled(content, row) for row in range(N))
    Path("mine.csv").write_text(text, encoding="cp1250")
    assert main(["tasks", "inspect", "mine.csv", "--out", "o", *given]) == 0
    assert f"a run keeps {kept} of" in capsys.readouterr().out
    spec = read_task(Path("o/task/mine.yaml").read_text(encoding="utf-8"), "mine")
    loaded = load_task(FilesData(root=None), "mine", spec, tmp_path)
    assert sum(map(len, loaded.rows.values())) == kept
