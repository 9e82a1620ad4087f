"""Inspecting a file: which columns are chosen and why, and that what is written loads."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config.data import FilesData
from stream.config.task_yaml import read_task
from stream.data.inspecting.inspection import Inspection, Wanted, inspect_file
from stream.data.inspecting.report import report
from stream.data.loading import load_task
from stream.errors import UserError
from tests.data.small_files import zipped

N = 40
FILM = [f"the film number {i} is fine" for i in range(N)]
LABEL = ["ab"[i % 2] for i in range(N)]
SPARSE = [""] * (N - 1)
SENTENCES, STRINGS = ["sentence1", "sentence2"], ["#1 String", "#2 String"]
URLS = [f"https://example.org/a/long/way/to/the/film/{i}" for i in range(N)]


def inspected(tmp_path: Path, columns: dict[str, list], **wanted) -> Inspection:
    """Inspect columns as JSON Lines."""
    path = tmp_path / "a.jsonl"
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return inspect_file(path, "mine", Wanted(**wanted))


@pytest.mark.parametrize(
    ("columns", "text", "label", "kind"),
    [
        ({"sentence1": FILM, "sentence2": FILM[::-1], "label": LABEL}, SENTENCES, "label", "pair"),
        ({"#1 String": FILM, "#2 String": FILM, "Quality": LABEL}, STRINGS, "Quality", "pair"),
        ({"url": URLS, "title": FILM, "label": LABEL}, ["title"], "label", "single"),
        ({"uuid": URLS, "text": ["short"] * 9 + FILM[9:], "y": LABEL}, ["text"], "y", "single"),
        ({"opinion": LABEL, "tweet": FILM}, ["tweet"], "opinion", "single"),
        ({"html": ["<p> page " * 9, *SPARSE], "b": FILM, "label": LABEL}, ["b"], "label", "single"),
        ({"text": FILM, "mood": LABEL, "_golden": [1, 0] * 20}, ["text"], "mood", "single"),
        ({"text": FILM, "Tags": [*"xy", *SPARSE[1:]], "Part": LABEL}, ["text"], "Part", "single"),
        ({"text": FILM, "label1": LABEL, "gold_label": LABEL}, ["text"], "gold_label", "single"),
    ],
)  # fmt: skip
def test_names_come_first_then_shape(tmp_path: Path, columns, text, label, kind) -> None:
    found = inspected(tmp_path, columns)
    assert (found.text.names, found.label.names) == (text, [label])
    assert found.spec.kind == kind
    assert found.spec.metric == "accuracy"


def test_a_pair_is_in_reading_order_and_the_runner_up_is_said(tmp_path: Path) -> None:
    columns = {"hypothesis": FILM, "premise": FILM, "summary": FILM, "label": LABEL, "topic": LABEL}
    found = inspected(tmp_path, columns)
    assert found.text.names == ["premise", "hypothesis"]
    lines = "\n".join(report(found))
    assert "text: 'premise' and 'hypothesis', a pair by their names (next: 'summary')" in lines
    assert "label: 'label', by its name (next: 'topic')" in lines


@pytest.mark.parametrize(
    ("name", "values", "wanted", "target", "said"),
    [
        (
            "score",
            [i / 8 for i in range(N)],
            None,
            [0, 5],
            "scores from 0 to 5 (regression); --target",
        ),
        (
            "stars",
            [i % 5 + 1 for i in range(N)],
            None,
            "12345",
            "5 whole numbers, taken as classes",
        ),
        ("stars", [i % 5 + 1 for i in range(N)], "score", [1, 5], "scores from 1 to 5"),
        ("similarity", [*range(N - 1), None], None, [0, N - 2], "regression"),
        ("label", [i % 12 for i in range(N)], None, [str(i) for i in range(12)], "12 whole"),
        ("is_spam", [i % 2 == 0 for i in range(N)], None, ["False", "True"], "classes"),
        ("score", ["n/a", *(str(i / 8) for i in range(1, N))], None, [0, 5], "regression"),
    ],
)
def test_numbers_are_scores_or_classes(tmp_path: Path, name, values, wanted, target, said) -> None:
    found = inspected(tmp_path, {"review": FILM, name: values}, target=wanted)
    assert said in "\n".join(report(found))
    classes = found.spec.score_range is None
    assert (found.spec.labels if classes else found.spec.score_range) == list(target)
    assert found.spec.metric == ("accuracy" if classes else "spearman")
    kept = sum(len(rows) for rows in found.loaded.rows.values())
    assert kept == sum(value not in (None, "n/a") for value in values)


def as_parquet(tmp_path: Path, **columns: pa.Array) -> Inspection:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return inspect_file(path, "mine", Wanted())


@pytest.mark.parametrize(
    "other",
    [
        pa.nulls(N),
        pa.array([None] * N, pa.string()),
        pa.array(LABEL).dictionary_encode(),
        pa.array(FILM, pa.string_view()),
        pa.array([b"\xff\xfe"] * N),
        pa.array([{"a": [1]}] * N),
        pa.array([["x", "y"]] * N),
        pa.array([float("nan")] * N),
        pa.array([0] * N, pa.timestamp("s")),
    ],
    ids=lambda array: str(array.type)[:12],
)
def test_a_column_of_any_type_may_stand_beside(tmp_path: Path, other: pa.Array) -> None:
    found = as_parquet(tmp_path, other=other, text=pa.array(FILM), label=pa.array(LABEL))
    assert (found.text.names, found.label.names) == (["text"], ["label"])
    assert any(" other " in line for line in report(found))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": FILM}, "no column looks like a label"),
        ({"text": FILM[:1], "label": ["a"]}, "'label' has 1 different value, and a task needs two"),
        ({"text": FILM, "labels": [["a"], ["b", "c"]] * 20}, "several labels per row"),
        ({"doc": [{"text": t} for t in FILM], "label": LABEL}, "'doc' holds lists or objects"),
        ({"url": URLS, "label": LABEL}, "no column looks like text"),
    ],
)
def test_what_is_no_task_is_one_line(tmp_path: Path, columns, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        inspected(tmp_path, columns)
    assert "\n" not in str(caught.value)


def test_a_member_of_an_archive_and_a_folder_per_class(tmp_path: Path) -> None:
    rows = "\n".join(f"{t}\t{c}" for t, c in zip(FILM, LABEL, strict=True))
    (tmp_path / "x.zip").write_bytes(zipped({"in/a.tsv": f"text\tlabel\n{rows}", "b.tsv": "x"}))
    for i, text in enumerate(FILM):
        (tmp_path / "classes" / LABEL[i]).mkdir(parents=True, exist_ok=True)
        (tmp_path / "classes" / LABEL[i] / f"{i}.txt").write_text(text)
    for path in (tmp_path / "x.zip" / "in" / "a.tsv", tmp_path / "classes"):
        spec = read_task(inspect_file(path, "mine", Wanted()).yaml, "mine")
        loaded = load_task(FilesData(root="."), "mine", spec, tmp_path)
        assert sum(map(len, loaded.rows.values())) == N


def test_rows_without_the_headers_fields_are_said_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{t},{c}" for t, c in zip(FILM, LABEL, strict=True)]
    path.write_text("\n".join(["text,label", *rows, "one,two,three"]))
    lines = "\n".join(report(inspect_file(path, "mine", Wanted())))
    assert f"1 row without the 2 fields of the header, left out: line {N + 2} (3)" in lines
    assert f"dropped: 1 ragged (line {N + 2})" in lines
