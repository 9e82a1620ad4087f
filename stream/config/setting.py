"""What a setting may be: its type, its range or choices, and which other setting it needs.

A field of a settings dataclass says so where its default stands::

    size: int = setting(64, at_least(1, most=WIDEST), needs={"part": "adapter"})

and `Settings`, the base class, checks every field when an object is made. Whether a setting has an
effect on a whole run is another question: `stream.config.effect`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from stream.errors import choose, require

MOST = 2**31 - 1  # of any count: rows, steps, units
LAST_SEED = 2**63 - 1
SMALLEST, LARGEST = 1e-30, 1e30  # of any number but 0, well inside the range of float32
WIDEST = 65_536  # units of anything that is inserted into an encoder
RULE = "setting"  # the key of a field's metadata
WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class Range:
    """The numbers from ``low`` to ``high``.

    Attributes:
        low: the least value, or with ``above`` the value that all others are above.
        high: the largest value, or with ``below`` the value that all others are below.
        above: whether ``low`` itself is outside.
        below: whether ``high`` itself is outside.
        others: texts that are valid besides, such as ``all``.
    """

    low: int | float  # a whole number stays one, also through JSON: messages show it
    high: int | float
    above: bool = False
    below: bool = False
    others: tuple[str, ...] = ()

    def problem(self, value: float | str) -> str:
        """Return what ``value`` must be and is not; empty if it is valid."""
        if value in self.others:
            return ""
        if isinstance(value, str) or value < self.low or (self.above and value == self.low):
            positive = self.above and self.low == 0
            least = f"{'above' if self.above else 'at least'} {self.low}"
            return ", or ".join(["positive" if positive else least, *self.others])
        if value > self.high or (self.below and value == self.high):
            return f"{'below' if self.below else 'at most'} {self.high}"
        return ""


def at_least(least: int, most: int = MOST, others: tuple[str, ...] = ()) -> Range:
    """Return the range of a count.

    Args:
        least: its least value.
        most: its largest value.
        others: texts that are valid besides.
    """
    return Range(least, most, others=others)


POSITIVE = Range(0.0, LARGEST, above=True)
NOT_NEGATIVE = Range(0.0, LARGEST)
SEED = Range(0, LAST_SEED)


@dataclass(frozen=True)
class Rule:
    """What a field says about itself.

    Attributes:
        valid: a range of numbers, or the names that are valid; None takes every value of the type.
        needs: other fields of the same object, and the values with which this one has an effect;
            None stands for any value but null.
        idle: why it has no effect in this class (``{0}`` is the object); empty if it has one.
    """

    valid: Range | tuple[str, ...] | None = None
    needs: Mapping[str, Any] | None = None
    idle: str = ""


def setting(
    default: Any,
    valid: Range | Iterable[str] | None = None,
    *,
    needs: Mapping[str, Any] | None = None,
    idle: str = "",
) -> Any:
    """Return a dataclass field that is checked.

    Args:
        default: its default.
        valid: its range, or the names that are valid.
        needs: other fields of the same object, and the values with which this one has an effect;
            None stands for any value but null.
        idle: why it has no effect in this class; ``{0}`` stands for the object.
    """
    names = valid if valid is None or isinstance(valid, Range) else tuple(valid)
    return field(default=default, metadata={RULE: Rule(names, needs, idle)})


@dataclass
class Settings:
    """A part of a run's settings, checked when it is made."""

    GROUP: ClassVar[str] = ""
    """What stands before the name of a field on the command line."""

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            UserError: a value of another type, outside its range, or without effect.
        """
        hints = types(type(self))
        for name, rule in rules(type(self)).items():
            value = getattr(self, name)
            key = f"{self.GROUP}.{name}".lstrip(".")
            _check_type(key, value, hints[name])
            _check_number(key, value)
            if isinstance(rule.valid, tuple):
                choose(key, value, rule.valid)
            elif rule.valid is not None and value is not None:
                problem = rule.valid.problem(value)
                require(not problem, f"{key} must be {problem}, got {value}")
        for of_class in fields(self):
            value = getattr(self, of_class.name)
            if value is not None and value != of_class.default:
                otherwise = _without_effect(self, rules(type(self))[of_class.name])
                key = f"{self.GROUP}.{of_class.name}".lstrip(".")
                require(not otherwise, f"{key}={_shown(value)} has no effect {otherwise}")


@cache
def rules(settings: type[Settings]) -> dict[str, Rule]:
    """Return what each field of a class says about itself.

    A class that only gives an inherited field another default keeps what it said.
    """
    parents = [p for p in settings.__mro__ if issubclass(p, Settings) and p is not Settings]
    said = {f.name: f.metadata[RULE] for p in reversed(parents) for f in fields(p) if f.metadata}
    return {f.name: said.get(f.name, Rule()) for f in fields(settings)}


def _without_effect(settings: Settings, rule: Rule) -> str:
    """Return why a field has no effect here, in words; empty if it has one."""
    if rule.idle:
        return rule.idle.format(settings)
    for name, wanted in (rule.needs or {}).items():
        value = getattr(settings, name)
        if wanted is None and value is None:
            return f"without {settings.GROUP}.{name}"
        if wanted is not None and value != wanted:
            given = f"{settings.GROUP}.{name}".lstrip(".")
            return f"with {given}={_shown(value)}; use {given}={_shown(wanted)}"
    return ""


def _shown(value: object) -> str:
    """Return a value as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def types(settings: type) -> dict[str, Any]:
    """Return the type of each field of a class."""
    return get_type_hints(settings)


def _check_type(key: str, value: object, hint: Any) -> None:
    """Raise UserError unless a value is of its field's type; what lists hold is not looked at."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    words = [WORDS.get(kind) or getattr(kind, "__name__", "null") for kind in kinds]
    named = " or ".join("null" if word == "NoneType" else word for word in words)
    shown = f"{key} must be {named}, got {value!r}"
    require(value == "???" or any(_is_of(value, kind) for kind in kinds), shown)


def _is_of(value: object, kind: Any) -> bool:
    """Return whether a value is of a type; a whole number is a number, a truth value is none."""
    plain = get_origin(kind) or kind
    if plain is Any:
        return True
    if plain in (int, float):
        numbers = (int, float) if plain is float else int
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, plain)


def _check_number(key: str, value: object) -> None:
    """Raise UserError for a number that is not finite, or that the program's types cannot hold."""
    if isinstance(value, int):
        require(abs(value) <= LAST_SEED, f"{key} must be at most {LAST_SEED} in size, got {value}")
    if isinstance(value, float):
        fits = value == 0 or SMALLEST <= abs(value) <= LARGEST  # not so if it is NaN or infinite
        sizes = f"between {SMALLEST} and {LARGEST}"
        require(
            fits and math.isfinite(value),
            f"{key} must be finite, and in size {sizes} unless it is 0, got {value}",
        )
