"""Read the user's labelled files: find them, unpack them, and recognise their format."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stream.config.source import DialectSpec
from stream.data.sources.arrow_values import plain_table, without_nesting
from stream.data.sources.class_folders import read_class_folders
from stream.data.sources.delimited import read_delimited
from stream.data.sources.dialect import header_evidence, refuse_settings, twins, unique_names
from stream.data.sources.encoding import contradicts, to_utf8
from stream.data.sources.finding import ARROW, CONTAINERS, DATA, JSON, PARQUET, find_files
from stream.data.sources.json_rows import looks_like_json, read_json
from stream.data.sources.no_table import refuse_others, refuse_pages
from stream.data.sources.parts import is_part, joined, with_partitions
from stream.data.sources.sheets import WORKBOOKS, read_sheet
from stream.data.sources.tagged_lines import has_tags, read_tagged
from stream.data.sources.unpacking import unpacked
from stream.data.table import SourceTable
from stream.errors import UserError, require

SAMPLE_ROWS = 100  # at the start of each of several files, for finding their headers


def read_files(root: Path, pattern: str, spec: DialectSpec) -> SourceTable:
    """Read the files that ``pattern`` names below ``root``; several files become one table.

    Folders named ``column=value`` on the way to a file give it a column, unless it has that column.

    Args:
        root: the folder to look in, or an archive or workbook.
        pattern: a path relative to it, a glob pattern, a folder with one folder per class, a folder
            with the parts of one table, ``archive.zip/member`` or ``book.xlsx/sheet``.
        spec: the known parts of the dialect; the rest is detected.

    Raises:
        UserError: nothing matches, a file cannot be read, or the files' columns differ.
    """
    found = find_files(root, pattern)
    if found.member is not None:
        return read_table(found.files[0], spec, member=found.member)
    if found.classes is not None:
        return read_class_folders(found.classes, spec)
    source = _read_all(list(found.files), root, pattern, spec)
    facts = {"not_rows": str(found.others)} if found.others else {}
    return replace(source, provenance={**source.provenance, **facts})


def _read_all(files: list[Path], root: Path, pattern: str, spec: DialectSpec) -> SourceTable:
    """Read files as one table; parts of no bytes have no rows."""
    is_several = len(files) > 1
    empty = [p for p in files if is_several and is_part(p) and p.stat().st_size == 0]
    files = [path for path in files if path not in empty]
    require(len(files) > 0, f"{root / pattern}: all of its {len(empty)} parts are empty")
    tables = _in_one_dialect(files, [read_table(path, spec) for path in files], spec)
    tables = [with_partitions(t, f.relative_to(root)) for t, f in zip(tables, files, strict=True)]
    return joined(tables, str(root / pattern), empty) if is_several else tables[0]


def _in_one_dialect(
    files: list[Path], tables: list[SourceTable], spec: DialectSpec
) -> list[SourceTable]:
    """Return the tables of delimited files, read again where one file shows what others do not.

    A character that escapes in one file does so in files with the same delimiter. There is no
    header if the headers differ and none is certainly one.
    """
    escaped = {(d.delimiter, d.quote): d.escape for t in tables if (d := t.settled) and d.escape}
    specs = [
        replace(spec, escape=escaped.get((d.delimiter, d.quote))) if d else spec
        for d in (source.settled for source in tables)
    ]
    if any(
        s.escape != d.escape for s, d in zip(specs, (t.settled for t in tables), strict=True) if d
    ):
        tables = [read_table(path, spec) for path, spec in zip(files, specs, strict=True)]
    is_equal = len({tuple(source.table.column_names) for source in tables}) == 1
    if spec.header is not None or is_equal or not all(source.settled for source in tables):
        return tables
    bare = [read_table(p, replace(s, header=False)) for p, s in zip(files, specs, strict=True)]
    firsts = [source.table.slice(0, SAMPLE_ROWS).to_pydict().values() for source in bare]
    rows = [[list(row) for row in zip(*columns, strict=True)] for columns in firsts]
    return tables if any(header_evidence(first) > 1 for first in rows if first) else bare


def read_table(path: Path, spec: DialectSpec, *, member: str | None = None) -> SourceTable:
    """Read one file: delimited text, JSON, Parquet, Arrow or a workbook; plain or packed.

    Args:
        path: the file; its suffix gives the format, any unknown suffix means text.
        spec: the known parts of the dialect; the rest is detected.
        member: which file of a .zip archive (needed if it holds several), or sheet of a workbook.

    Raises:
        UserError: the file cannot be read; the message says what is wrong and where.
    """
    where = str(path)
    require(path.exists(), f"{where}: no such file")
    require(path.is_file(), f"{where}: is not a file")
    suffix = path.suffix.lower()
    holds = suffix in CONTAINERS
    require(member is None or holds, f"{where}: no .zip archive or workbook, has no {member!r}")
    raw, name = unpacked(path, member, DATA)
    if suffix == ".zip":
        where, member = f"{path}/{name}", None
    refuse_pages(raw, where)
    if (suffix := Path(name).suffix.lower()) in WORKBOOKS:
        return read_sheet(raw, member, spec, where)
    if suffix in (*PARQUET, *ARROW):
        return _read_columns(raw, suffix, spec, where)
    refuse_others(raw, where)
    return _read_text(raw, suffix, spec, where)


def _read_text(raw: bytes, suffix: str, spec: DialectSpec, where: str) -> SourceTable:
    """Read text: JSON, lines of fastText, or a delimited table."""
    if suffix in JSON:
        refuse_settings(spec, ("encoding",), "JSON", where)
    require(
        spec.encoding is None or not contradicts(raw, spec.encoding),
        f"{where}: is valid UTF-8 with characters beyond ASCII, yet encoding is set to "
        f"{spec.encoding}, which would turn them into others; set it to utf-8, or not at all",
    )
    text, encoding = to_utf8(raw, spec.encoding, where)
    del raw
    is_set = replace(spec, encoding=None) != DialectSpec()  # said to be delimited text
    if suffix in JSON or (not is_set and looks_like_json(text)):
        return read_json(text, encoding, where, lines=suffix != ".json")
    if not is_set and has_tags(text):
        return read_tagged(text, encoding, where)
    return read_delimited(text, encoding, spec, where)


def _read_columns(raw: bytes, suffix: str, spec: DialectSpec, where: str) -> SourceTable:
    """Read Parquet or Arrow: columns with types, and perhaps with the names of classes."""
    kind = "Parquet" if suffix in PARQUET else "Arrow"
    refuse_settings(spec, (), kind, where)
    buffer = pa.BufferReader(raw)
    try:
        if kind == "Parquet":
            table = pq.ParquetFile(buffer).read()
        else:
            is_file = raw.startswith(b"ARROW1")
            table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(buffer).read_all()
        table, single = without_nesting(table)
        table, found = plain_table(table, where)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{where}: cannot be read as {kind}: {error}") from error
    renamed = dict(zip(table.column_names, unique_names(table.column_names), strict=True))
    words = [kind.lower(), *(f"class names of {renamed[name]!r} in the file" for name in found)]
    words.extend(f"lists of one item as that item: {renamed[name]}" for name in single)
    words.extend(twins(table.column_names))
    return SourceTable(
        table.rename_columns(unique_names(table.column_names)),
        where,
        np.arange(1, table.num_rows + 1),
        dialect=", ".join(words),
        class_names={renamed[name]: names for name, names in found.items()},
    )
