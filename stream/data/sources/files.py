"""Read the user's labelled files: find them, unpack them, and recognise their format."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stream.config.task import DialectSpec
from stream.data.sources import dialect
from stream.data.sources.delimited import read_delimited, read_json
from stream.data.table import SourceTable
from stream.errors import UserError, require

MAX_UNPACKED_BYTES = 8 << 30  # of a .gz file or a member of a .zip archive
CHUNK_BYTES = 1 << 20

PARQUET = (".parquet", ".pq")
JSON = (".jsonl", ".ndjson", ".json")
TEXT = (".csv", ".tsv", ".tab", ".txt", ".psv")
NOT_DATA = {
    b"version https://git-lfs": "a git-lfs pointer, not the file itself; run `git lfs pull`",
    b"<!doctype html": "a web page, not data; the download went wrong",
    b"<html": "a web page, not data; the download went wrong",
    b"<?xml": "XML (perhaps a web page), not data",
}
MAGIC = {
    b"PAR1": "Parquet",
    b"PK\x03\x04": "a zip archive (or a workbook)",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"%PDF": "PDF",
}


def read_files(root: Path, pattern: str, spec: DialectSpec) -> SourceTable:
    """Read the files that ``pattern`` names below ``root``; several files become one table.

    Args:
        root: the folder to look in.
        pattern: a path relative to it, a glob pattern, a folder with one folder per class, or
            ``archive.zip/member``.
        spec: the known parts of the dialect; the rest is detected.

    Raises:
        UserError: nothing matches, a file cannot be read, or the files' columns differ.
    """
    parts = PurePosixPath(pattern).parts
    is_below = bool(parts) and ".." not in parts and not Path(pattern).is_absolute()
    require(is_below, f"files: {pattern!r} is not a path or pattern below {root}")
    require(root.is_dir(), f"files: {root} is not a folder (looking for {pattern!r})")
    for depth in range(1, len(parts)):
        archive = root.joinpath(*parts[:depth])
        if archive.suffix.lower() == ".zip" and archive.is_file():
            return read_table(archive, spec, member="/".join(parts[depth:]))
    exact = root / pattern
    matches = [exact] if exact.exists() else sorted(root.glob(pattern))
    matches = [path for path in matches if path == exact or not path.name.startswith(".")]
    if len(matches) == 1:
        [path] = matches
        return (read_class_folders if path.is_dir() else read_table)(path, spec)
    files = [path for path in matches if path.is_file()]
    if not files:
        there = ", ".join(sorted(path.name for path in root.iterdir())[:10]) or "nothing"
        what = "only folders match" if matches else "nothing matches"
        raise UserError(f"files: {what} {pattern!r} in {root}; it holds {there}")
    return _joined([read_table(path, spec) for path in files], root, pattern)


def _joined(tables: list[SourceTable], root: Path, pattern: str) -> SourceTable:
    """Concatenate tables; lines are counted in each file (``provenance["files"]`` lists them)."""
    first = tables[0]
    for other in tables[1:]:
        require(
            other.table.column_names == first.table.column_names,
            f"{other.where}: columns {other.table.column_names} are not those of {first.where}: "
            f"{first.table.column_names}",
        )
    try:
        table = pa.concat_tables([t.table for t in tables], promote_options="default")
    except pa.ArrowException as error:
        raise UserError(f"{root / pattern}: the files' columns differ in type: {error}") from error
    facts = {key: value for source in tables for key, value in source.provenance.items()}
    facts["files"] = ", ".join(f"{Path(t.where).name} ({t.table.num_rows} rows)" for t in tables)
    return SourceTable(
        table,
        f"{root / pattern} ({len(tables)} files)",
        np.concatenate([source.lines for source in tables]),
        tuple(ragged for source in tables for ragged in source.ragged),
        "; ".join(dict.fromkeys(source.dialect for source in tables)),
        facts,
    )


def read_table(path: Path, spec: DialectSpec, *, member: str | None = None) -> SourceTable:
    """Read one file: delimited text, JSON Lines, a JSON array or Parquet; plain, .gz or .zip.

    Args:
        path: the file; its suffix gives the format, any unknown suffix means delimited text.
        spec: the known parts of the dialect; the rest is detected.
        member: which file of a .zip archive to read; needed if it holds several.

    Raises:
        UserError: the file cannot be read; the message says what is wrong and where.
    """
    where = str(path)
    require(path.exists(), f"{where}: no such file")
    require(path.is_file(), f"{where}: is not a file")
    suffix = path.suffix.lower()
    require(member is None or suffix == ".zip", f"{where}: no .zip archive, has no {member!r}")
    with _one_line(where):
        if suffix == ".zip":
            raw, name = _unzipped(path, member)
            where = f"{path}/{name}"
        elif suffix == ".gz":
            with gzip.open(path) as stream:
                raw, name = _unpacked(stream, where), path.stem
        else:
            raw, name = path.read_bytes(), path.name
    return _parsed(raw, Path(name).suffix.lower(), spec, where)


def _parsed(raw: bytes, suffix: str, spec: DialectSpec, where: str) -> SourceTable:
    """Read the unpacked bytes of one file."""
    _check_content(raw, where)
    if suffix in PARQUET:
        _check_dialect(spec, (), "Parquet", where)
        try:
            table = pq.ParquetFile(pa.BufferReader(raw)).read()
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{where}: cannot be read as Parquet: {error}") from error
        table = table.rename_columns(dialect.unique_names(table.column_names))
        return SourceTable(table, where, np.arange(1, table.num_rows + 1), dialect="parquet")
    for magic, kind in MAGIC.items():
        require(not raw.startswith(magic), f"{where}: by its content this is {kind}, not text")
    if suffix in JSON:
        _check_dialect(spec, ("encoding",), "JSON", where)
    text, encoding = dialect.to_utf8(raw, spec.encoding, where)
    del raw
    if suffix in JSON:
        return read_json(text, encoding, where, lines=suffix != ".json")
    return read_delimited(text, encoding, spec, where)


def _check_content(raw: bytes, where: str) -> None:
    """Raise UserError for an empty file and for what is often saved in place of a data file."""
    require(len(raw) > 0, f"{where}: empty, it has 0 bytes")
    start = raw[:200].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for beginning, what in NOT_DATA.items():
        require(not start.startswith(beginning), f"{where}: {what}")


def _check_dialect(spec: DialectSpec, allowed: tuple[str, ...], kind: str, where: str) -> None:
    """Raise UserError if a part of the dialect is set that the format does not have."""
    for field in fields(spec):
        value = getattr(spec, field.name)
        without_effect = value is not None and field.name not in allowed
        require(not without_effect, f"{where}: {kind} has no {field.name}, yet {value!r} is set")


@contextmanager
def _one_line(where: str) -> Iterator[None]:
    """Turn the errors of the unpackers and the file system into a UserError of one line."""
    try:
        yield
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        raise UserError(f"{where}: cannot be unpacked or read: {error}") from error


def _unpacked(stream: IO[bytes] | gzip.GzipFile, where: str) -> bytes:
    """Read a decompressing stream; raise UserError above `MAX_UNPACKED_BYTES`."""
    out = io.BytesIO()
    while chunk := stream.read(CHUNK_BYTES):
        out.write(chunk)
        require(
            out.tell() <= MAX_UNPACKED_BYTES,
            f"{where}: unpacks to more than {MAX_UNPACKED_BYTES:,} bytes, refused",
        )
    return out.getvalue()


def _unzipped(path: Path, member: str | None) -> tuple[bytes, str]:
    """Return the bytes and the name of one member of an archive."""
    with zipfile.ZipFile(path) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        for name in names:
            parts = name.replace("\\", "/").split("/")
            safe = ".." not in parts and parts[0] != "" and ":" not in parts[0]
            require(safe, f"{path}: refused, it has a member with an unsafe path: {name!r}")
        names = [n for n in names if not n.startswith("__MACOSX/") and "/." not in f"/{n}"]
        known = [n for n in names if Path(n).suffix.lower() in (*PARQUET, *JSON, *TEXT)]
        choices = names if member is not None or len(names) == 1 else known
        selected = [n for n in choices if member in (None, n)]
        require(
            len(selected) == 1,
            f"{path}: name one member of the archive, as archive.zip/member; "
            + (f"there is no {member!r}; " if member else "")
            + f"it holds {', '.join(names) or 'nothing'}",
        )
        with archive.open(selected[0]) as stream:
            return _unpacked(stream, f"{path}/{selected[0]}"), selected[0]


def read_class_folders(folder: Path, spec: DialectSpec) -> SourceTable:
    """Read ``folder/CLASS/FILE``: one row per file, with columns ``text`` and ``label``.

    Rows are sorted by path. A text is the whole content of its file, line ends unchanged. All files
    that are not UTF-8 share one encoding, which is detected from all of them together. Hidden files
    are ignored. Files next to the class folders are not rows; ``provenance["not_rows"]`` has their
    number.

    Raises:
        UserError: there are no class folders or no files, a class folder contains a folder, or a
            file cannot be read.
    """
    where = str(folder)
    _check_dialect(spec, ("encoding",), "a folder per class", where)
    require(folder.is_dir(), f"{where}: no such folder")
    there = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    classes = [path for path in there if path.is_dir()]
    require(len(classes) > 0, f"{where}: has no sub-folders, one is needed for each class")
    inside = [sorted(path.iterdir()) for path in classes]
    files = [path for paths in inside for path in paths if not path.name.startswith(".")]
    require(len(files) > 0, f"{where}: its class folders hold no files")
    for path in files:
        require(path.is_file(), f"{path}: a folder inside a class folder; only files are rows")
    with _one_line(where):
        raws = [path.read_bytes() for path in files]
    marks = tuple(mark for mark, _ in dialect.MARKS)
    not_utf8 = {
        at
        for at, raw in enumerate(raws)
        if not raw.startswith(marks) and dialect.undecodable(raw, "utf-8") is not None
    }
    legacy = (
        dialect.guess_legacy(b"\n".join(raws[at] for at in sorted(not_utf8))) if not_utf8 else None
    )
    texts, encodings = [], set()
    for at, (path, raw) in enumerate(zip(files, raws, strict=True)):
        encoding = spec.encoding or (legacy if at in not_utf8 else None)
        text, encoding = dialect.to_utf8(raw, encoding, str(path))
        texts.append(text.decode("utf-8"))
        encodings.add(encoding)
    table = pa.table({"text": texts, "label": [path.parent.name for path in files]})
    facts = {"not_rows": str(len(there) - len(classes))} if len(there) > len(classes) else {}
    words = ", ".join([*sorted(encodings), "a folder per class"])
    return SourceTable(table, where, np.arange(1, len(files) + 1), (), words, facts)
