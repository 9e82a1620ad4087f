"""What numbers in a label column mean: the names that the file gives decide, then the YAML."""

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

import pyarrow as pa

from stream.config.source import SourceColumns
from stream.config.task import TaskSpec
from stream.data.table import SourceTable
from stream.errors import UserError, require


def by_pattern(values: Mapping[str, str], value: str) -> str | None:
    """Return the label name of the first pattern with a ``*`` that matches the value."""
    for pattern, name in values.items():
        if "*" in pattern and fnmatchcase(value, pattern):
            return name
    return None


def resolved(columns: SourceColumns, source: SourceTable) -> SourceColumns:
    """Return the columns with a label pattern replaced by the only column name it matches."""
    names = source.table.column_names
    matches = [name for name in names if fnmatchcase(name, columns.label)]
    is_pattern = "*" in columns.label and columns.label not in names and len(matches) == 1
    return replace(columns, label=matches[0]) if is_pattern else columns


def with_label_names(
    name: str, spec: TaskSpec, columns: SourceColumns, source: SourceTable
) -> SourceColumns:
    """Return the columns with ``values`` and ``exclude`` for the names that numbers have.

    Where the file names its classes, what the YAML says of a number holds for the name. Where it
    does not, numbers that are names of the task's labels, such as ``"5"``, are those labels.

    Args:
        name: the task's name, for messages.
        spec: the task's specification.
        columns: what the columns mean; the label is no pattern.
        source: the table.

    Raises:
        UserError: the YAML gives a number another label than the file does, or numbers are names
            of labels and also the positions of other labels.
    """
    names = source.class_names.get(columns.label)
    if spec.labels is None:
        return columns
    if names is None:
        return _with_numbers_as_names(name, spec, columns, source)
    values, exclude = dict(columns.values), list(columns.exclude)
    for number, label in enumerate(names):
        key = str(number)
        if key in names:  # the YAML may mean the name
            continue
        of_number, of_name = columns.values.get(key), _label_of(spec, columns, label)
        require(
            None in (of_number, of_name) or of_number == of_name,
            f"task {name!r}: {source.where} names class {number} of {columns.label!r} {label!r}, "
            f"but values: says that {key!r} is {of_number!r}; map names instead of numbers",
        )
        if of_number is not None:
            values[label] = of_number
        if key in columns.exclude:
            exclude.append(label)
    return replace(columns, values=values, exclude=exclude)


def _label_of(spec: TaskSpec, columns: SourceColumns, value: str) -> str | None:
    """Return the task's label that a name in the file stands for, or None."""
    if value in columns.values:
        return columns.values[value]
    return value if value in (spec.labels or ()) else by_pattern(columns.values, value)


def _with_numbers_as_names(
    name: str, spec: TaskSpec, columns: SourceColumns, source: SourceTable
) -> SourceColumns:
    """Return the columns with ``values`` for integers that are names of labels."""
    labels = list(spec.labels or ())
    has_label = columns.label in source.table.column_names
    column = source.table.column(columns.label) if has_label else None
    if column is None or columns.values or not pa.types.is_integer(column.type):
        return columns
    numbers = [number for number in column.unique().to_pylist() if number is not None]
    if not numbers or not all(str(number) in labels for number in numbers):
        return columns
    are_positions = columns.numbers_are_indices and all(0 <= n < len(labels) for n in numbers)
    other = next((n for n in numbers if are_positions and labels[n] != str(n)), None)
    require(
        other is None,
        f"task {name!r}: {source.where}: label {other} is the name of one label and the position "
        f"of another one ({', '.join(map(repr, labels))}); say which with values:",
    )
    return replace(columns, values={str(number): str(number) for number in numbers})


def check_numbering(
    name: str, spec: TaskSpec, columns: SourceColumns, tables: Mapping[str, SourceTable]
) -> None:
    """Raise UserError if parts with class names and parts with numbers only may not agree.

    Args:
        name: the task's name, for messages.
        spec: the task's specification.
        columns: what the columns mean.
        tables: the source's tables.
    """
    sources = [(resolved(columns, source).label, source) for source in tables.values()]
    named = [(source, source.class_names.get(label)) for label, source in sources]
    numbered = [
        source
        for label, source in sources
        if label in source.table.column_names
        and pa.types.is_integer(source.table.schema.field(label).type)
    ]
    if spec.labels is None or columns.values or not numbered:
        return
    for source, names in named:
        if names is not None and names != spec.labels[: len(names)]:
            raise UserError(
                f"task {name!r}: {source.where} names its classes {', '.join(names)}, "
                f"{numbered[0].where} only numbers them, and the task's order is "
                f"{', '.join(spec.labels)}; say what numbers mean with values:"
            )
