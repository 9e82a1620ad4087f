"""The bytes of a file, unpacked: gzip, bzip2, zstd, xz, and one member of a zip archive."""

import io
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from stream.errors import UserError, require

MAX_UNPACKED_BYTES = 8 << 30  # of a packed file or a member of a .zip archive
CHUNK_BYTES = 1 << 20
PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz"}


def unpacked(path: Path, member: str | None, known: tuple[str, ...]) -> tuple[bytes, str]:
    """Return the bytes of a file, and its name without the suffix of what packs it.

    Args:
        path: the file.
        member: which file of a .zip archive to read; None takes the only one.
        known: suffixes of files of data; other members of an archive are looked at only if there
            is no other.

    Raises:
        UserError: the file cannot be read or unpacked, or has no such member.
    """
    where, suffix = str(path), path.suffix.lower()
    with _one_line(where):
        if suffix == ".zip":
            return _unzipped(path, member, known)
        if suffix == ".xz":
            with lzma.open(path) as stream:
                return _read(stream, where), path.stem
        if suffix in PACKED:
            with pa.input_stream(str(path), compression=PACKED[suffix]) as stream:
                return _read(stream, where), path.stem
        return path.read_bytes(), path.name


@contextmanager
def _one_line(where: str) -> Iterator[None]:
    """Turn the errors of the unpackers and the file system into a UserError of one line."""
    try:
        yield
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as error:
        raise UserError(f"{where}: cannot be unpacked or read: {error}") from error


def _read(stream: Any, where: str) -> bytes:
    """Read a decompressing stream; raise UserError above `MAX_UNPACKED_BYTES`."""
    out = io.BytesIO()
    while chunk := stream.read(CHUNK_BYTES):
        out.write(chunk)
        require(
            out.tell() <= MAX_UNPACKED_BYTES,
            f"{where}: unpacks to more than {MAX_UNPACKED_BYTES:,} bytes, refused",
        )
    return out.getvalue()


def _unzipped(path: Path, member: str | None, known: tuple[str, ...]) -> tuple[bytes, str]:
    """Return the bytes and the name of one member of an archive."""
    with zipfile.ZipFile(path) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        for name in names:
            parts = name.replace("\\", "/").split("/")
            safe = ".." not in parts and parts[0] != "" and ":" not in parts[0]
            require(safe, f"{path}: refused, it has a member with an unsafe path: {name!r}")
        names = [n for n in names if not n.startswith("__MACOSX/") and "/." not in f"/{n}"]
        tables = [n for n in names if Path(n).suffix.lower() in known]
        choices = names if member is not None or len(names) == 1 else tables
        selected = [n for n in choices if member in (None, n)]
        require(
            len(selected) == 1,
            f"{path}: name one member of the archive, as {path.name}/{(tables or ['member'])[0]}; "
            + (f"there is no {member!r}; " if member else "")
            + f"it holds {', '.join(names) or 'nothing'}",
        )
        with archive.open(selected[0]) as stream:
            return _read(stream, f"{path}/{selected[0]}"), selected[0]
