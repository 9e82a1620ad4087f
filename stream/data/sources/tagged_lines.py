"""Lines as fastText reads them: a label that begins with ``__label__``, then the text."""

import re

import numpy as np
import pyarrow as pa

from stream.data.sources.dialect import sample_of
from stream.data.table import Encoding, SourceTable
from stream.errors import require
from stream.formatting import count

TAG = "__label__"
LABELS = re.compile(rf"((?:{TAG}\S+[ \t,]*)+)[ \t,]*(.*)")
MOST = 0.9  # share of the lines that begin with a label


def has_tags(data: bytes) -> bool:
    """Return whether most lines at the start of UTF-8 text begin with a label."""
    if not data.lstrip().startswith(TAG.encode()):
        return False
    lines = [line for line in sample_of(data) if line.strip()]
    return sum(line.startswith(TAG) for line in lines) >= MOST * len(lines)


def read_tagged(data: bytes, encoding: Encoding, where: str) -> SourceTable:
    """Read lines of ``__label__NAME text`` into columns ``text`` and ``label``.

    A line without a label has the label "", and empty lines are no rows.

    Args:
        data: the file as UTF-8.
        encoding: its original encoding.
        where: the file's path, for messages.

    Raises:
        UserError: a line has several labels.
    """
    texts, labels, numbers, several = list[str](), list[str](), list[int](), list[int]()
    for number, line in enumerate(re.split(r"\r\n?|\n", data.decode("utf-8")), start=1):
        if not line.strip():
            continue
        match = LABELS.match(line)
        found = re.findall(rf"{TAG}([^\s,]+)", match[1]) if match else []
        several.extend([number] * (len(found) > 1))
        texts.append(match[2] if match else line)
        labels.append(found[0] if found else "")
        numbers.append(number)
    require(
        not several,
        f"{where}: {count(len(several), 'line')} with several labels (line "
        f"{', '.join(map(str, several[:5]))}): a row of a task has one label; keep one of them",
    )
    table = pa.table({"text": texts, "label": labels})
    words = f"{encoding}, lines of {TAG}"
    return SourceTable(table, where, np.array(numbers, np.int64), (), words, encoding=encoding)
