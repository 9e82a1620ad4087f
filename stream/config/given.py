"""Which settings a list of overrides gives: what stands on the command line, presets aside."""

from collections.abc import Iterator, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser


def given_settings(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the settings that overrides give, by name; a group's dict counts as its settings.

    >>> given_settings(["learner=ewc", "training={epochs: 2, warmup: 0}", "+backbone.shape.x=1"])
    {'learner': 'ewc', 'training.epochs': 2, 'training.warmup': 0, 'backbone.shape.x': 1}
    """
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    return dict(item for o in parsed for item in _flat(o.key_or_group, o.value()))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value, or those inside a dict, by dotted names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, value
