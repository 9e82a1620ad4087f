"""What a source hands over before labels are looked at: columns, and where they came from."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Ragged:
    """A row with more or fewer fields than the header: its line in the file, from 1."""

    line: int
    expected: int
    found: int


@dataclass(frozen=True)
class SourceTable:
    """The rows of one split (or of a file without splits) as they stand in the source.

    Attributes:
        table: the columns; text formats give strings (never null: an empty field is ""), Parquet,
            JSON and the hub give their own types, with nulls.
        where: path or hub id, for messages.
        lines: int64 [N]; line on which each row starts, from 1, or its row number from 1.
        ragged: rows that are not in ``table`` because their number of fields is wrong.
        dialect: in words, how the bytes were read, such as ``utf-8, comma, quoted, header``.
        provenance: more facts for the record, such as a resolved hub commit.
    """

    table: pa.Table
    where: str
    lines: np.ndarray
    ragged: tuple[Ragged, ...] = ()
    dialect: str = ""
    provenance: dict[str, str] = field(default_factory=dict)
