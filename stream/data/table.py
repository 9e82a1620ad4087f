"""What a source hands over before labels are looked at, and the account of what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

LINES_SHOWN = 5


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


@dataclass
class Account:
    """What became of the rows of one split.

    Attributes:
        where: file or hub id.
        dialect: how the bytes were read, in words.
        read: rows of the source, ragged ones included.
        kept: rows of the task.
        dropped: rows by reason.
        lines: the first lines by reason.
        repeated: rows whose text stands earlier in the split with the same label.
        contradicting: rows whose text stands earlier in the split with another label.
        provenance: more facts, such as a hub commit.
    """

    where: str
    dialect: str = ""
    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    repeated: int = 0
    contradicting: int = 0
    provenance: dict[str, str] = field(default_factory=dict)

    def drop(self, reason: str, lines: Sequence[int]) -> None:
        """Count rows that are not kept."""
        if len(lines):
            self.dropped[reason] = self.dropped.get(reason, 0) + len(lines)
            self.lines.setdefault(reason, []).extend(int(n) for n in lines[:LINES_SHOWN])

    def check(self) -> None:
        """Every row is accounted for."""
        assert self.read == self.kept + sum(self.dropped.values()), self
