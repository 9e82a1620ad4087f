"""Support for the `hub` source: records of loads, Arrow files in the cache, and time limits."""

import contextlib
import datetime
import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stream.data.sources.arrow_values import class_names, features, named, plain_table
from stream.data.table import SourceTable
from stream.errors import UserError

HASHED_ROWS = 65_536  # rows hashed at a time, so a hash does not depend on Arrow's own chunks


@dataclass(frozen=True)
class SplitRecord:
    """One split as it was at the first load.

    Attributes:
        split: its name on the hub.
        files: its Arrow files, relative to the cache folder.
        rows: the number of rows.
        sha256: the hash of the rows, with label names instead of label numbers.
    """

    split: str
    files: list[str]
    rows: int
    sha256: str

    @classmethod
    def of(cls, split: str, paths: list[Path], table: pa.Table, cache: Path) -> "SplitRecord":
        """Return the record of a split that was read from files in the cache folder."""
        files = [path.resolve().relative_to(cache.resolve()).as_posix() for path in paths]
        return cls(split, files, table.num_rows, rows_digest(table))


@dataclass(frozen=True)
class HubRecord:
    """One task's data as they were at the first load.

    Attributes:
        id: the name of the data set on the hub.
        config: its configuration.
        revision: the revision that was asked for.
        commit: the commit that the revision referred to.
        splits: the splits by the task's own names.
        recorded: the day of the first load, ISO 8601.
    """

    id: str
    config: str | None
    revision: str | None
    commit: str
    splits: dict[str, SplitRecord]
    recorded: str = field(
        default_factory=lambda: datetime.datetime.now(datetime.UTC).date().isoformat()
    )

    def files(self, cache: Path) -> dict[str, list[Path]] | None:
        """Return the files of each split, or None if one of them is missing."""
        files = {
            name: [cache / file for file in split.files] for name, split in self.splits.items()
        }
        return files if all(path.is_file() for paths in files.values() for path in paths) else None

    def source_table(self, name: str, table: pa.Table) -> SourceTable:
        """Return the rows of a split with their origin."""
        split = self.splits[name]
        where = f"hub:{self.id}/{self.config or 'default'}@{self.commit} split {split.split}"
        return SourceTable(
            table=plain_table(table, where)[0],
            where=where,
            lines=np.arange(1, table.num_rows + 1),
            provenance={
                "id": self.id,
                "config": self.config or "default",
                "revision": self.revision or "main",
                "commit": self.commit,
                "fingerprint": split.sha256,
            },
        )

    def difference(self, now: "HubRecord") -> list[str]:
        """Return one line for each split whose rows differ from the ones recorded here."""
        return [
            f"split {name!r} of {self.id} at {self.commit[:12]} has {after.rows} rows with SHA-256 "
            f"{after.sha256[:12]}; recorded {self.recorded}: {before.rows} rows, "
            f"{before.sha256[:12]}"
            for name, before in self.splits.items()
            if (after := now.splits[name]).sha256 != before.sha256
        ]


def read_hub_record(path: Path) -> HubRecord | None:
    """Return the record in a file, or None if there is no file.

    Raises:
        UserError: the file is not a record.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        splits = {name: SplitRecord(**split) for name, split in stored.pop("splits").items()}
        return HubRecord(splits=splits, **stored)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path} is not a record of a hub load; delete it: {error}") from error


def write_hub_record(path: Path, record: HubRecord) -> None:
    """Write the record, completely or not at all; several runs may write the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(record), file, indent=2, ensure_ascii=False)
            file.write("\n")
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def rows_digest(table: pa.Table) -> str:
    """Return the SHA-256 of column names and values, in order; null differs from an empty text."""
    digest = hashlib.sha256(json.dumps([table.num_rows, table.column_names]).encode())
    for column in table.columns:
        for start in range(0, table.num_rows, HASHED_ROWS):
            digest.update(_column_bytes(column.slice(start, HASHED_ROWS)))
    return digest.hexdigest()


def _column_bytes(column: pa.ChunkedArray) -> bytes:
    """Return the values of a part of a column as bytes; different values give different bytes."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return json.dumps(column.to_pylist(), default=str).encode()
    texts = column.cast(pa.large_binary()).to_pylist()
    lengths = [-1 if text is None else len(text) for text in texts]
    return np.array(lengths, np.int64).tobytes() + b"".join(text for text in texts if text)


def read_arrow(paths: Iterable[Path]) -> pa.Table:
    """Read Arrow files that `datasets` wrote.

    Nested columns become flat ones, and label numbers become label names; a negative label number
    (GLUE's hidden test labels) becomes null.

    Raises:
        UserError: a file is damaged, or has a label number without a name.
    """
    try:
        tables = [pa.ipc.open_stream(pa.memory_map(str(path))).read_all() for path in paths]
        table = pa.concat_tables(tables)
        names = dict(class_names(features(table.schema)))
        while any(pa.types.is_struct(kind) for kind in table.schema.types):
            table = table.flatten()
        columns = {name: table.column(name) for name in table.column_names}
        for name, column in columns.items():
            if name in names and pa.types.is_integer(column.type):
                columns[name] = named(column, names[name])
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:
        listed = ", ".join(str(path) for path in paths)
        raise UserError(f"cannot read {listed}; delete it to fetch it again: {error}") from error
    return pa.table(columns)


def bytes_below(*folders: Path) -> int:
    """Return the size of all files below some folders; it grows while a download is running."""
    total = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                with contextlib.suppress(OSError):  # the file was moved after it was listed
                    total += os.lstat(os.path.join(parent, name)).st_size
    return total


def within(
    seconds: float, call: Callable[[], Any], progress: Callable[[], Any] = lambda: None
) -> Any:
    """Return what ``call`` returns, but wait only so long without progress.

    The hub's libraries have no time limit that covers name resolution and all retries.

    Args:
        seconds: how long to wait, from the start or from the last change of ``progress``.
        call: runs in a thread; the thread keeps running after a timeout.
        progress: called every second; any change of its value restarts the wait.

    Raises:
        TimeoutError: there was no progress for ``seconds``.
        Exception: whatever ``call`` raised.
    """
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised again by result()
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    seen, since = progress(), time.monotonic()
    while not outcome.done() and (left := since + seconds - time.monotonic()) > 0:
        wait([outcome], timeout=min(1.0, left))
        if (now := progress()) != seen:
            seen, since = now, time.monotonic()
    if not outcome.done():
        raise TimeoutError(f"no answer for {seconds:.0f} s")
    return outcome.result()
