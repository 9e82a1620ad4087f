"""Which settings a list of overrides gives: what stands on the command line, presets aside."""

from collections.abc import Iterable, Iterator
from typing import Any

from hydra.core.override_parser.types import Override


def given_settings(overrides: Iterable[Override]) -> dict[str, Any]:
    """Return the settings that overrides give, by name; a group's dict counts as its settings.

    >>> from stream.config.typed import parse
    >>> given_settings(parse(["learner=ewc", "training={epochs: 2}", "+backbone.shape.x=1"]))
    {'learner': 'ewc', 'training.epochs': 2, 'backbone.shape.x': 1}
    """
    return dict(item for o in overrides for item in _flat(o.key_or_group, o.value()))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value, or those inside a dict, by dotted names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, value
