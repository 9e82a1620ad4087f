"""Typed settings from plain values, where every value already is what its field takes.

OmegaConf makes a node of every field, which takes 20 ms for each task. What is read here becomes
the objects that it would make; whatever else it accepts, or refuses, is left to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import Any, get_args, get_origin

from omegaconf import MISSING

from stream.config.setting import types

Reader = Callable[[Any], Any]


class NotPlainError(ValueError):
    """A value that is not plainly what its field takes."""


@dataclass(frozen=True)
class Part:
    """What an object is made of.

    Attributes:
        schema: its class.
        values: of its fields, parts among them; a field that is missing takes its default.
    """

    schema: type
    values: Mapping[str, Any]

    def made(self) -> Any:
        """Return the object; parts that nobody gave are shared, as objects are read only.

        Raises:
            UserError: values that the class refuses.
        """
        return self.new() if self.values else _default(self.schema)

    def new(self) -> Any:
        """Return the object, which is shared with nobody. Raises what `made` does."""
        given = {k: v.made() if isinstance(v, Part) else v for k, v in self.values.items()}
        shared = {k: _default(kind) for k, kind in _parts(self.schema).items() if k not in given}
        return self.schema(**shared, **given)


def part(schema: type, values: object) -> Part:
    """Return what an object is made of.

    Args:
        schema: its class.
        values: plain values by the names of its fields.

    Raises:
        NotPlainError: values that OmegaConf has to look at.
    """
    known = _readers(schema)
    is_mapping = isinstance(values, dict)
    if not is_mapping or not _needed(schema) <= values.keys() <= known.keys():
        raise NotPlainError(schema.__name__)
    return Part(schema, {name: known[name](value) for name, value in values.items()})


@cache
def _default(schema: type) -> Any:
    """Return the object without a value."""
    return schema()


@cache
def _default_values(schema: type) -> dict[str, Any]:
    """Return the object without a value as plain values."""
    return asdict(_default(schema))


@cache
def _needed(schema: type) -> set[str]:
    """Return the fields that need a value."""
    return {field.name for field in fields(schema) if field.default == MISSING}


@cache
def _parts(schema: type) -> dict[str, type]:
    """Return the classes of the fields that are objects unless something else is given."""
    hints = types(schema)
    return {f.name: hints[f.name] for f in fields(schema) if f.default_factory is hints[f.name]}


@cache
def _readers(schema: type) -> dict[str, Reader]:
    """Return what reads each field of a class."""
    return {name: _reader(types(schema)[name]) for name in (f.name for f in fields(schema))}


def _reader(hint: Any) -> Reader:
    """Return what reads values of a type."""
    if isinstance(hint, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        inner = _reader(kinds[0]) if len(kinds) == 1 else partial(_one_of, kinds)
        return partial(_optional, inner) if type(None) in get_args(hint) else inner
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return _anything
    if kind in (list, dict) and not arguments:
        return _refuse
    if kind is list:
        return partial(_list, _reader(arguments[0]))
    if kind is dict:
        return partial(_dict, _reader(arguments[1]))
    return partial(_inner if is_dataclass(kind) else _of_type, kind)


def _inner(schema: type, values: Any) -> Part:
    """Return what an object within another is made of; one that says nothing new is shared."""
    is_default = not _needed(schema) and values == _default_values(schema)
    return Part(schema, {}) if is_default else part(schema, values)


def _of_type(kind: type, value: Any) -> Any:
    """Return a text, number or truth value; a whole number is a number."""
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind or (kind is str and _is_special(value)):
        raise NotPlainError(repr(value))
    return value


def _is_special(text: str) -> bool:
    """Return whether a text may mean something else to OmegaConf."""
    return "${" in text or text == "???"


def _one_of(kinds: Sequence[type], value: Any) -> Any:
    """Return a value of one of the types."""
    if type(value) not in kinds:
        raise NotPlainError(repr(value))
    return _of_type(type(value), value)


def _refuse(value: Any) -> Any:
    """Leave a value to OmegaConf."""
    raise NotPlainError(repr(value))


def _optional(read: Reader, value: Any) -> Any:
    """Return a value or None."""
    return None if value is None else read(value)


def _list(read: Reader, values: Any) -> list[Any]:
    """Return a list."""
    if type(values) is not list:
        raise NotPlainError(repr(values))
    return [read(value) for value in values]


def _dict(read: Reader, values: Any) -> dict[str, Any]:
    """Return a mapping of texts."""
    if type(values) is not dict or any(type(key) is not str for key in values):
        raise NotPlainError(repr(values))
    return {key: read(value) for key, value in values.items()}


def _anything(value: Any) -> Any:
    """Return JSON values."""
    if isinstance(value, dict):
        return _dict(_anything, value)
    if isinstance(value, list):
        return _list(_anything, value)
    return value if value is None else _of_type(_kind(value), value)


def _kind(value: object) -> type:
    """Return the type of a text, number or truth value.

    Raises:
        NotPlainError: it is something else.
    """
    for kind in (str, bool, int, float):
        if type(value) is kind:
            return kind
    raise NotPlainError(repr(value))
