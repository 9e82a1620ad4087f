"""Parse JSON into rows of flat columns, each row with the line on which it starts.

Rows are the lines of JSON Lines, the objects of a list, what pandas writes (an object of columns,
of rows, or ``split``), or the only list of objects in an object. The fields of nested objects are
columns with dotted names, such as ``data.text``. A list that has at most one item in every row is
read as that item, so that ``{"annotations": [{"label": ["a"]}]}`` is ``annotations.label``.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from stream.data.sources.dialect import unique_names
from stream.data.table import Encoding, SourceTable
from stream.errors import UserError, require

JSON_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
NAMES_SHOWN = 5


def looks_like_json(data: bytes) -> bool:
    """Return whether UTF-8 text begins with an object of JSON, or a list of them."""
    first = data[: 1 << 20].lstrip()
    if first[:1] == b"[" and first[1:].lstrip()[:1] == b"{":
        return True
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(first.split(b"\n", 1)[0]), dict)
    return False


def read_json(data: bytes, encoding: Encoding, where: str, *, lines: bool) -> SourceTable:
    """Read JSON Lines, a list of objects, or an object that contains one table.

    A column whose values have one type (strings, integers, numbers, booleans) has that type; an
    absent key is null. Any other column (mixed types, lists) contains each value as its JSON text,
    so that 1, "1" and true remain different; ``provenance["json_text"]`` names these columns.

    Args:
        data: the file as UTF-8.
        encoding: its original encoding.
        where: the file's path, for messages.
        lines: whether an object at the start is a row, as in JSON Lines; otherwise it may also be
            the whole table.

    Raises:
        UserError: the file is empty or is not JSON in one of these forms.
    """
    try:
        starts, rows, form = _rows(data, where, lines=lines)
        columns, single = _without_lists(_columns(rows))
    except (ValueError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{where}: not valid JSON: {error}") from error
    require(len(columns) > 0, f"{where}: empty, it has no rows")
    arrays, texts = {}, []
    for old, name in zip(list(columns), unique_names(list(columns)), strict=True):
        arrays[name], is_text = _json_column(columns.pop(old), f"{where}: column {name!r}")
        texts.extend([name] * is_text)
    words = [str(encoding), form]
    if single:
        more = f" and {len(single) - NAMES_SHOWN} more" if len(single) > NAMES_SHOWN else ""
        words.append(f"lists of one item as that item: {', '.join(single[:NAMES_SHOWN])}{more}")
    facts = {"json_text": ", ".join(texts)} if texts else {}
    numbers = np.array(starts, np.int64)
    table = pa.table(arrays)
    return SourceTable(table, where, numbers, (), ", ".join(words), facts, encoding=encoding)


def _rows(data: bytes, where: str, *, lines: bool) -> tuple[list[int], list[dict], str]:
    """Return the number of each line (or item), from 1, its object, and the form in words."""
    rest = data.lstrip()
    form = "JSON Lines"
    if rest[:1] == b"[" or not lines:
        try:
            whole = json.loads(data, object_pairs_hook=_object)
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                raise
        else:
            items, form = _table(whole, where) if isinstance(whole, dict) else (whole, "JSON array")
            require(isinstance(items, list), f"{where}: a JSON value that is no table: {whole!r}")
            _check_objects(items, range(1, len(items) + 1), where)
            return list(range(1, len(items) + 1)), items, form
    starts, items = [], []
    for line, text in enumerate(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"), start=1):
        if text.strip():
            starts.append(line)
            try:
                items.append(json.loads(text, object_pairs_hook=_object))
            except (ValueError, RecursionError) as error:
                raise UserError(f"{where}: line {line}: not valid JSON: {error}") from error
    _check_objects(items, starts, where)
    return starts, items, form


def _check_objects(items: list, starts: Iterable[int], where: str) -> None:
    """Raise UserError unless all items are objects."""
    for start, item in zip(starts, items, strict=True):
        require(isinstance(item, dict), f"{where}: line {start}: not an object: {str(item)[:60]}")


def _table(whole: Mapping[str, Any], where: str) -> tuple[list[dict], str]:
    """Return the rows that one object contains, and in which form, in words.

    Raises:
        UserError: it contains several lists of rows, or columns of different lengths.
    """
    lists = [key for key, value in whole.items() if value and _all_are(value, dict)]
    require(
        len(lists) < 2,
        f"{where}: one JSON object with several lists of rows ({', '.join(lists[:NAMES_SHOWN])}); "
        "make a file of each",
    )
    if lists:
        return whole[lists[0]], f"JSON, the rows are under {lists[0]!r}"
    if "columns" in whole and whole["columns"] and _all_are(whole.get("data"), list):
        return [dict(zip(whole["columns"], row, strict=True)) for row in whole["data"]], (
            "JSON, columns and data"
        )
    values = list(whole.values())
    if not values or not (_all_are(values, dict) or _all_are(values, list)):
        return [dict(whole)], "one JSON object"
    if _all_are(values, dict):
        inner = list(dict.fromkeys(key for value in values for key in value))
        if not _are_columns(list(whole), inner):
            return values, "JSON, an object of rows"
        return [{name: column.get(key) for name, column in whole.items()} for key in inner], (
            "JSON, an object of columns"
        )
    lengths = {name: len(value) for name, value in whole.items()}
    require(
        len(set(lengths.values())) == 1,
        f"{where}: one JSON object of lists of different lengths "
        f"({', '.join(f'{name}: {n}' for name, n in list(lengths.items())[:NAMES_SHOWN])}); "
        "columns are equally long, and a list of objects holds rows",
    )
    rows = [dict(zip(whole, row, strict=True)) for row in zip(*values, strict=True)]
    return rows, "JSON, an object of columns"


def _all_are(values: Any, kind: type) -> bool:
    """Return whether this is a list with values of one kind only."""
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _are_columns(outer: list[str], inner: list[str]) -> bool:
    """Return whether an object of objects has columns at its top, not rows.

    Numbers are rows; without them, there are more rows than columns.
    """
    if all(key.isdecimal() for key in outer) != all(key.isdecimal() for key in inner):
        return all(key.isdecimal() for key in inner)
    return len(inner) > len(outer)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; raise ValueError if a key occurs twice, so that no value is lost."""
    item = dict(pairs)
    if len(item) < len(pairs):
        raise ValueError(f"a key stands twice in {[key for key, _ in pairs]}")
    return item


