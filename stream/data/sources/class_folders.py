"""Read a folder that has one folder per class, each with one file per row."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from stream.config.source import DialectSpec
from stream.data.sources.dialect import refuse_settings
from stream.data.sources.encoding import MARKS, to_utf8
from stream.data.sources.legacy import guess_legacy, undecodable
from stream.data.table import SourceTable
from stream.errors import UserError, require


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
    refuse_settings(spec, ("encoding",), "a folder per class", where)
    files, not_rows = files_of_classes(folder)
    raws = [_content(path) for path in files]
    marks = tuple(mark for mark, _ in MARKS)
    not_utf8 = {
        at
        for at, raw in enumerate(raws)
        if not raw.startswith(marks) and undecodable(raw, "utf-8") is not None
    }
    legacy = guess_legacy(b"\n".join(raws[at] for at in sorted(not_utf8))) if not_utf8 else None
    texts, encodings = [], set()
    for at, (path, raw) in enumerate(zip(files, raws, strict=True)):
        fixed = spec.encoding or (legacy.name if legacy and at in not_utf8 else None)
        text, encoding = to_utf8(raw, fixed, str(path))
        texts.append(text.decode("utf-8"))
        encodings.add(str(legacy if legacy and fixed == legacy.name else encoding))
    table = pa.table({"text": texts, "label": [path.parent.name for path in files]})
    facts = {"not_rows": str(not_rows)} if not_rows else {}
    words = ", ".join([*sorted(encodings), "a folder per class"])
    lines = np.arange(1, len(files) + 1)
    return SourceTable(table, where, lines, (), words, facts, encoding=legacy)


def files_of_classes(folder: Path) -> tuple[list[Path], int]:
    """Return the files in the folders of classes, sorted, and how many lie beside those folders.

    Raises:
        UserError: there are no class folders or no files, or a class folder contains a folder.
    """
    where = str(folder)
    require(folder.is_dir(), f"{where}: no such folder")
    there = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    classes = [path for path in there if path.is_dir()]
    require(len(classes) > 0, f"{where}: has no sub-folders, one is needed for each class")
    inside = [sorted(path.iterdir()) for path in classes]
    files = [path for paths in inside for path in paths if not path.name.startswith(".")]
    require(len(files) > 0, f"{where}: its class folders hold no files")
    for path in files:
        require(path.is_file(), f"{path}: a folder inside a class folder; only files are rows")
    return files, len(there) - len(classes)


def _content(path: Path) -> bytes:
    """Return the bytes of a file; raise UserError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be unpacked or read: {error}") from error
