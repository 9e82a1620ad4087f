"""Parse JSON Lines or an array of JSON objects into rows, each with the line on which it starts."""

import io
import json
from array import array
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from stream.data.sources.dialect import unique_names
from stream.data.table import SourceTable
from stream.errors import UserError, require

JSON_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


def read_json(data: bytes, encoding: str, where: str, *, lines: bool) -> SourceTable:
    """Read JSON Lines or an array of objects.

    A column whose values have one type (strings, integers, numbers, booleans) has that type; an
    absent key is null. Any other column (mixed types, lists, objects) contains each value as its
    JSON text, so that 1, "1" and true remain different; ``provenance["json_text"]`` names these
    columns.

    Args:
        data: the file as UTF-8.
        encoding: its original encoding, for the record.
        where: the file's path, for messages.
        lines: True for JSON Lines only; False accepts an array as well.

    Raises:
        UserError: the file is empty or is not JSON in one of these forms.
    """
    is_array = not lines and data.lstrip().startswith(b"[")
    starts, columns = array("q"), dict[str, list]()
    for start, item in _json_rows(data, where, is_array=is_array):
        require(isinstance(item, dict), f"{where}: line {start}: not an object: {str(item)[:60]}")
        for name, value in item.items():
            column = columns.setdefault(name, [])
            column.extend([None] * (len(starts) - len(column)))
            column.append(value)
        starts.append(start)
    require(len(columns) > 0, f"{where}: empty, it has no rows")
    arrays, texts = {}, []
    for old, name in zip(list(columns), unique_names(list(columns)), strict=True):
        values = columns.pop(old)
        values.extend([None] * (len(starts) - len(values)))
        arrays[name], is_text = _json_column(values, f"{where}: column {name!r}")
        texts.extend([name] * is_text)
    nested = not lines and len(starts) == 1 and set(texts) == set(arrays)
    require(not nested, f"{where}: one JSON object of columns or lists; rows are needed")
    words = f"{encoding}, {'JSON array' if is_array else 'JSON Lines'}"
    facts = {"json_text": ", ".join(texts)} if texts else {}
    return SourceTable(pa.table(arrays), where, np.array(starts, np.int64), (), words, facts)


def _json_rows(data: bytes, where: str, *, is_array: bool) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line (or array item), from 1, and its value."""
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    line = 0
    try:
        if is_array:
            yield from enumerate(json.load(stream, object_pairs_hook=_object), start=1)
            return
        for line, text in enumerate(stream, start=1):
            if text.strip():
                yield line, json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        at = f"line {line}: " if line else ""
        raise UserError(f"{where}: {at}not valid JSON: {error}") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; raise ValueError if a key occurs twice, so that no value is lost."""
    item = dict(pairs)
    if len(item) < len(pairs):
        raise ValueError(f"a key stands twice in {[key for key, _ in pairs]}")
    return item


def _json_column(values: list, where: str) -> tuple[pa.Array, bool]:
    """Return a column, and whether its values are JSON texts."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.nulls(len(values)), False
    kind = JSON_TYPES.get(float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else 0)
    try:
        with suppress(OverflowError, pa.ArrowInvalid):  # an integer with too many digits
            if kind is not None:
                return pa.array(values, kind), False
        texts = [None if v is None else json.dumps(v, ensure_ascii=False) for v in values]
        return pa.array(texts, pa.string()), True
    except UnicodeEncodeError as error:
        raise UserError(f"{where}: a text holds half a surrogate pair ({error})") from error