def _fields(item: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object and of the objects in it, with dotted names."""
    for name, value in item.items():
        if isinstance(value, dict) and value:
            yield from _fields(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", None if value == {} else value


def _columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list]:
    """Return the columns of some rows, all of one length; absent fields are None."""
    columns, number = dict[str, list](), 0
    for number, row in enumerate(rows, start=1):
        for name, value in _fields(row):
            column = columns.setdefault(name, [])
            if len(column) == number:
                raise ValueError(f"two fields of one row are both called {name!r}")
            column.extend([None] * (number - 1 - len(column)))
            column.append(value)
    for column in columns.values():
        column.extend([None] * (number - len(column)))
    return columns


def _without_lists(columns: dict[str, list]) -> tuple[dict[str, list], list[str]]:
    """Return the columns with each list of at most one item as that item, and their names."""
    found, single = dict[str, list](), list[str]()
    for name, values in columns.items():
        lists = [value for value in values if value is not None]
        if not lists or not all(isinstance(value, list) and len(value) < 2 for value in lists):
            found[name] = values
            continue
        single.extend([name] * any(lists))
        items = _columns({name: value[0]} if value else {} for value in values)
        inner, more = _without_lists(items or {name: [None] * len(values)})
        found |= inner
        single.extend(more)
    return found, single


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
