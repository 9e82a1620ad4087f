"""One table that is written as several files, perhaps in folders named ``column=value``."""

import re
from dataclasses import replace
from pathlib import Path, PurePath
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from stream.data.table import SourceTable
from stream.errors import UserError, require
from stream.formatting import count

PARTITION = re.compile(r"([^=]+)=(.*)")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # as Hive and Spark name the folder of null


def is_part(path: PurePath) -> bool:
    """Return whether a file is by its name one of several parts, as Spark and Hive write them."""
    return path.name.startswith(("part-", "part."))


def data_suffix(path: PurePath) -> str:
    """Return the suffix that tells the format of a file, without ``.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")


def parts_below(folder: Path, suffixes: tuple[str, ...]) -> tuple[list[Path], int]:
    """Return the files of a folder that contains one table, and how many files are no data.

    There are none if the folder has folders that are not named ``column=value``: those are classes.
    Names that begin with a dot or an underscore are no data, as Spark has it.

    Args:
        folder: the folder.
        suffixes: the suffixes of files of data.

    Raises:
        UserError: the files have several formats, or lie beside folders.
    """
    there = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    folders = [path for path in there if path.is_dir()]
    files = [path for path in there if path.is_file()]
    data = [path for path in files if is_part(path) or data_suffix(path) in suffixes]
    if folders:
        if not all(PARTITION.fullmatch(path.name) for path in folders):
            return [], 0
        below = [parts_below(path, suffixes) for path in folders]
        found = [path for paths, _ in below for path in paths]
        require(not (found and data), f"{folder}: has files of data beside folders of them: {data}")
        return found, len(files) + sum(others for _, others in below)
    formats = sorted({data_suffix(path) for path in data})
    require(
        len(formats) < 2,
        f"{folder}: has files of several formats ({', '.join(formats)}); name some of them, as in "
        f"{folder.name}/*{formats[0] if formats else ''}",
    )
    return data, len(files) - len(data)


def with_partitions(source: SourceTable, path: PurePath) -> SourceTable:
    """Return a table with the columns that its folders name, unless it has them.

    Args:
        source: the table of one file.
        path: where the file is below the folder of the whole table.
    """
    table, words = source.table, [source.dialect]
    for folder in path.parts[:-1]:
        match = PARTITION.fullmatch(folder)
        name = unquote(match[1]) if match else ""
        if match and name not in table.column_names:
            value = None if match[2] == NO_VALUE else unquote(match[2])
            column = pa.array([value] * table.num_rows, pa.string())
            table = table.append_column(name, column)
            words.append(f"{name!r} from the folders' names")
    return replace(source, table=table, dialect=", ".join(words))


def joined(tables: list[SourceTable], where: str, empty: list[Path]) -> SourceTable:
    """Concatenate tables; lines are counted in each file (``provenance["files"]`` lists them).

    Args:
        tables: at least one.
        where: the pattern or folder that names them.
        empty: files of no bytes, which have no rows.

    Raises:
        UserError: columns differ in name, type or class names.
    """
    first = tables[0]
    for other in tables[1:]:
        require(
            other.table.column_names == first.table.column_names,
            f"{other.where}: columns {other.table.column_names} are not those of {first.where}: "
            f"{first.table.column_names}; set header in the dialect if one of these is a row",
        )
        require(
            other.class_names == first.class_names,
            f"{other.where}: class names {other.class_names} are not those of {first.where}: "
            f"{first.class_names}",
        )
    try:
        table = pa.concat_tables([t.table for t in tables], promote_options="default")
    except pa.ArrowException as error:
        raise UserError(f"{where}: the files' columns differ in type: {error}") from error
    facts = {key: value for source in tables for key, value in source.provenance.items()}
    rows = [(Path(t.where).name, t.table.num_rows) for t in tables]
    rows += [(path.name, 0) for path in empty]
    facts["files"] = ", ".join(f"{name} ({number} rows)" for name, number in rows)
    return SourceTable(
        table,
        f"{where} ({count(len(rows), 'file')})",
        np.concatenate([source.lines for source in tables]),
        tuple(ragged for source in tables for ragged in source.ragged),
        "; ".join(dict.fromkeys(source.dialect for source in tables)),
        facts,
        first.class_names,
    )
