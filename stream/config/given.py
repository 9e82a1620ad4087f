"""Which settings a list of overrides gives, each once: what was typed, presets aside."""

from collections.abc import Iterable, Iterator
from typing import Any

from hydra.core.override_parser.types import Override

from stream.errors import require


def given_settings(overrides: Iterable[Override]) -> dict[str, Any]:
    """Return the settings that overrides give, by name; a group's dict counts as its settings.

    >>> from stream.config.typed import parse
    >>> given_settings(parse(["learner=ewc", "training={epochs: 2}", "+backbone.shape.x=1"]))
    {'learner': 'ewc', 'training.epochs': 2, 'backbone.shape.x': 1}
    """
    return dict(item for o in overrides for item in _flat(o.key_or_group, o.value()))


def refuse_twice(overrides: Iterable[Override]) -> None:
    """Raise UserError for a setting with two values: only one of them would count."""
    first: dict[str, Override] = {}
    named = ((name, o) for o in overrides for name, _ in _flat(o.key_or_group, o.value()))
    for name, override in named:
        other = first.setdefault(name, override)
        require(
            other.input_line == override.input_line,
            f"{name} is given twice ({other.input_line} and {override.input_line}); give it once",
        )


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value, or those inside a dict, by dotted names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, value
