"""Sources: the files as they are, one clear error otherwise; generated twins of every task."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config import FilesData, GeneratedData
from stream.errors import UserError
from stream.task_spec import FilesColumns, TaskSpec
from stream.tasks import source_files, source_generated

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
REAL = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no real data at {SHARED}")


def spec(**changes) -> TaskSpec:
    values = {
        "title": "film",
        "kind": "single",
        "labels": ["bad", "good"],
        "metric": "accuracy",
        "source": "made",
        "files": FilesColumns("film", ["text"]),
    }
    return TaskSpec(**{**values, **changes})


def write(root: Path, columns: dict, split: str = "train") -> FilesData:
    (root / "film").mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), root / "film" / f"{split}.parquet")
    return FilesData(root=str(root))


def test_reads_texts_and_labels_as_they_are(tmp_path: Path) -> None:
    texts = ["fine", "", "N/A", "null", " two\r\nlines ", "naïve ☃"]
    data = write(tmp_path, {"label": [1, 0, 1, 0, 1, 0], "text": texts, "other": [None] * 6})
    rows = source_files.read_split(data, "film", spec(), "train")
    assert [t for (t,) in rows.texts] == texts
    assert rows.labels.tolist() == [1, 0, 1, 0, 1, 0]


def test_label_names_are_looked_up(tmp_path: Path) -> None:
    data = write(tmp_path, {"text": ["a", "b"], "label": ["good", "bad"]})
    assert source_files.read_split(data, "film", spec(), "train").labels.tolist() == [1, 0]


def test_regression_and_pairs(tmp_path: Path) -> None:
    pair = spec(
        kind="pair",
        labels=None,
        score_range=[0.0, 5.0],
        metric="spearman",
        files=FilesColumns("film", ["a", "b"], "score"),
    )
    data = write(tmp_path, {"a": ["x"], "b": ["y"], "score": [4.5]})
    rows = source_files.read_split(data, "film", pair, "train")
    assert rows.texts == (("x", "y"),)
    assert rows.labels.tolist() == [4.5]
    data = write(tmp_path, {"a": ["x"], "b": ["y"], "score": [5.5]})
    with pytest.raises(UserError, match=r"row 0 has score 5.5, not a number in \[0.0, 5.0\]"):
        source_files.read_split(data, "film", pair, "train")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"text": ["a"], "label": [2]},
            "row 0 has label 2, which is not one of the task's: 0 'bad'",
        ),
        ({"text": ["a"], "label": ["Good"]}, "row 0 has label 'Good'"),
        ({"text": ["a"], "label": [True]}, "row 0 has label True"),
        ({"text": ["a"], "label": [1.0]}, "row 0 has label 1.0"),
        ({"text": ["a", None], "label": [1, 1]}, "row 1 has no text in column 'text'"),
        ({"text": ["a", "b"], "label": [1, None]}, "row 1 has no label"),
        ({"txt": ["a"], "label": [1]}, r"has no column 'text'; it has \['txt', 'label'\]"),
        ({"text": [3], "label": [1]}, "column 'text' holds int64, not text"),
        ({"text": pa.array([], pa.string()), "label": pa.array([], pa.int64())}, "has no rows"),
    ],
)
def test_faults_are_named(tmp_path: Path, columns: dict, message: str) -> None:
    data = write(tmp_path, columns)
    with pytest.raises(UserError, match=message):
        source_files.read_split(data, "film", spec(), "train")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        source_files.read_split(FilesData(root=str(tmp_path / "no")), "film", spec(), "train")
    with pytest.raises(UserError, match=r"no file .*film/train.parquet"):
        source_files.read_split(FilesData(root=str(tmp_path)), "film", spec(), "train")
    (tmp_path / "film").mkdir()
    (tmp_path / "film" / "train.parquet").write_text("<html>not found</html>")
    with pytest.raises(UserError, match=r"cannot read .* as Parquet"):
        source_files.read_split(FilesData(root=str(tmp_path)), "film", spec(), "train")


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": None},
        {"labels": ["one"]},
        {"labels": ["a", "a"]},
        {"kind": "triple"},
        {"metric": "spearman"},
        {"files": FilesColumns("film", ["a", "b"])},
        {"labels": None, "score_range": [5.0, 0.0], "metric": "spearman"},
    ],
)
def test_contradictory_specifications_are_refused(wrong: dict) -> None:
    with pytest.raises(UserError):
        spec(**wrong)


def test_generated_rows_have_the_shape_of_the_task() -> None:
    data = GeneratedData(train=40, validation=20, test=20)
    rows = source_generated.read_split(data, "film", spec(), "train")
    again = source_generated.read_split(data, "film", spec(), "train")
    assert len(rows) == 40
    assert set(rows.labels) == {0, 1}
    assert rows.texts == again.texts
    assert rows.digest() == again.digest()
    other = source_generated.read_split(GeneratedData(seed=1), "film", spec(), "train")
    assert other.texts[:40] != rows.texts


@REAL
def test_every_real_task_loads_and_agrees_with_its_yaml(all_specs: dict[str, TaskSpec]) -> None:
    published = json.loads((SHARED / "tasks.json").read_text())
    assert set(published) == set(all_specs)
    for name, facts in published.items():
        task = all_specs[name]
        assert (task.kind, task.labels, task.metric) == (
            facts["kind"],
            facts["labels"],
            facts["metric"],
        )
        assert task.files.text == facts["columns"]
        for split, rows in facts["rows"].items():
            found = source_files.read_split(FilesData(root=str(SHARED)), name, task, split)
            assert len(found) == rows
            if task.labels is not None:
                assert set(np.unique(found.labels)) == set(range(len(task.labels)))
