"""A method's settings without the method: names, types, defaults and rules, as JSON can hold them.

From its outline a dataclass is made that stands for the method where settings are composed and
checked (`StandIn`). So a command line is answered without torch, which a method's file imports.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from stream.config.setting import RULE, Rule, Settings, rules, types
from stream.errors import UserError, unknown
from stream.learners.description import LearnerDescription, describe
from stream.learners.tags import Tags

if TYPE_CHECKING:
    from stream.learners.base import Learner

TYPES = {"int": int, "float": float, "str": str, "bool": bool, "None": None}
GROUP = "learner"
PREFIX = "settings_of_"
NAME = re.compile(r"[\w-]+")


class Target(NamedTuple):
    """Where a method is: in a module of this name, or (``is_entry``) what an entry point names."""

    name: str
    is_entry: bool = False


@dataclass(frozen=True)
class FieldOutline:
    """One field of a method.

    Attributes:
        name: its name.
        type: its type as Python writes it: one of `TYPES`, or several with ``|`` between them.
        default: its default.
        rule: what it says about itself, or what the class says that it was inherited from.
    """

    name: str
    type: str
    default: Any
    rule: Rule


@dataclass(frozen=True)
class Outline:
    """One method.

    Attributes:
        target: where it is.
        description: what people are told.
        fields: its fields; None if they are not of the kind that can be written down.
        checks: whether it checks its values itself, besides what its fields say.
        complete: whether its defaults are valid together.
    """

    target: Target
    description: LearnerDescription
    fields: tuple[FieldOutline, ...] | None
    checks: bool
    complete: bool


@dataclass
class StandIn(Settings):
    """Stands for a method: the same settings, checked in the same way.

    A method that checks its values itself is imported to do so, unless all are its defaults.
    """

    GROUP: ClassVar[str] = GROUP
    tags: ClassVar[Tags]
    name: ClassVar[str]
    method: ClassVar[Callable[[], Any]]
    """Imports the method."""
    checks: ClassVar[bool]
    """Whether the method checks more than its fields say."""
    complete: ClassVar[bool]
    """Whether its defaults are valid together."""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UserError: what the method raises for them.
        """
        if self.checks and not (self.complete and self._all_default()):
            self.learner()
        else:
            super().__post_init__()

    def _all_default(self) -> bool:
        """Return whether every value is the default."""
        return all(getattr(self, of_class.name) == of_class.default for of_class in fields(self))

    def learner(self) -> "Learner":
        """Return the method with these values; it is imported."""
        return type(self).method()(**{f.name: getattr(self, f.name) for f in fields(self)})


def no_learner(name: str, names: Iterable[str], broken: Mapping[str, str]) -> UserError:
    """Return the error for a name that no usable method has.

    Args:
        name: the name that was asked for.
        names: the methods.
        broken: the names of what cannot be used, and why.
    """
    if name in broken:
        return UserError(f"learner {name!r} cannot be used: {broken[name]}")
    return unknown("learner", name, names)


def outlined(method: "type[Learner]", target: Target) -> Outline:
    """Return the outline of a method.

    Args:
        method: its class.
        target: where it was found.
    """
    outline = Outline(
        target=target,
        description=describe(method, method.name, method.tags),
        fields=_fields(method),
        checks=method.__post_init__ is not Settings.__post_init__,
        complete=_is_complete(method),
    )
    return outline if _is_faithful(outline, method) else replace(outline, fields=None)


def stand_in(outline: Outline, method: Callable[[], "type[Learner]"]) -> type[StandIn]:
    """Return the dataclass that stands for a method.

    Args:
        outline: the method's, with its fields.
        method: imports it.
    """
    assert outline.fields is not None
    description = outline.description
    made = [
        (of.name, _type(of.type), field(default=of.default, metadata={RULE: of.rule}))
        for of in outline.fields
    ]
    said = {
        "__module__": __name__,  # where `__getattr__` finds it, for other processes
        "__doc__": description.summary,
        "name": description.name,
        "tags": description.tags,
        "checks": outline.checks,
        "complete": outline.complete,
        "method": staticmethod(method),
    }
    return make_dataclass(f"{PREFIX}{description.name}", made, bases=(StandIn,), namespace=said)


def __getattr__(name: str) -> type[Settings]:
    """Return a stand-in by the name of its class: what another process pickled is looked up so."""
    method = name.removeprefix(PREFIX)
    if method != name:
        from stream.learners import LEARNERS

        if method in LEARNERS:
            return LEARNERS.settings[method]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _fields(method: type[Settings]) -> tuple[FieldOutline, ...] | None:
    """Return the fields of a method; None if one has no plain default or another kind of type."""
    hints, said = types(method), rules(method)
    found = []
    for of in fields(method):
        written = hints[of.name].__name__ if isinstance(hints[of.name], type) else hints[of.name]
        if of.default is MISSING or not of.init or not _is_known(str(written)):
            return None
        found.append(FieldOutline(of.name, str(written), of.default, said[of.name]))
    return tuple(found)


def _is_known(written: str) -> bool:
    """Return whether a type is made of `TYPES`."""
    return all(name in TYPES for name in written.split(" | "))


def _type(written: str) -> Any:
    """Return the type that was written."""
    return reduce(operator.or_, (TYPES[name] for name in written.split(" | ")))


def _is_complete(method: type[Settings]) -> bool:
    """Return whether a method's defaults are valid together."""
    try:
        method()
    except (UserError, TypeError):  # TypeError: a field without default
        return False
    return True


def _is_faithful(outline: Outline, method: "type[Learner]") -> bool:
    """Return whether a stand-in, made of what JSON holds, has what the method has."""
    if outline.fields is None or method.GROUP != GROUP or not NAME.fullmatch(method.name):
        return False
    try:
        held = msgspec.json.decode(msgspec.json.encode(outline), type=Outline)
        return _said(stand_in(held, lambda: method)) == _said(method)
    except (TypeError, ValueError, OverflowError, AttributeError, LookupError):
        return False  # such as a default that is a path, or a reason that names a method's own


def _said(settings: type[Settings]) -> object:
    """Return all that composing and checking ask of a class, with the types of its defaults."""
    named = [(of.name, type(of.default), of.default) for of in fields(settings)]
    idle = [rule.idle.format(settings) for rule in rules(settings).values()]
    hints = [types(settings)[of.name] for of in fields(settings)]
    return named, hints, rules(settings), idle
