"""The tasks of the continual-learning streams, in the forms in which others publish them.

Each row's text holds the name of its label, so a label that is read as another one shows.
"""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config.data import FilesData, HubData
from stream.config.source import FilesSource, HubSource
from stream.config.task import TaskSpec
from stream.data.loading import load_task
from stream.data.sources.hub import PARQUET_BRANCH
from stream.data.task import LoadedTask
from stream.errors import UserError
from tests.data.hub_process import loaded_from
from tests.data.hub_server import Hub

ON_HUB = [
    *("ag_news", "yelp_review_full", "dbpedia_14", "yahoo_answers_topics", "imdb", "boolq"),
    *("multirc", "wic", "cb", "copa", "clinc150", "banking77"),
]
ROWS = 150
TWO_STARS = {"2 stars": "2 star"}  # as the hub has it


def rows_of(spec: TaskSpec, columns: list[str], number: int, start: int) -> list[dict[str, str]]:
    """Return texts that name the label, by column, and the label; every class occurs."""
    names = spec.labels or []
    labels = [names[n % len(names)] for n in range(max(number, len(names)))]
    return [
        {name: f"<{label}> {name} {start + n}" for name in columns} | {"label": label}
        for n, label in enumerate(labels)
    ]


def parquet(rows: list[dict[str, str]], label: str, names: list[str]) -> bytes:
    """Return rows as the hub stores them: numbers, and the names of the classes in the schema."""
    texts = [name for name in rows[0] if name != "label"]
    features: dict[str, dict] = {name: {"dtype": "string", "_type": "Value"} for name in texts}
    columns: dict = {name: [row[name] for row in rows] for name in texts}
    features[label] = {"names": names, "_type": "ClassLabel"}
    columns[label] = pa.array([names.index(row["label"]) for row in rows], pa.int64())
    stated = {"huggingface": json.dumps({"info": {"features": features}})}
    file = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(stated), file)
    return file.getvalue()


def hub_files(spec: TaskSpec) -> dict[str, bytes]:
    """Return the files of a data set as its page on the hub has them."""
    source, names = spec.hub, list(spec.labels or [])
    if spec.title == "CLINC150":  # in another order, out-of-scope texts in between
        names = [*names[7:42], "oos", *names[42:], *names[:7]]
    names = [TWO_STARS.get(name, name) if spec.title == "Yelp" else name for name in names]
    columns = [column for of_field in source.text_columns for column in of_field]
    files, configured = {}, []
    for at, split in enumerate(source.splits.values()):
        rows = rows_of(spec, columns, ROWS, 1000 * at)
        if spec.title == "Yelp":
            rows = [row | {"label": TWO_STARS.get(row["label"], row["label"])} for row in rows]
        if spec.title == "CLINC150":
            rows.append(rows[0] | {"text": "out of scope", "label": "oos"})
        if spec.title == "Yahoo":
            rows[0]["question_content"] = ""
        path = f"{source.config}/{split}/0000.parquet"
        files[path] = parquet(rows, source.label, names)
        configured.append(f"  - {{split: {split}, path: {path}}}")
    if source.revision == PARQUET_BRANCH:
        return files
    lines = ["---", "configs:", f"- config_name: {source.config}", "  data_files:", *configured]
    return {"README.md": "\n".join([*lines, "---", ""]).encode()} | files


def check(spec: TaskSpec, loaded: LoadedTask, dropped: dict[str, int] | None = None) -> None:
    """Every row has its own label and all its fields; all that is dropped is known."""
    names = spec.labels or []
    for rows in loaded.rows.values():
        for texts, label in zip(rows.texts, rows.labels, strict=True):
            assert len(texts) == spec.num_fields
            assert all(f"<{names[label]}>" in text for text in texts), (texts, label)
    lost: dict[str, int] = {}
    for split, account in loaded.accounts.items():
        if account.dropped:
            assert set(account.dropped) == {"excluded_label"}
            lost[split] = account.dropped["excluded_label"]
    assert lost == (dropped or {})


