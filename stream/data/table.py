"""The table that a source returns, before labels are read, and the account of its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from stream.config.source import DialectSpec

LINES_SHOWN = 5


@dataclass(frozen=True)
class Ragged:
    """A row with more or fewer fields than the header.

    Attributes:
        line: its line in the file, from 1.
        expected: how many fields the header has.
        found: how many fields the row has.
    """

    line: int
    expected: int
    found: int


@dataclass(frozen=True)
class Encoding:
    """The encoding of a text file.

    Attributes:
        name: as Python knows it.
        is_guess: whether a detector chose it, because nothing in the file says it.
        next: the next most likely encoding that gives another text, or None.
        example: the first word that differs: in this encoding, and in the next one.
    """

    name: str
    is_guess: bool = False
    next: str | None = None
    example: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        """Return the name, and of a guess what speaks for itself: the word that differs."""
        if not self.is_guess:
            return self.name
        if self.next is None:
            return f"{self.name} (a guess)"
        one, two = self.example
        return f"{self.name} (a guess: '{one}'; {self.next} would give '{two}')"


@dataclass(frozen=True)
class SourceTable:
    """The rows of one split (or of a file without splits), unchanged from the source.

    Attributes:
        table: the columns. Delimited text gives strings (never null: an empty field is "");
            Parquet, JSON and the hub give their own types, with nulls.
        where: the path or hub id, for messages.
        lines: int64 [N]; the line on which each row starts, or the number of the row, from 1.
        ragged: rows that are not in ``table`` because their number of fields is wrong.
        dialect: how the bytes were read, in words, such as ``utf-8, comma, quoted, header``.
        provenance: more facts for the record, such as the commit on the hub.
        class_names: of each column whose values were class numbers in the file, the names that
            the file gives them, in their order. The column has the names.
        settled: of delimited text, the dialect in full, as it was set or detected.
        encoding: of text files, the encoding, and whether it is a guess; None for other formats.
    """

    table: pa.Table
    where: str
    lines: np.ndarray
    ragged: tuple[Ragged, ...] = ()
    dialect: str = ""
    provenance: dict[str, str] = field(default_factory=dict)
    class_names: dict[str, list[str]] = field(default_factory=dict)
    settled: DialectSpec | None = None
    encoding: Encoding | None = None


@dataclass
class Account:
    """What became of the rows of one split.

    Attributes:
        where: the file or hub id.
        dialect: how the bytes were read, in words.
        read: the number of rows in the source, ragged ones included.
        kept: the number of rows that the task keeps.
        dropped: the number of dropped rows, for each reason.
        lines: the lines of the first dropped rows, for each reason.
        repeated: rows whose text occurs earlier in the split with the same label.
        contradicting: rows whose text occurs earlier in the split with another label.
        provenance: more facts, such as the commit on the hub.
        idle_entries: of ``train``: entries of ``values`` and ``exclude`` that no row of any split
            has, in words.
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
    idle_entries: list[str] = field(default_factory=list)

    def drop(self, reason: str, lines: Sequence[int]) -> None:
        """Count the rows on ``lines`` as dropped for ``reason``."""
        if len(lines):
            self.dropped[reason] = self.dropped.get(reason, 0) + len(lines)
            self.lines.setdefault(reason, []).extend(int(n) for n in lines[:LINES_SHOWN])

    def check(self) -> None:
        """Assert that every row was either kept or dropped."""
        assert self.read == self.kept + sum(self.dropped.values()), self
