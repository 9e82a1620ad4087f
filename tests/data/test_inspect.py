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
from tests.data.test_inspect_choices import filled, written

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
    assert any(" other" in line for line in report(found))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": FILM}, "no column looks like a label"),
        ({"text": FILM[:1], "label": ["a"]}, "'label' has 1 different value, and a task needs two"),
        ({"text": FILM, "labels": [["a"], ["b", "c"]] * 20}, "several labels per row"),
        ({"doc": [[t, t] for t in FILM], "label": LABEL}, "'doc' holds lists or objects"),
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


def splits(tmp_path: Path, **files: str) -> Path:
    """Write files called after their splits, `_` for a dot; patterns as in test_inspect_choices."""
    folder = tmp_path / "task"
    folder.mkdir()
    for name, pattern in files.items():
        rows = [filled(pattern, row) for row in range(N)]
        header = "" if ";" in pattern else "text,label\n" if "," in pattern else "text\n"
        (folder / name.replace("_", ".")).write_text(header + "\n".join(rows))
    return folder


def loaded_of(found: Inspection, tmp_path: Path) -> dict[str, int]:
    """Return how many rows of each split a run loads by the YAML."""
    spec = read_task(found.yaml, "mine")
    loaded = load_task(FilesData(root="."), "mine", spec, tmp_path)
    return {split: len(loaded.rows[split]) for split in ("train", "validation", "test")}


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["train_csv", "test_csv", "README_md"], {"train": "train.csv", "test": "test.csv"}),
        (
            ["my-Train_txt", "my-dev_txt", "my-test_txt"],
            {"train": "my-Train.txt", "validation": "my-dev.txt", "test": "my-test.txt"},
        ),
        (
            ["train-0-of-2_csv", "train-1-of-2_csv", "valid-0-of-1_csv"],
            {"train": "train-*-of-*.csv", "validation": "valid-0-of-1.csv"},
        ),
        (["a_csv", "b_csv"], {"all": "task"}),
        (["train_csv"], {"all": "task"}),
    ],
)
def test_splits_are_told_by_the_names_of_files(tmp_path: Path, files, names) -> None:
    rows = {name: f"{name[-5]} <t>,<a|b|c>" for name in files}
    found = inspect_file(splits(tmp_path, **rows), "mine", Wanted())
    assert found.spec.files.splits == names
    assert sum(loaded_of(found, tmp_path).values()) == N * sum("md" not in name for name in files)
    assert all(name in "\n".join(report(found)) for name in names.values())


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("<t>", "it has no column 'label'"),
        ("<t>,", "its column 'label' is blank"),
        ("<t>,-1", "it has none of the labels of train"),
    ],
)
def test_a_test_set_without_labels_is_left_out_and_said(tmp_path: Path, pattern, why) -> None:
    folder = splits(tmp_path, train_csv="<s>,<a|b>", test_csv=pattern)
    found = inspect_file(folder, "mine", Wanted())
    assert f"test: test.csv is left out: {why}" in report(found)
    assert found.spec.labels == ["a", "b"]
    assert all(loaded_of(found, tmp_path).values())


def test_labels_of_every_split_are_labels(tmp_path: Path) -> None:
    folder = splits(tmp_path, train_csv="<s>,<a|b>", test_csv="<t>,<b|c>")
    assert inspect_file(folder, "mine", Wanted()).spec.labels == ["a", "b", "c"]


def test_splits_of_several_tasks_are_refused_in_one_line(tmp_path: Path) -> None:
    files = dict.fromkeys(["a-train_csv", "a-test_csv", "b-train_csv", "b-test_csv"], "<s>,<a|b>")
    with pytest.raises(UserError, match=r"splits of 2 tasks \(a-train.csv, b-train.csv\)"):
        inspect_file(splits(tmp_path, **files), "mine", Wanted())


def test_splits_in_an_archive_and_beside_a_file(tmp_path: Path) -> None:
    folder = splits(tmp_path, train_csv="<s>,<a|b>", test_csv="<t>,<b|a>")
    contents = {f"in/{path.name}": path.read_bytes() for path in folder.iterdir()}
    (tmp_path / "x.zip").write_bytes(zipped(contents))
    found = inspect_file(tmp_path / "x.zip", "mine", Wanted())
    assert found.spec.files.splits == {"train": "x.zip/in/train.csv", "test": "x.zip/in/test.csv"}
    assert loaded_of(found, tmp_path)["test"] == N
    lines = "\n".join(report(inspect_file(folder / "train.csv", "mine", Wanted())))
    assert f"task-stream tasks inspect {folder}" in lines
    assert "test.csv beside it" in lines


@pytest.mark.parametrize(
    ("header", "pattern", "wanted", "line"),
    [
        ("what kind of?,a ${b}", "<t>,<x|y>", {}, "is the first line a header? no other row has"),
        ("text,label", "<t>,<a|label>", {}, "is the first line a row? 'label' is a label of"),
        ("text,label", "<t>,<a|b|->", {}, "is '-' a label? exclude: in the YAML"),
        ("text,label", "<t>,<a|b|B>", {}, "look alike, each a class of its own: 'B', 'b'"),
        ("text,label", "<t>,<a|caf\u00e9|cafe\u0301>", {},
         "a class of its own: 'cafe\u0301', 'caf\u00e9'"),
        ("text,label", "<t>,<1|1.0|01|2>", {}, "a class of its own: '01', '1', '1.0'"),
        ("text,label", "<t>,k<0|1|2|3|4|5|6|7|8|9>", {}, "10 labels with fewer than 10 rows: 'k0', "
         "'k1', 'k2', 'k3', 'k4' and 5 more"),
        ("text,tags", "<t>,<a;b|b|a>", {"label": "tags"}, "'tags' joins labels by ';': each"),
        ("", "<t>,<u>,<0|1>", {}, "both as a pair: --text column_1 --text column_2"),
        ("", '{"text": "<t>", "label": "<a|b>", "answer": "<accept|reject>"}', {},
         "20 rows kept that 'answer' does not accept"),
        ("text,label", "<|a lamp |the lamp ><|on|off >,<a|b>", {}, "with nothing in 'text'"),
        ("text,rating", "<t>,<1|2|3|4|5>", {}, "labels: 5 whole numbers, taken as classes; "
         "--target score makes them scores (regression)"),
    ],
)  # fmt: skip
def test_what_the_report_says(tmp_path: Path, header: str, pattern: str, wanted, line: str) -> None:
    lines = list(report(inspect_file(written(tmp_path, header, pattern), "mine", Wanted(**wanted))))
    assert sum(line in found for found in lines) == 1


def test_the_report_is_aligned_and_no_name_is_cut(tmp_path: Path) -> None:
    names = [f"a long name of a column that says what it is {i}" for i in range(40)]
    columns = {name: [f"{i} {name}" for i in range(N)] for name in names}
    lines = list(report(inspected(tmp_path, columns | {"text": FILM, "label": LABEL})))
    table = [line for line in lines if line.startswith("  ")]
    start = table[0].index("holds")
    rows = [line for line in table if " text  " in line[start - 2 :]]
    assert len(rows) == 25
    assert {line[start : start + 6] for line in rows} == {"text  "}
    assert "and 17 more columns" in lines[27]
    assert max(map(len, lines)) < 140
