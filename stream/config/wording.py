"""What OmegaConf says of a value that does not fit, in words for people who know only YAML."""

import re
from typing import Any, get_origin

from omegaconf import DictConfig, ListConfig

from stream.errors import first_line

LIST, NAMES = "a list, such as [a, b]", "names with values, such as {a: b}"
WORDINGS = (
    (r"Invalid value assigned: \w+ is not a ListConfig, list or tuple\.?", f"must be {LIST}"),
    (r"Cannot assign (\w+) to [Dd]ict.*", f"must be {NAMES}"),
    (r"Cannot assign (\w+) to [Ll]ist.*", f"must be {LIST}"),
    (
        r"Merge error: (\w+) is not a subclass of (\w+)\. value: \{.*",
        r"describes another thing (\1) than what it is merged with (\2)",
    ),
    (
        r"(?:Merge error|Invalid type assigned): \w+ is not a subclass of [A-Z]\w+\. value: (.*)",
        rf"must be {NAMES}, got \1",
    ),
    (
        r"(?:[Ff]ield '.*' is not Optional|Incompatible value 'None' for field of type '.*'|"
        r"Invalid type assigned: NoneType .*)",
        "needs a value, got null",
    ),
    (
        r"Key (.*) \((\w+)\) is incompatible with \(str\)",
        r"the name \1 needs quotes: without them it is a value of type \2",
    ),
    (
        r"Cannot merge DictConfig with ListConfig",
        f"has a list in the place of {NAMES}, or these there",
    ),
    (
        r"Cannot convert 'DictConfig' to string: .*",
        "must be one value; a file that says more begins with '# @package _global_'",
    ),
    (r"Cannot convert 'ListConfig' to string: '(.*)'", r"must be one text, got \1"),
    (
        r"Value '(.*)' of type '\w+' could not be converted to Integer",
        r"must be a whole number, got '\1'",
    ),
    (r"Value '(.*)' of type '\w+' could not be converted to Float", r"must be a number, got '\1'"),
)


def in_plain_words(error: Exception) -> str:
    """Return the first line of a message of OmegaConf's; in other words where it speaks of code."""
    said = first_line(error)
    for pattern, words in WORDINGS:
        found = re.fullmatch(pattern, said)
        if found is not None:
            return found.expand(words)
    return said


def misplaced(form: DictConfig, given: DictConfig, path: str = "") -> str | None:
    """Return what is no names with values where these are needed, or the reverse.

    OmegaConf does not say where that is.

    Args:
        form: how the settings should be.
        given: the settings.
        path: where they are.
    """
    for name in given:
        if name in form:
            wrong = _misplaced(form._get_node(name), given._get_node(name), f"{path}{name}")
            if wrong is not None:
                return wrong
    return None


def _misplaced(right: Any, value: Any, key: str) -> str | None:
    """Return what is wrong of one setting; only what a list or names with values can be."""
    if isinstance(right, ListConfig):
        of_lists = get_origin(right._metadata.element_type) is list
        items = list(value) if isinstance(value, ListConfig) and of_lists else []
        odd = next((i for i, item in enumerate(items) if not isinstance(item, ListConfig)), None)
        if odd is not None:
            return f"{key}[{odd}]: must be {LIST}"
        return f"{key}: must be {LIST}" if isinstance(value, DictConfig) else None
    if not isinstance(right, DictConfig):
        return None
    if isinstance(value, DictConfig) and not value._is_none():
        return misplaced(right, value, f"{key}.")
    is_open = value._is_interpolation() or value._is_missing()
    return None if is_open else f"{key}: must be {NAMES}"
