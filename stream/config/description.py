"""The settings of a class as people see them: type, default, what is valid, what each one means.

What a setting means stands in its class's docstring, in the section ``Attributes:`` as Google's
style has it. A class inherits what its parents say, and may say something else.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

from stream.config.setting import LARGEST, LAST_SEED, MOST, Range, Rule, Settings, rules, types

UNBOUNDED = (MOST, LAST_SEED, LARGEST)
"""Bounds that are the program's own, which nobody meets."""
ENTRY = re.compile(r"(\w+): (.*)")


@dataclass(frozen=True)
class SettingDescription:
    """One setting.

    Attributes:
        name: its name in its class; on the command line that of the class's group stands before it.
        type: its type as Python writes it, such as ``float | None``.
        default: its default.
        valid: its range or the valid names, in words; empty if every value of the type is valid.
        meaning: what it does, in a sentence.
        effect: when it has an effect, in words; empty if it always has one.
    """

    name: str
    type: str
    default: Any
    valid: str
    meaning: str
    effect: str = ""


def described_settings(settings: type[Settings]) -> tuple[SettingDescription, ...]:
    """Return the settings of a class, in order; one that says nothing has an empty meaning."""
    hints, said, meant = types(settings), rules(settings), meanings(settings)
    return tuple(
        SettingDescription(
            name=of_class.name,
            type=_written(hints[of_class.name]),
            default=_default(of_class),
            valid=_in_words(said[of_class.name].valid),
            meaning=meant.get(of_class.name, ""),
            effect=_effect(said[of_class.name], settings),
        )
        for of_class in fields(settings)
    )


def meanings(settings: type) -> dict[str, str]:
    """Return what the docstrings of a class and its parents say about attributes, by name.

    Where both say something, the class decides.
    """
    found: dict[str, str] = {}
    for kind in reversed(settings.__mro__):
        found |= _attributes(vars(kind).get("__doc__") or "")
    return found


def _attributes(docstring: str) -> dict[str, str]:
    """Return the entries of the section ``Attributes:``, each on one line without markup."""
    _, _, section = inspect.cleandoc(docstring).partition("\nAttributes:\n")
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line and not line.startswith(" "):
            break  # the next section
        entry = ENTRY.match(line.removeprefix("    "))
        if entry:
            name, text = entry.groups()
            found[name] = text
        elif line and name:
            found[name] += f" {line.strip()}"
    return {name: plain(text) for name, text in found.items()}


def plain(text: str) -> str:
    """Return text without the marks that docstrings have around code.

    >>> plain("``auto`` is what `choose` says")
    'auto is what choose says'
    """
    return text.replace("`", "")


def _default(of_class: Field[Any]) -> Any:
    """Return the default of a field; None where it must be given."""
    if of_class.default_factory is not MISSING:
        return of_class.default_factory()
    return None if of_class.default in (MISSING, "???") else of_class.default


def _written(hint: Any) -> str:
    """Return a type as Python writes it."""
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _in_words(valid: Range | tuple[str, ...] | None) -> str:
    """Return what is valid, in words."""
    if valid is None:
        return ""
    if not isinstance(valid, Range):
        return ", ".join(valid)
    parts = [f"{'above' if valid.above else 'at least'} {_number(valid.low)}"]
    if valid.high not in UNBOUNDED:
        parts.append(f"{'below' if valid.below else 'at most'} {_number(valid.high)}")
    return ", or ".join([", ".join(parts), *valid.others])


def _number(value: float) -> str:
    """Return a bound: 65,536 or 0.5."""
    return f"{value:,.0f}" if value == int(value) else str(value)


def _effect(rule: Rule, settings: type[Settings]) -> str:
    """Return when a setting has an effect."""
    if rule.idle:
        return f"no effect {rule.idle.format(settings)}"
    needs: Mapping[str, Any] = rule.needs or {}
    given = [f"{settings.GROUP}.{name}".lstrip(".") for name in needs]
    wanted = [shown(value) if value is not None else "VALUE" for value in needs.values()]
    return " and ".join(f"only with {g}={w}" for g, w in zip(given, wanted, strict=True))


def shown(value: object) -> str:
    """Return a value as the command line takes it.

    >>> shown(None), shown(True), shown(2e-3), shown(["sst2", "rte"])
    ('null', 'true', '0.002', '[sst2,rte]')
    """
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{','.join(map(shown, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown_settings(settings: Mapping[str, Any]) -> str:
    """Return settings by name as the command line has them.

    >>> shown_settings({"training.epochs": 1, "order": "random"})
    'training.epochs=1 order=random'
    """
    return " ".join(f"{name}={shown(value)}" for name, value in settings.items())
