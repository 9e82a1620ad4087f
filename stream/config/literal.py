"""Texts that OmegaConf takes as they are, whatever they hold."""

import re
from collections.abc import Mapping
from typing import Any

MISSING = "${oc.decode:\"'???'\"}"  # the one text that means a missing value, as a text


def literal(value: Any) -> Any:
    r"""Return a value whose texts OmegaConf resolves to those of ``value``; keys are unchanged.

    >>> literal({"label": "is it ${good}?"})
    {'label': 'is it \\${good}?'}
    """
    if isinstance(value, str):
        # Backslashes before an interpolation are escapes too; elsewhere they are text.
        escaped = re.sub(r"(\\*)\$\{", lambda found: f"{found[1] * 2}\\${{", value)
        return MISSING if value == "???" else escaped
    if isinstance(value, Mapping):
        return {key: literal(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [literal(inner) for inner in value]
    return value
