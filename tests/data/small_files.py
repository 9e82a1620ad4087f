"""Small files that tests of reading write and read."""

import io
import zipfile
from pathlib import Path

from stream.config.source import DialectSpec
from stream.data.sources.files import read_table
from stream.data.table import SourceTable

AS_FOUND = DialectSpec()
PLAIN = "text,label\nfine film,good\ndull film,bad\n"
PLAIN_ROWS = [("fine film", "good"), ("dull film", "bad")]


def read(tmp_path: Path, content: bytes | str, name: str = "a.csv", **fixed) -> SourceTable:
    """Write a file and read it."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, DialectSpec(**fixed))


def rows(source: SourceTable) -> list[tuple]:
    """Return the rows; also checks what holds for every source."""
    assert len(source.lines) == source.table.num_rows
    assert source.lines.dtype == "int64"
    assert (source.lines[1:] > source.lines[:-1]).all()
    return list(zip(*source.table.to_pydict().values(), strict=True))


def zipped(members: dict[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()
