"""What the columns of Parquet and Arrow files stand for: plain values, and names of classes."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute

from stream.errors import require, understood

pc: Any = pyarrow.compute  # a type checker does not see functions that are created at import
MAX_STRING_BYTES = 2**31 - 1  # of one array with 32-bit offsets


def features(schema: pa.Schema) -> Mapping[str, Any]:
    """Return the column types that `datasets` stores in a schema's metadata."""
    stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    return stored.get("info", {}).get("features") or {}


def class_names(types: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the flat name of each column of class labels, and the names of its labels.

    Args:
        types: the column types, as `features` returns them.
        prefix: the name of the outer column and a dot, in nested types.
    """
    for name, feature in types.items():
        if not isinstance(feature, dict):
            continue
        inner = feature.get("feature")
        of_item = inner if isinstance(inner, dict) else feature  # of a list
        if of_item.get("_type") == "ClassLabel":
            yield prefix + name, of_item["names"]
        elif "_type" not in feature:
            yield from class_names(feature, f"{prefix}{name}.")


def named(column: pa.ChunkedArray, names: list[str]) -> pa.ChunkedArray:
    """Return label numbers as label names; negative numbers become null.

    Raises:
        IndexError: a number has no name.
    """
    numbers = column.to_pylist()
    return pa.chunked_array(
        [[None if number is None or number < 0 else names[number] for number in numbers]],
        pa.string(),
    )


def without_nesting(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return a table with the fields of structs as columns, and each list of one item as that item.

    As in JSON, a field has a dotted name, and a list stands for its item if no row has several.
    Also returns the names of the columns that were such lists.
    """
    single = list[str]()
    kept = table.schema.metadata
    while True:
        while any(pa.types.is_struct(kind) for kind in table.schema.types):
            table = table.flatten()
        # By position: two columns may have one name.
        lists = [at for at, column in enumerate(table.columns) if _has_one_item(column)]
        if not lists:
            return table.replace_schema_metadata(kept), single
        for at in lists:
            column, name = table.column(at), table.column_names[at]
            items = [value[0] if value else None for value in column.to_pylist()]
            table = table.set_column(at, name, pa.array(items, column.type.value_type))
            single.append(name)


def _has_one_item(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds lists, none of them with more than one item."""
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    return is_list and (pc.max(pc.list_value_length(column)).as_py() or 0) < 2


def plain_table(table: pa.Table, where: str) -> tuple[pa.Table, dict[str, list[str]]]:
    """Return a table of plain values, and the names of the classes of each column that has some.

    Label numbers become label names. Categories, bytes of UTF-8, whole decimals and every kind of
    string become strings or integers; nested columns stay as they are.

    Args:
        table: as it was read from a Parquet or Arrow file.
        where: the file's path, for messages.

    Raises:
        UserError: a label number has no name, or the schema's own words are not understood.
    """
    said = f"{where}: what its schema says of classes (under 'huggingface')"
    with understood(said):
        stored = dict(class_names(features(table.schema)))
    odd = [name for name, names in stored.items() if not isinstance(names, list)]
    require(not odd, f"{said} cannot be understood: the names of {', '.join(odd)} are no list")
    found = {}
    for at, name in enumerate(table.column_names):
        column = _plain(table.column(at))
        names = stored.get(name)
        if names is not None and pa.types.is_integer(column.type):
            top = pc.max(column).as_py()
            require(
                top is None or top < len(names),
                f"{where}: column {name!r} has class number {top}, but its schema names only "
                f"{len(names)} classes: {', '.join(names[:10])}",
            )
            column, found[name] = named(column, names), names
        table = table.set_column(at, name, column)
    return table.replace_schema_metadata(None), found


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as strings, numbers or truth values if that is what it contains."""
    kind: Any = column.type
    while isinstance(kind, pa.BaseExtensionType):
        column = column.cast(kind.storage_type)
        kind = column.type
    if pa.types.is_dictionary(kind):
        values = [_plain(pa.chunked_array([chunk.dictionary])) for chunk in column.chunks]
        kind = _plain(pa.chunked_array([], kind.value_type)).type
        pairs = zip(values, column.chunks, strict=True)
        taken = [value.cast(kind).take(chunk.indices) for value, chunk in pairs]
        return pa.chunked_array([part for parts in taken for part in parts.chunks], kind)
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(column))
    if pa.types.is_decimal(kind) and kind.scale <= 0:
        with suppress(pa.ArrowInvalid):  # more digits than an integer has
            return column.cast(pa.int64())
    is_text = pa.types.is_string_view(kind) or pa.types.is_large_string(kind)
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    if is_text or any(is_kind(kind) for is_kind in (*binary, pa.types.is_fixed_size_binary)):
        text = pa.string() if column.nbytes < MAX_STRING_BYTES else pa.large_string()
        with suppress(pa.ArrowInvalid):  # bytes that are not UTF-8
            return column.cast(text)
    return column