@pytest.mark.slow
def test_definitions_of_the_hub(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    """Against rows of the hub's columns, class names and places; in one process of its own."""
    specs = {
        name: replace(all_specs[name], hub=replace(all_specs[name].hub, rows={})) for name in ON_HUB
    }
    hub = Hub()
    by_place: dict[tuple[str, str], dict[str, bytes]] = {}
    for spec in specs.values():
        place = str(spec.hub.id), spec.hub.revision or "main"
        by_place.setdefault(place, {}).update(hub_files(spec))
    for place, files in by_place.items():
        hub.commit(*place, files)
    loaded = loaded_from(hub, specs, tmp_path)
    assert list(loaded) == ON_HUB
    for name, task in loaded.items():
        oos: dict[str, int] = {"train": 1, "validation": 1, "test": 1}
        check(specs[name], task, oos if name == "clinc150" else {})
    texts = [text for (text,) in loaded["yahoo_answers_topics"].rows["test"].texts]
    society = "<Society & Culture>"
    assert f"{society} question_title 1000 {society} best_answer 1000" in texts
    assert loaded["wic"].rows["test"].texts[1][0] == "<True> word 1001"


def published(spec: TaskSpec, folder: Path) -> None:
    """Write a task's files as they are published, where its YAML looks for them."""
    source = spec.original
    columns = [column for of_field in source.text_columns for column in of_field]
    for at, (split, pattern) in enumerate(source.splits.items()):
        path = folder / "any" / pattern.removeprefix("**/")
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = rows_of(spec, columns, ROWS, 1000 * at)
        if spec.title == "IMDB":
            for n, row in enumerate(rows):
                (path / row["label"]).mkdir(parents=True, exist_ok=True)
                (path / row["label"] / f"{n}_7.txt").write_text(row["text"])
            if split == "train":
                (path / "unsup").mkdir()
                (path / "unsup" / "0_0.txt").write_text("no label")
            (path / "urls_pos.txt").write_text("not a row")
        elif path.suffix == ".jsonl":
            as_truth = {"False": False, "True": True, "choice1": 0, "choice2": 1}
            values = [r | {"idx": n, "label": as_truth.get(r["label"], r["label"])}
                      for n, r in enumerate(rows)]  # fmt: skip
            path.write_text("".join(json.dumps(row) + "\n" for row in values))
        else:
            path.write_text(as_csv(spec, rows))


def as_csv(spec: TaskSpec, rows: list[dict[str, str]]) -> str:
    """Return rows as CSV: with a header, or with the number of the class, from 1, before texts."""
    file = io.StringIO()
    texts = [name for name in rows[0] if name != "label"]
    if spec.original.dialect.header:
        writer = csv.writer(file)
        writer.writerow([*texts, spec.original.label])
        writer.writerows([*(row[name] for name in texts), row["label"]] for row in rows)
    else:
        numbers = {label: str(n) for n, label in enumerate(spec.labels or [], 1)}
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerows([numbers[row["label"]], *(row[name] for name in texts)] for row in rows)
    return file.getvalue()


def test_files_as_they_are_published(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    """CSV without a header and with class numbers from 1, JSON Lines, a folder a class."""
    streams = [*ON_HUB, "amazon_review_full"]
    names = [name for name in streams if all_specs[name].original.text]
    assert set(streams) - set(names) == {"multirc", "clinc150"}  # nested, and splits in one file
    for name in names:
        spec = all_specs[name]
        spec = replace(spec, original=replace(spec.original, rows={}))
        published(spec, tmp_path / name)
        loaded = load_task(FilesData(root=str(tmp_path / name)), name, spec, tmp_path)
        test, train = loaded.accounts["test"], loaded.accounts["train"]
        number = max(ROWS, len(spec.labels or []))
        assert (test.read, test.kept) == (number, number)
        unlabelled = int(name == "imdb")  # in the folder "unsup" of its train folder
        assert train.read + loaded.accounts["validation"].read == number + unlabelled
        excluded = {s: a.dropped["excluded_label"] for s, a in loaded.accounts.items() if a.dropped}
        assert sum(excluded.values()) == unlabelled
        check(spec, loaded, excluded)


def test_splits_that_are_made_keep_passages_together(all_specs: dict[str, TaskSpec]) -> None:
    for name, column in (("boolq", "passage"), ("multirc", "paragraph"), ("wic", "word")):
        assert all_specs[name].hub.group == column


def test_amazon_is_not_on_the_hub_and_says_what_to_do(
    all_specs: dict[str, TaskSpec], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"amazon_review_full_csv/train\.csv") as found:
        load_task(HubData(), "amazon_review_full", all_specs["amazon_review_full"], tmp_path)
    assert "use data=files or data=generated" in str(found.value)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"one\ntwo\r\nthree", "one\ntwo\nthree"),
        (r'the \"best\" \""one\""', 'the "best" "one"'),
        (r"caf\u00e9 \ud83d\ude00 \ud83d.", "café 😀 �."),
        (r"a \ lone one, C:\temp", r"a \ lone one, C:\temp"),
    ],
)
def test_escapes_are_undone_where_the_task_says_so(tmp_path: Path, text: str, plain: str) -> None:
    rows = [{"title": "", "text": f"{text} {n}", "label": n % 2} for n in range(ROWS)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    where = {"folder": str(tmp_path), "splits": {"all": "a.jsonl"}, "text": [["title", "text"]]}
    for unescape, wanted in ((True, plain), (False, text)):
        spec = TaskSpec(
            title="t", kind="single", labels=["a", "b"], metric="accuracy", source="made",
            files=FilesSource(**where, unescape=unescape), hub=HubSource(),
        )  # fmt: skip
        loaded = load_task(FilesData(root="."), "t", spec, tmp_path)
        found = {t.rpartition(" ")[0] for rows in loaded.rows.values() for (t,) in rows.texts}
        assert found == {wanted}
