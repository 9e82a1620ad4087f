"""The `files` source: Parquet files ``root/FOLDER/{train,validation,test}.parquet``."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stream.config import FilesData
from stream.errors import UserError, require
from stream.task_spec import TaskSpec
from stream.tasks.task import Rows


def read_split(data: FilesData, name: str, spec: TaskSpec, split: str) -> Rows:
    """Read one split of one task.

    Raises:
        UserError: a missing root or file, a missing column, an empty split, a missing text or
            label, a label that is not the task's; each says what was looked for and found.
    """
    root = Path(data.root).expanduser()
    require(root.is_dir(), f"data.root={data.root!r} is not a folder (looked in {root.resolve()})")
    path = root / spec.files.folder / f"{split}.parquet"
    require(path.is_file(), f"task {name!r}: no file {path}")
    try:
        schema = pq.read_schema(path)
        columns = [*spec.files.text, spec.files.label]
        for column in columns:
            require(
                column in schema.names,
                f"task {name!r}: {path} has no column {column!r}; it has {schema.names}",
            )
        table = pq.read_table(path, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"task {name!r}: cannot read {path} as Parquet: {error}") from error
    require(table.num_rows > 0, f"task {name!r}: {path} has no rows")
    texts = [_texts(table.column(column), column, path) for column in spec.files.text]
    labels = _labels(table.column(spec.files.label), spec, path)
    return Rows(tuple(zip(*texts, strict=True)), labels)


def _texts(column: pa.ChunkedArray, name: str, path: Path) -> list[str]:
    """Return a text column as strings."""
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    require(is_text, f"{path}: column {name!r} holds {kind}, not text")
    values = column.to_pylist()
    for row, value in enumerate(values):
        require(value is not None, f"{path}: row {row} has no text in column {name!r}")
    return values


def _labels(column: pa.ChunkedArray, spec: TaskSpec, path: Path) -> np.ndarray:
    """Return labels as class indices or scores; label names are looked up in the task's list."""
    values = column.to_pylist()
    for row, value in enumerate(values):
        require(value is not None, f"{path}: row {row} has no label")
    if spec.labels is None:
        return _scores(values, spec, path)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        known = {label: index for index, label in enumerate(spec.labels)}
    else:
        known = {index: index for index in range(len(spec.labels))}
    for row, value in enumerate(values):
        require(
            value in known and type(value) in (int, str),  # True and 1.0 are not 1
            f"{path}: row {row} has label {value!r}, which is not one of the task's: "
            + ", ".join(f"{index} {label!r}" for index, label in enumerate(spec.labels)),
        )
    return np.array([known[value] for value in values], dtype=np.int64)


def _scores(values: list, spec: TaskSpec, path: Path) -> np.ndarray:
    """Return regression labels, all within the task's range."""
    low, high = spec.score_range or (0.0, 0.0)
    for row, value in enumerate(values):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        require(
            is_number and low <= value <= high,
            f"{path}: row {row} has score {value!r}, not a number in [{low}, {high}]",
        )
    return np.array(values, dtype=np.float64)
