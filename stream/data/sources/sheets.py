"""Read one sheet of a workbook: Excel (.xlsx, .xls) and OpenDocument (.ods)."""

import io
from datetime import datetime, time
from typing import Any

import numpy as np
import pyarrow as pa

from stream.config.source import DialectSpec
from stream.data.sources.dialect import has_header, refuse_settings, twins, unique_names
from stream.data.sources.preamble import title_rows
from stream.data.table import SourceTable
from stream.errors import UserError, choose, require
from stream.formatting import count

WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods")


def read_sheet(raw: bytes, sheet: str | None, spec: DialectSpec, where: str) -> SourceTable:
    """Read a sheet into columns of text; rows have the numbers that the workbook shows.

    Whole numbers are written without a point, dates as ``2020-12-31``. Rows and columns without any
    value are left out, and so is a title above the header.

    Args:
        raw: the workbook.
        sheet: the name of the sheet; None is the first one with any value.
        spec: may say whether there is a header; the other settings do not apply.
        where: the file's path, for messages.

    Raises:
        UserError: the package that reads workbooks is missing, or there is no such sheet or row.
    """
    refuse_settings(spec, ("header",), "a workbook", where)
    sheets = _sheets(raw, where)
    if sheet is not None:
        choose(f"sheet of {where}", sheet, list(sheets))
    name = sheet or next((name for name, rows in sheets.items() if rows), None)
    require(name is not None and bool(sheets[name]), f"{where}: sheet {name!r} is empty")
    assert name is not None
    numbers, rows = list(sheets[name]), list(sheets[name].values())
    used = [
        at for at in range(max(map(len, rows))) if any(row[at : at + 1] != [""] for row in rows)
    ]
    rows = [[row[at] if at < len(row) else "" for at in used] for row in rows]
    titles = title_rows(rows, len(used)) if spec.header is None else 0
    is_header = has_header(rows[titles:]) if spec.header is None else spec.header
    names = rows[titles] if is_header else [""] * len(used)
    first = titles + is_header
    columns = list(zip(*rows[first:], strict=True)) or [()] * len(used)
    arrays = [pa.array(list(column), pa.string()) for column in columns]
    words = [f"sheet {name!r}", "header" if is_header else "no header"]
    if len(sheets) > 1:
        words[0] += f" of {len(sheets)} ({', '.join(sheets)})"
    if titles:
        words.append(count(titles, "title row"))
    words.extend(twins(names))
    return SourceTable(
        pa.Table.from_arrays(arrays, names=unique_names(names)),
        f"{where}/{name}",
        np.array(numbers[first:], np.int64),
        dialect=", ".join(words),
    )


def _sheets(raw: bytes, where: str) -> dict[str, dict[int, list[str]]]:
    """Return the rows with any value of each sheet, by their numbers from 1."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise UserError(
            f"{where}: workbooks are read by an extra package: pip install "
            "'task-stream-simulator[xlsx]', or save the sheet as CSV"
        ) from error
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(raw))
        values = {
            name: book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            for name in book.sheet_names
        }
    except CalamineError as error:
        raise UserError(f"{where}: cannot be read as a workbook: {error}") from error
    texts = {name: [[_text(cell) for cell in row] for row in rows] for name, rows in values.items()}
    return {
        name: {number: row for number, row in enumerate(rows, start=1) if any(row)}
        for name, rows in texts.items()
    }


def _text(cell: Any) -> str:
    """Return the value of a cell as text."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    return str(cell)
