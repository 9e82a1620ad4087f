"""Texts that OmegaConf takes as they are, whatever they hold."""

import re
from collections.abc import Mapping
from typing import Any

MISSING = "${oc.decode:\"'???'\"}"  # the one text that means a missing value, as a text


def uninterpolated(text: str) -> str:
    """Return a text in which ``${`` begins nothing.

    Backslashes before an interpolation are escapes too; elsewhere they are text.
    """
    return re.sub(r"(\\*)\$\{", lambda found: f"{found[1] * 2}\\${{", text)


def escaped(value: Any) -> Any:
    r"""Return a value whose texts OmegaConf resolves to those of ``value``; keys are unchanged.

    >>> escaped({"label": "is it ${good}?"})
    {'label': 'is it \\${good}?'}
    """
    if isinstance(value, str):
        return MISSING if value == "???" else uninterpolated(value)
    if isinstance(value, Mapping):
        return {key: escaped(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [escaped(inner) for inner in value]
    return value
