"""What is recorded of a load from the hub, and the Arrow files that it leaves."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from stream.config.source import HubSource
from stream.data.sources.hub import read_hub, record_path
from stream.data.sources.hub_record import (
    HubRecord,
    SplitRecord,
    read_arrow,
    read_hub_record,
    rows_digest,
    write_hub_record,
)
from stream.errors import UserError

COLA = {"id": "nyu-mll/glue", "config": "cola", "splits": {"train": "train", "test": "validation"}}


def arrow(path: Path, table: pa.Table, features: dict | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = table.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})} if features else None
    )
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    return path


def test_rows_that_are_not_the_recorded_ones_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = HubSource(**{**COLA, "splits": {"train": "train"}})
    file = arrow(tmp_path / "data" / "train.arrow", pa.table({"text": ["a"]}))
    split = SplitRecord.of("train", [file], pa.table({"text": ["a"]}), tmp_path)
    record = HubRecord("nyu-mll/glue", "cola", None, "c0ffee", {"train": split})
    path = record_path("cola", source, tmp_path)
    write_hub_record(path, record)
    read_hub("cola", source, tmp_path, offline=True)
    assert caplog.messages == []

    arrow(file, pa.table({"text": ["b"]}))
    tables = read_hub("cola", source, tmp_path, offline=True)
    found = tables["train"].provenance["fingerprint"]
    [line] = caplog.messages
    assert split.sha256[:12] in line
    assert found[:12] in line
    assert read_hub_record(path) == record  # what was first stays on record

    file.write_bytes(b"garbage")
    with pytest.raises(UserError, match=r"train\.arrow"):
        read_hub("cola", source, tmp_path, offline=True)
    path.write_text("[]")
    with pytest.raises(UserError, match="delete it"):
        read_hub("cola", source, tmp_path, offline=True)


def test_the_way_of_asking_is_in_the_records_name(tmp_path: Path) -> None:
    ways = [
        HubSource(**COLA),
        HubSource(**{**COLA, "config": "sst2"}),
        HubSource(**{**COLA, "revision": "v1"}),
        HubSource(**{**COLA, "splits": {"train": "train"}}),
    ]
    assert len({record_path("cola", way, tmp_path) for way in ways}) == len(ways)


def test_nested_columns_are_flat_and_labels_named_in_them(tmp_path: Path) -> None:
    inner = pa.array([{"label": 1, "text": "a"}, {"label": -1, "text": None}, None])
    features = {
        "answer": {
            "label": {"names": ["no", "yes"], "_type": "ClassLabel"},
            "text": {"dtype": "string", "_type": "Value"},
        },
        "tags": {"feature": {"names": ["x"], "_type": "ClassLabel"}, "_type": "List"},
    }
    table = pa.table({"answer": inner, "tags": [[0], [], None]})
    flat = read_arrow([arrow(tmp_path / "nested.arrow", table, features)])
    assert flat.to_pydict() == {
        "answer.label": ["yes", None, None],
        "answer.text": ["a", None, None],
        "tags": [[0], [], None],
    }


def test_a_label_number_without_a_name_is_an_error(tmp_path: Path) -> None:
    features = {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}
    file = arrow(tmp_path / "x.arrow", pa.table({"label": [2]}), features)
    with pytest.raises(UserError, match=r"x\.arrow"):
        read_arrow([file])


def test_the_hash_is_of_rows_not_of_their_storage() -> None:
    texts = ["", None, "é", "b" * 100] * 20_000
    whole = pa.table({"text": texts, "n": list(range(len(texts)))})
    pieces = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 70_001), whole.slice(70_008)])
    assert rows_digest(whole) == rows_digest(pieces)
    large = pieces.set_column(0, "text", pieces.column("text").cast(pa.large_string()))
    assert rows_digest(whole) == rows_digest(large)
    different = [
        pa.table({"text": ["ab", "c"]}),
        pa.table({"text": ["a", "bc"]}),
        pa.table({"text": ["bc", "a"]}),
        pa.table({"text": ["a", "bc", ""]}),
        pa.table({"text": ["a", "bc", None]}),
        pa.table({"other": ["a", "bc"]}),
        pa.table({"text": ["a"]}),
    ]
    assert len({rows_digest(table) for table in different}) == len(different)
